"""Queues whose addresses overlap get each message once: at one node, after restarts, and from older journals."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.divert_config import PASS, DivertConfig
from atalanta.kernel.settings.broker_config import BrokerConfig
from tests.kernel.broker_rig import SECOND, Bench

PATTERNS = ["news.eu", "news.*", "news.#", "*.eu", "#"]


def counts(bench: Bench, names: list[str]) -> dict[str, int]:
    return {name: bench.broker.queues[name].message_count for name in names}


def send(bench: Bench, address: str, kind: int = MULTICAST, **properties: object) -> None:
    session = bench.session()
    session.send(bench.now, bench.message(address, b"m", True, _AMQ_ROUTING_TYPE=kind, **properties), 1)
    bench.settle()


def wait(bench: Bench, seconds: int) -> None:
    bench.now += seconds * SECOND
    bench.broker.on_timer(bench.now, "kernel.scheduled")
    bench.settle()


@pytest.mark.parametrize("kind", [MULTICAST, ANYCAST])
@pytest.mark.parametrize("order", [PATTERNS, PATTERNS[::-1], PATTERNS[2:] + PATTERNS[:2]])
def test_every_queue_gets_one_copy_before_and_after_restarts(bench: Bench, order: list[str], kind: int) -> None:
    for pattern in order:
        bench.queue(pattern, pattern, kind)
    send(bench, "news.eu", kind)
    assert counts(bench, PATTERNS) == dict.fromkeys(PATTERNS, 1)
    for expected in (2, 3):
        bench.restart()
        validate(bench.broker)
        send(bench, "news.eu", kind)
        assert counts(bench, PATTERNS) == dict.fromkeys(PATTERNS, expected)


def test_a_message_to_a_wildcard_address_stays_there_after_a_restart(bench: Bench) -> None:
    for pattern in ("news.#", "news.*"):
        bench.queue(pattern, pattern, MULTICAST)
    bench.settle()
    bench.restart()
    send(bench, "news.#")
    assert counts(bench, ["news.#", "news.*"]) == {"news.#": 1, "news.*": 0}


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_divert_to_an_address_of_several_queues_makes_one_copy_each_after_a_restart(exclusive: bool) -> None:
    config = BrokerConfig(diverts=[DivertConfig("tips", "tip", "news.eu, news.us", PASS, exclusive)])
    bench = Bench(config)
    bench.broker.diverts.deploy()
    for pattern in PATTERNS:
        bench.queue(pattern, pattern, MULTICAST)
    bench.settle()
    bench.restart()
    bench.broker.diverts.deploy()
    send(bench, "tip")
    # The divert leads to two addresses; `#` takes the message itself, too, unless the divert is exclusive.
    expected = {"news.eu": 1, "news.*": 2, "news.#": 2, "*.eu": 1, "#": 2 if exclusive else 3}
    assert counts(bench, PATTERNS) == expected
    validate(bench.broker)


def test_scheduled_messages_come_once_after_a_restart(bench: Bench) -> None:
    """A second route of a queue made two entries of the heap alike: the node ended at every start."""
    for pattern in ("pub.*", "pub.#"):
        bench.queue(pattern, pattern, MULTICAST)
    bench.settle()
    bench.restart()
    at_ms = bench.now // 1_000_000 + 5_000
    send(bench, "pub.t", _AMQ_SCHED_DELIVERY=at_ms)
    bench.restart()
    assert [queue.scheduled_count for queue in bench.broker.queues.values()] == [1, 1]
    bench.broker.start_timers(bench.now)
    wait(bench, 10)
    assert counts(bench, ["pub.*", "pub.#"]) == {"pub.*": 1, "pub.#": 1}
    validate(bench.broker)


# -- the heap of scheduled messages ---------------------------------------------------------------
def test_a_message_scheduled_again_for_the_same_time_is_listed_once(bench: Bench) -> None:
    queue = bench.queue("orders")
    scheduled = bench.broker.scheduled
    send(bench, "orders", ANYCAST, _AMQ_SCHED_DELIVERY=bench.now // 1_000_000 + 5_000)
    [(at_ms, reference)] = scheduled.of_queue(queue)
    scheduled.remove(reference)
    queue.count_scheduled(reference, -1)
    scheduled.schedule(reference, at_ms)
    assert scheduled.of_queue(queue) == [(at_ms, reference)]
    wait(bench, 10)
    assert (queue.message_count, queue.scheduled_count) == (1, 0)


def test_entries_of_one_message_and_one_queue_are_not_compared_further(bench: Bench) -> None:
    """Whatever brought them there: a comparison of references would end the node."""
    queue = bench.queue("orders")
    message = bench.message("orders")
    message.id = 7
    made = [Reference(message, queue, 0, b"") for _ in range(3)]
    for reference in made:
        bench.broker.scheduled.schedule_new(reference, 5_000)
    assert bench.broker.scheduled.of_queue(queue) == [(5_000, reference) for reference in made]
    assert bench.broker.scheduled.take_due(5_000, 9) == made
    for reference in made:
        queue.count_scheduled(reference, -1)
        queue.count_unsequenced(reference, -1)


# -- journals of earlier builds -------------------------------------------------------------------
def doubled(bench: Bench, queue: Queue, routes: list[tuple[int, bytes]], **properties: object) -> int:
    """Writes the record that an earlier build wrote for a message with these routes; the id of the message."""
    message = bench.message("pub.t", b"old", True, **properties)
    message.id = bench.broker.store.take_message_id()
    references = [Reference(message, queue, sequence, route_to) for sequence, route_to in routes]
    bench.journal.append(records.MESSAGE, encode_message_record(message, references, []))
    bench.journal.durable = bench.journal.last
    return int(message.id)


def binding(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_an_ordinary_queue_has_a_message_of_two_routes_once(bench: Bench) -> None:
    queue = bench.queue("q", "pub.*", MULTICAST)
    doubled(bench, queue, [(1, b""), (2, b"")])
    bench.restart()
    restored = bench.broker.queues["q"]
    assert [each.sequence for each in restored.live()] == [1]
    send(bench, "pub.t")
    assert [each.sequence for each in restored.live()] == [1, 3], "a sequence is never used twice"


def test_an_acknowledgement_ends_a_message_of_two_routes(bench: Bench) -> None:
    queue = bench.queue("q", "pub.*", MULTICAST)
    message_id = doubled(bench, queue, [(1, b""), (2, b"")])
    bench.journal.append(records.ACKS, records.encode_acks(queue.id, [message_id]))
    bench.journal.durable = bench.journal.last
    bench.restart()
    assert bench.broker.queues["q"].message_count == 0


def test_a_scheduled_message_of_two_routes_comes_once(bench: Bench) -> None:
    queue = bench.queue("q", "pub.*", MULTICAST)
    at_ms = bench.now // 1_000_000 + 5_000
    doubled(bench, queue, [(0, b""), (0, b"")], _AMQ_SCHED_DELIVERY=at_ms)
    bench.restart()
    bench.broker.start_timers(bench.now)
    restored = bench.broker.queues["q"]
    assert (restored.message_count, restored.scheduled_count) == (1, 1)
    wait(bench, 10)
    assert (restored.message_count, restored.scheduled_count) == (1, 0)


def test_a_peer_gets_one_copy_for_all_bindings_of_two_routes(bench: Bench) -> None:
    queue = bench.queue("sf", "sf", MULTICAST)
    doubled(bench, queue, [(1, binding(7)), (2, binding(8)), (3, binding(7))])
    bench.restart()
    [reference] = bench.broker.queues["sf"].live()
    assert reference.route_to == binding(8) + binding(7)


def test_the_compaction_writes_a_message_of_two_routes_with_one(bench: Bench) -> None:
    queue = bench.queue("sf", "sf", MULTICAST)
    doubled(bench, queue, [(1, binding(7)), (2, binding(8))])
    bench.restart()
    bench.compact(bench.journal.last)
    bench.restart()
    [reference] = bench.broker.queues["sf"].live()
    assert (reference.sequence, reference.route_to) == (1, binding(8) + binding(7))
    validate(bench.broker)
