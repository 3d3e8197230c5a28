"""A changed configuration of a running broker, through Node-level `reload`."""

from __future__ import annotations

from typing import Any

from atalanta.kernel.broker import invariants
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import AddressConfig, BrokerConfig, QueueConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench

FORCE: dict[str, Any] = {"config_delete_queues": "FORCE", "config_delete_addresses": "FORCE"}


def anycast(name: str, *queues: str, **attributes: Any) -> AddressConfig:
    address = AddressConfig(name, anycast=True)
    for queue in queues or (name,):
        address.add(QueueConfig(name=queue, address=name, routing_type=1, **attributes))
    return address


def started(*addresses: AddressConfig, **settings: Any) -> Bench:
    bench = Bench(BrokerConfig(addresses=list(addresses)), repository(**settings))
    bench.broker.resources.create(bench.now)
    bench.settle()
    return bench


def repository(**settings: Any) -> AddressSettingsRepository:
    made = AddressSettingsRepository()
    made.add("#", settings)
    return made


def change(
    bench: Bench,
    *addresses: AddressConfig,
    diverts: list[DivertConfig] | None = None,
    **settings: Any,
) -> None:
    fresh = BrokerConfig(addresses=list(addresses), diverts=diverts or [])
    bench.broker.reload(bench.now, fresh, repository(**settings), Security(enabled=False))
    bench.settle()


def names(bench: Bench) -> tuple[list[str], list[str]]:
    shown = [name for name, each in bench.broker.addresses.items() if not each.internal]
    return sorted(shown), sorted(bench.broker.queues)


def told(bench: Bench, event: str) -> list[dict[str, object]]:
    return [fields for name, fields in bench.trace.events if name == event]


def test_new_addresses_and_queues_appear_and_changed_ones_change() -> None:
    bench = started(anycast("orders"))
    change(bench, anycast("orders", "orders", max_consumers=2), anycast("bills", "a", "b"))
    assert names(bench) == (["bills", "orders"], ["a", "b", "orders"])
    assert bench.broker.queues["orders"].spec.max_consumers == 2
    bench.restart()
    assert names(bench)[1] == ["a", "b", "orders"]


def test_what_left_the_file_stays_unless_deletion_is_forced() -> None:
    bench = started(anycast("orders"), anycast("bills", "a", "b"))
    change(bench, anycast("bills", "a"))
    assert names(bench) == (["bills", "orders"], ["a", "b", "orders"])
    change(bench, anycast("bills", "a"), config_delete_queues="FORCE")
    assert names(bench) == (["bills", "orders"], ["a"])
    change(bench, anycast("bills", "a"), config_delete_addresses="FORCE")
    assert names(bench) == (["bills"], ["a"])
    bench.restart()
    assert names(bench) == (["bills"], ["a"])
    assert [fields["queue"] for fields in told(bench, "queue_undeployed")] == ["orders", "b"]


def test_deletion_spares_what_clients_made() -> None:
    bench = started(anycast("orders"))
    bench.queue("extra", "orders")
    bench.queue("own", auto_created=True)
    bench.settle()
    assert bench.broker.addresses["own"].auto_created
    change(bench, anycast("orders"), **FORCE)
    assert names(bench) == (["orders", "own"], ["extra", "orders", "own"])
    # An address that no longer is configured goes with all its queues, as in Artemis.
    change(bench, **FORCE)
    assert names(bench) == (["own"], ["own"])
    assert "activemq.management" in bench.broker.addresses


def test_deletion_closes_consumers_and_drops_messages() -> None:
    bench = started(anycast("orders"))
    session = bench.session()
    session.send(bench.now, bench.message("orders", b"x"), 1)
    session.create_consumer(bench.now, 0, "orders", None, False, 4)
    bench.settle()
    change(bench, **FORCE)
    assert names(bench) == ([], [])
    assert session.endpoint.gone == [0]  # type: ignore[attr-defined]
    assert bench.broker.memory.used_bytes == 0
    invariants.validate(bench.broker)


def test_deletion_counts_at_a_start_too() -> None:
    bench = started(anycast("orders"), **FORCE)
    bench.config.addresses = []
    bench.restart()
    bench.broker.resources.delete_unnamed(bench.now)
    assert names(bench) == ([], [])


def test_address_settings_count_at_once() -> None:
    bench = started(anycast("orders"))
    assert bench.broker.settings.match("orders").max_delivery_attempts == 10
    change(bench, anycast("orders"), max_delivery_attempts=3, max_size_bytes=5)
    assert bench.broker.settings.match("orders").max_delivery_attempts == 3
    account = bench.broker.addresses["orders"].account
    assert account.limit_bytes == 5
    change(bench, anycast("orders"))
    assert account.limit_bytes > 1 << 60


def test_a_larger_limit_lets_those_go_on_who_waited() -> None:
    bench = started(anycast("orders"), max_size_bytes=10, address_full_policy="BLOCK")
    session = bench.session()
    session.send(bench.now, bench.message("orders", b"x" * 20), 1)
    bench.settle()
    endpoint = session.endpoint
    account = bench.broker.addresses["orders"].account
    bench.broker.memory.request(endpoint, account, "orders", 100, False)
    bench.settle()
    assert endpoint.granted == []  # type: ignore[attr-defined]
    change(bench, anycast("orders"), max_size_bytes=10_000, address_full_policy="BLOCK")
    assert endpoint.granted == [("orders", 100)]  # type: ignore[attr-defined]


def test_diverts_follow_the_file_and_those_of_management_stay() -> None:
    def divert(name: str, to: str, exclusive: bool = False) -> DivertConfig:
        return DivertConfig(
            name=name, address="orders", forwarding_address=to, exclusive=exclusive
        )

    bench = started(anycast("orders"), anycast("copies"), anycast("others"))
    every = (anycast("orders"), anycast("copies"), anycast("others"))
    bench.broker.diverts.create(divert("kept", "others"), True)
    change(bench, *every, diverts=[divert("d", "copies")])
    assert sorted(bench.broker.diverts.by_name) == ["d", "kept"]
    session = bench.session()
    session.send(bench.now, bench.message("orders", b"1"), 1)
    bench.settle()
    counts = {name: queue.message_count for name, queue in bench.broker.queues.items()}
    assert counts == {"orders": 1, "copies": 1, "others": 1}
    change(bench, *every, diverts=[divert("d", "copies", exclusive=True)])
    session.send(bench.now, bench.message("orders", b"2"), 2)
    bench.settle()
    assert bench.broker.queues["orders"].message_count == 1
    change(bench, *every)
    assert sorted(bench.broker.diverts.by_name) == ["kept"]


def test_a_queue_that_cannot_become_what_the_file_says_is_named_and_the_rest_is_done() -> None:
    bench = started(anycast("orders"))
    session = bench.session()
    for number in range(3):
        session.create_consumer(bench.now, number, "orders", None, False, 4)
    change(bench, anycast("orders", max_consumers=1), anycast("bills"))
    assert [fields["queue"] for fields in told(bench, "configured_queue_refused")] == ["orders"]
    assert bench.broker.queues["orders"].spec.max_consumers == -1
    assert "bills" in bench.broker.queues


def test_nothing_changed_writes_nothing() -> None:
    bench = started(anycast("orders"), anycast("bills", "a", "b"))
    records = len(bench.journal.records)
    change(bench, anycast("orders"), anycast("bills", "a", "b"))
    assert len(bench.journal.records) == records
