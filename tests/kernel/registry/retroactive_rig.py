"""A broker whose address `prices` keeps its last messages for queues that come late."""

from __future__ import annotations

from typing import Any

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import AddressConfig, BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench

PREFIX = "$.artemis.internal."
ADDRESS = PREFIX + "prices.address.retro"
MULTICAST_RING = PREFIX + "prices.queue.multicast.retro"
ANYCAST_RING = PREFIX + "prices.queue.anycast.retro"
DIVERT = PREFIX + "prices.divert.retro"


def repository(match: str = "prices", count: int = 3, **settings: Any) -> AddressSettingsRepository:
    made = AddressSettingsRepository()
    made.add(match, {"retroactive_message_count": count, **settings})
    return made


def started(match: str = "prices", count: int = 3, paging: bool = False, **settings: Any) -> Bench:
    config = BrokerConfig(addresses=[AddressConfig("prices", anycast=True, multicast=True)])
    bench = Bench(config, repository(match, count, **settings), paging)
    bench.broker.resources.create(bench.now)
    bench.settle()
    return bench


def restart(bench: Bench) -> None:
    bench.restart()
    bench.broker.resources.delete_unnamed(bench.now)
    bench.broker.resources.create(bench.now)
    bench.broker.queue_registry.sweep_at_start(bench.now)
    bench.settle()


def change(bench: Bench, settings: AddressSettingsRepository) -> None:
    fresh = BrokerConfig(addresses=bench.config.addresses)
    bench.broker.reload(bench.now, fresh, settings, Security(enabled=False))
    bench.settle()


def send(
    bench: Bench,
    *bodies: bytes,
    address: str = "prices",
    durable: bool = True,
    **properties: object,
) -> None:
    session = bench.session()
    for body in bodies:
        message = bench.message(address, body, durable, **properties)
        session.send(bench.now, message, 1)


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last + 1)]


def bodies(queue: Queue) -> list[bytes]:
    return [reference.message.body for reference in queue.live()]


def subscribe(bench: Bench, name: str = "late", **attributes: Any) -> Queue:
    made = bench.queue(
        name, attributes.pop("address", "prices"), attributes.pop("kind", 0), **attributes
    )
    bench.settle()
    validate(bench.broker)
    return made
