"""Duplicate ids of addresses that are deleted: known as long as somebody may send again, then gone for good."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry import duplicate_caches
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.settings.broker_config import BrokerConfig
from tests.kernel.broker_rig import SECOND, Bench, consume
from tests.management.management_rig import Desk

MINUTE = 60 * SECOND
WEEK = 7 * 24 * 60 * MINUTE


def sent(bench: Bench, address: str, *names: str) -> None:
    """Each with its id, to an address that comes with the first."""
    bench.settings.add("#", {"default_address_routing_type": ANYCAST})
    session = bench.session()
    for token, name in enumerate(names):
        session.send(bench.now, bench.message(address, name.encode(), _AMQ_DUPL_ID=name), token)
    bench.settle()


def bridged(bench: Bench, address: str, *ids: bytes) -> None:
    bench.settings.add("#", {"default_address_routing_type": ANYCAST})
    session = bench.session()
    for token, bridge_id in enumerate(ids):
        message = bench.message(address, b"")
        message.put_property(BRIDGE_DUPLICATE, bridge_id)
        session.send(bench.now, message, token)
    bench.settle()


def taken(bench: Bench, address: str) -> None:
    """The last consumer takes all there is and leaves; the address goes by itself."""
    session = bench.session()
    consume(session, bench, address)
    bench.settle()
    for reference in list(bench.broker.queues[address].live()):
        session.acknowledge(bench.now, 0, reference.message.id, True, 0)
    bench.settle()
    session.close_consumer(bench.now, 0)
    for _ in range(2):
        sweep(bench)
    assert address not in bench.broker.addresses


def sweep(bench: Bench) -> None:
    bench.broker.on_timer(bench.now, SWEEP_TIMER)
    bench.settle()


def count(bench: Bench, address: str) -> int:
    queue = bench.broker.queues.get(address)
    return 0 if queue is None else queue.message_count


@pytest.mark.parametrize("crashed", [False, True])
def test_who_sends_again_after_the_address_went_by_itself_is_known_for_a_week(bench: Bench, crashed: bool) -> None:
    sent(bench, "orders", "a")
    taken(bench, "orders")
    if crashed:
        bench.restart()
    bench.now += WEEK - MINUTE
    sweep(bench)
    sent(bench, "orders", "a", "b")
    assert count(bench, "orders") == 1


@pytest.mark.parametrize("crashed", [False, True])
def test_after_the_week_the_ids_are_gone_from_memory_and_journal(bench: Bench, crashed: bool) -> None:
    sent(bench, "orders", "a", "b")
    bridged(bench, "orders", b"i" * 24)
    taken(bench, "orders")
    bench.now += WEEK
    sweep(bench)
    assert not bench.broker.caches.by_name
    if crashed:
        bench.restart()
        assert not bench.broker.caches.by_name
    sent(bench, "orders", "b")
    assert count(bench, "orders") == 1
    bench.restart()
    sent(bench, "orders", "a", "b")
    assert count(bench, "orders") == 2


def test_what_a_bridge_brings_again_is_known_for_a_week(bench: Bench) -> None:
    bridged(bench, "orders", b"i" * 24)
    taken(bench, "orders")
    bench.now += WEEK - MINUTE
    sweep(bench)
    bridged(bench, "orders", b"i" * 24, b"k" * 24)
    assert count(bench, "orders") == 1


def test_the_time_begins_anew_when_the_address_was_there_again(bench: Bench) -> None:
    sent(bench, "orders", "a")
    taken(bench, "orders")
    bench.now += WEEK // 2
    sent(bench, "orders", "b")
    sweep(bench)
    taken(bench, "orders")
    bench.now += WEEK // 2
    sweep(bench)
    sent(bench, "orders", "a")
    assert count(bench, "orders") == 0


def test_compaction_does_not_bring_dropped_ids_back(bench: Bench) -> None:
    bench.queue("copy")
    sent(bench, "orders", "a", "b")
    taken(bench, "orders")
    sent(bench, "copy", "kept")
    bench.now += WEEK
    sweep(bench)
    bench.compact(bench.journal.last - 1)
    assert list(bench.broker.caches.by_name) == ["copy"]
    bench.restart()
    assert list(bench.broker.caches.by_name) == ["copy"]
    sent(bench, "copy", "kept")
    assert count(bench, "copy") == 1


def test_ids_of_an_address_that_an_operator_deletes_go_with_it() -> None:
    """Also where its last queue takes the address with it."""
    desk = Desk()
    for address in ("one", "two"):
        sent(desk, address, "a")
        bridged(desk, address, b"i" * 24)
    desk.ask("broker", "deleteAddress", "one", True)
    desk.ask("broker", "destroyQueue", "two", True, True)
    assert list(desk.broker.caches.by_name) == ["BRIDGE.one", "BRIDGE.two"]
    desk.settle()
    desk.restart()
    desk.open_desk()
    for address in ("one", "two"):
        sent(desk, address, "a")
        bridged(desk, address, b"i" * 24)
        assert count(desk, address) == 1


def come_and_gone(bench: Bench, numbers: range) -> None:
    """Temporary queues, each with an id of its own."""
    for number in numbers:
        name = f"reply.{number}"
        bench.queue(name, durable=False, temporary=True, auto_created=True)
        sent(bench, name, "a")
        bench.broker.queue_registry.delete(bench.now, name, "its client left")


@pytest.mark.parametrize("period_ms", [30_000, 0])
def test_caches_of_addresses_that_come_and_go_have_a_limit(
    monkeypatch: pytest.MonkeyPatch, period_ms: int
) -> None:
    """The oldest go first, also where addresses are not swept."""
    monkeypatch.setattr(duplicate_caches, "IDS_MAX", 100)
    bench = Bench(BrokerConfig(address_queue_scan_period_ms=period_ms))
    bench.broker.start_timers(bench.now)
    assert SWEEP_TIMER in bench.timers.due
    for start in range(0, 300, 60):
        come_and_gone(bench, range(start, start + 60))
        sweep(bench)
        bench.now += MINUTE
    kept = list(bench.broker.caches.by_name)
    assert kept == [f"reply.{number}" for number in range(200, 300)]
    bench.restart()
    assert list(bench.broker.caches.by_name) == kept


def test_ids_of_what_is_here_stay(bench: Bench) -> None:
    """Those of addresses that are here, also when they are sent to by queue."""
    bench.queue("orders")
    bench.queue("BRIDGE.named.so")
    for name in ("orders", "BRIDGE.orders::orders", "BRIDGE.named.so"):
        bench.broker.caches.cache_of(name).add(b"x", 0)
    bench.broker.caches.cache_of("asked.for.only")
    sweep(bench)
    bench.now += 30 * WEEK
    sweep(bench)
    assert list(bench.broker.caches.by_name) == [
        "orders",
        "BRIDGE.orders::orders",
        "BRIDGE.named.so",
    ]


def test_what_is_in_use_stays_though_its_address_was_never_here(bench: Bench) -> None:
    """A peer forwards to a queue of a wildcard address: its messages have addresses that are not known here."""
    for day in range(30):
        bench.broker.caches.cache_of("BRIDGE.news.sport").add(b"%d" % day, 0)
        sweep(bench)
        bench.now += WEEK - MINUTE
    cache = bench.broker.caches.by_name["BRIDGE.news.sport"]
    assert len(cache.ids) == 30
    bench.now += MINUTE
    sweep(bench)
    assert not bench.broker.caches.by_name
