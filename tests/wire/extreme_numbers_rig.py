"""A server with all protocols and every kind of destination, for numbers at the limits of their types."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.queue.delivery.scheduled_messages import SCHEDULED_TIMER
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.routing.divert_config import PASS, DivertConfig
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.codec import text_body
from atalanta.message.message import TEXT, Message
from atalanta.wire.endpoint import AcceptorConfig
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client
from tests.wire.openwire.server.openwire_rig import OpenWireServer
from tests.wire.stomp.stomp_rig import StompServer

EXTREMES: Final = (-(2**63), -1, 0, 2, 200, 2**15, 2**16, 2**31 - 1, 2**31, 2**63 - 1)
LONG_MAX: Final = 2**63 - 1
ADDRESSES: Final = ("plain", "diverted", "dead", "expiring", "slow", "last", "ring", "groups", "wild.one")


class EveryProtocol(OpenWireServer, StompServer):
    """A broker whose one acceptor speaks CORE, OpenWire and STOMP."""


def settings_at_their_limits() -> AddressSettingsRepository:
    settings = AddressSettingsRepository()
    settings.add("#", {"dead_letter_address": "DLQ", "expiry_address": "EXP", "redelivery_delay_ms": 1})
    settings.add("dead", {"max_delivery_attempts": 1})
    settings.add("expiring", {"min_expiry_delay_ms": LONG_MAX, "max_expiry_delay_ms": LONG_MAX})
    settings.add(
        "slow",
        {"redelivery_delay_ms": LONG_MAX, "redelivery_delay_multiplier": 1e300, "max_delivery_attempts": -1,
         "redelivery_collision_avoidance_factor": 1.0},
    )  # fmt: skip
    return settings


def server_with_everything(
    config: BrokerConfig | None = None,
    settings: AddressSettingsRepository | None = None,
    acceptor: AcceptorConfig | None = None,
) -> EveryProtocol:
    """A server with a queue at each of ADDRESSES, a divert, a dead-letter and an expiry queue."""
    server = EveryProtocol(config, settings or settings_at_their_limits(), acceptor)
    for name in ("DLQ", "EXP", "copies", *ADDRESSES):
        spec = QueueSpec(name, name, 1)
        spec.take_defaults(server.settings.match(name))
        spec.auto_delete = False
        if name == "last":
            spec.set_last_value(True, "key")
        elif name == "ring":
            spec.ring_size = 3
        server.broker.queue_registry.create(server.now, spec)
    server.queue("wild", "wild.#", durable=True)
    divert = DivertConfig(name="d", address="diverted", forwarding_address="copies", routing_type=PASS)
    server.broker.diverts.create(divert, False)
    server.settle()
    return server


def core_message(
    address: str, timestamp_ms: int, body: str, properties: dict[str, object], **fields: object
) -> Message:
    message = Message.create(address, text_body(body), TEXT, True, timestamp_ms, 4)
    for name, value in fields.items():
        setattr(message, name, value)
    for name, value in properties.items():
        message.properties.put(name, value)  # type: ignore[arg-type]
    return message.copy(0)


def pass_time(server: EveryProtocol, seconds: int) -> None:
    """Timers that are due fire, those for scheduled messages and for expired ones."""
    server.settle()
    server.now += seconds * SECOND
    for key, due in list(server.timers.due.items()):
        if key.startswith("kernel.") and due <= server.now:
            server.timers.cancel(key)
            server.broker.on_timer(server.now, key)
    assert server.timers.due.get(SCHEDULED_TIMER, 1) > 0
    server.settle()


def read_by_all(server: EveryProtocol, queue: str) -> None:
    """A client of each protocol gets the messages of a queue, and leaves without an acknowledgement or refuses them."""
    core: Client = server.login()
    core.consume(queue)
    server.settle()
    core.deliveries()
    server.lost(core.conn)
    stomp = server.stomp_client()
    stomp.send("SUBSCRIBE", destination=queue, id="1", ack="client-individual")
    for message in stomp.frames():
        if message.command == "MESSAGE":
            stomp.send("NACK", id=message["ack"])
    server.settle()
    if stomp.closed is None:
        server.lost(stomp.conn)
    pass_time(server, 2)
    openwire = server.openwire_client(f"reader-{server.last_conn}")
    openwire.call(openwire.consumer_info(queue))
    openwire.output()  # with a prefetch of 0 it is told to ask
    server.lost(openwire.conn)
    pass_time(server, 2)
    validate(server.broker)


def bodies_of(server: EveryProtocol, queue: str) -> int:
    """The number of messages in a queue, with those that wait for their time."""
    return server.broker.queues[queue].message_count
