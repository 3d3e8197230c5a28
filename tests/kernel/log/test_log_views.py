"""The log view: repeatable reads, fencing, and what a lease keeps away."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import FENCED, INCARNATION_CHANGED, RANGE_LOST, BrokerError
from atalanta.kernel.queue.delivery.freed_references import FREED_MAX, FREED_TIMER
from atalanta.kernel.queue.queue import Queue
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, consume, endpoint

TTL = 60 * SECOND


def filled(bench: Bench, count: int) -> Queue:
    queue = bench.queue("archive", "flights", 0)
    session = bench.session()
    for number in range(count):
        session.send(bench.now, bench.message("flights", str(number).encode()), number)
    bench.settle()
    return queue


def bodies(bench: Bench, start: int, end: int) -> list[bytes]:
    found: list[bytes] = []
    while True:
        chunk = bench.broker.log_views.read("archive", "", start, end, 300, None)
        found.extend(reference.message.body for reference in chunk.references)
        start = chunk.next
        if chunk.last:
            return found


def lease(bench: Bench, epoch: int = 0, owner: str = "driver", group: str = "spark") -> int:
    held = bench.broker.log_views.lease(
        bench.now, "archive", group, owner, TTL, epoch, RecordingEndpoint(), 1
    )
    bench.settle()
    return held.epoch


def test_a_range_reads_the_same_twice_and_after_a_crash() -> None:
    bench = Bench()
    filled(bench, 20)
    assert bench.broker.log_views.plan("archive", "", 0, 8, -1)[:2] == (8, 8)
    first = bodies(bench, 0, 8)
    assert first == [str(n).encode() for n in range(8)]
    assert bodies(bench, 0, 8) == first
    bench.restart()
    assert bodies(bench, 0, 8) == first


def test_ack_through_is_durable_idempotent_and_final() -> None:
    bench = Bench()
    queue = filled(bench, 10)
    epoch = lease(bench)
    answers = RecordingEndpoint()
    assert bench.broker.log_views.ack_through("archive", "", "spark", epoch, 4, answers, 9) == 4
    assert answers.answers == []
    bench.settle()
    assert bench.broker.log_views.ack_through("archive", "", "spark", epoch, 4, answers, 10) == 0
    bench.settle()
    assert answers.answers == [9, 10]
    bench.restart()
    position = bench.broker.log_views.position("archive")
    assert (position.first, position.last, position.messages, position.acked_through) == (
        5,
        10,
        6,
        4,
    )
    assert queue.incarnation == position.incarnation
    with pytest.raises(BrokerError) as lost:
        bench.broker.log_views.read("archive", "", 0, 6, 0, None)
    assert lost.value.code == RANGE_LOST


def test_the_high_water_mark_survives_the_compaction_of_an_empty_queue() -> None:
    bench = Bench()
    filled(bench, 10)
    epoch = lease(bench)
    bench.broker.log_views.ack_through("archive", "", "spark", epoch, 10, RecordingEndpoint(), 1)
    bench.settle()
    bench.compact(bench.journal.last)
    bench.restart()
    position = bench.broker.log_views.position("archive")
    assert (position.first, position.last, position.messages) == (11, 10, 0)
    session = bench.session()
    session.send(bench.now, bench.message("flights", b"new"), 1)
    bench.settle()
    assert bodies(bench, 10, 11) == [b"new"]


def test_an_older_epoch_is_fenced_also_after_a_restart() -> None:
    bench = Bench()
    filled(bench, 3)
    old = lease(bench, owner="first")
    new = lease(bench, owner="second")
    assert new == old + 1
    bench.restart()
    with pytest.raises(BrokerError, match="taken over by second") as fenced:
        bench.broker.log_views.ack_through("archive", "", "spark", old, 1, RecordingEndpoint(), 1)
    assert fenced.value.code == FENCED


def test_a_leased_queue_refuses_other_consumers_and_other_groups() -> None:
    bench = Bench()
    filled(bench, 3)
    lease(bench)
    with pytest.raises(BrokerError, match="leased") as refused:
        consume(bench.session(), bench, "archive")
    assert refused.value.code == FENCED
    with pytest.raises(BrokerError, match="one group reads a queue"):
        lease(bench, group="other")


def test_what_leaves_after_the_lease_ended_is_reported_as_lost() -> None:
    bench = Bench()
    filled(bench, 5)
    lease(bench)
    bench.broker.log_views.plan("archive", "", 0, 3, -1)
    bench.now += TTL + SECOND
    bench.broker.log_views.end_leases(bench.now)
    thief = bench.session()
    consume(thief, bench, "archive")
    bench.settle()
    thief.acknowledge(bench.now, 0, endpoint(thief).message_ids[4], False, 1)
    bench.settle()
    expected = [(1, 3, "acknowledged by another consumer")]
    assert bench.broker.log_views.lost_ranges("archive", "", 0, 3) == expected
    bench.restart()
    assert bench.broker.log_views.lost_ranges("archive", "", 0, 3) == expected


def test_a_queue_made_anew_is_another_incarnation() -> None:
    bench = Bench()
    queue = filled(bench, 1)

    bench.broker.queue_registry.delete(bench.now, "archive", "deleted")
    bench.queue("archive", "flights", 0)
    with pytest.raises(BrokerError) as changed:
        bench.broker.log_views.plan("archive", queue.incarnation, 0, 1, -1)
    assert changed.value.code == INCARNATION_CHANGED


def test_uncommitted_and_unsynced_messages_are_not_shown() -> None:
    bench = Bench()
    filled(bench, 2)
    session = bench.session()
    session.send(bench.now, bench.message("flights", b"late"), 1)
    assert bench.broker.log_views.position("archive").last == 2
    assert bench.broker.log_views.plan("archive", "", 0, -1, -1)[0] == 2
    bench.settle()
    assert bench.broker.log_views.plan("archive", "", 0, -1, -1)[0] == 3


def test_seek_by_time_finds_the_place_before_the_first_message() -> None:
    bench = Bench()
    bench.queue("archive", "flights", 0)
    session = bench.session()
    for number in range(5):
        message = bench.message("flights", b"")
        message.timestamp = 1_000 + number
        session.send(bench.now, message, number)
    bench.settle()
    assert bench.broker.log_views.seek("archive", 1_003) == 3
    assert bench.broker.log_views.seek("archive", 9_999) == 5


def test_in_a_leased_queue_non_durable_messages_are_kept_and_shown_too() -> None:
    bench = Bench()
    filled(bench, 1)
    lease(bench)
    bench.session().send(bench.now, bench.message("flights", b"light", durable=False), 1)
    bench.settle()
    assert bodies(bench, 0, 2) == [b"0", b"light"]
    bench.restart()
    assert bodies(bench, 0, 2) == [b"0", b"light"]


def test_many_acknowledged_at_once_are_gone_at_once_and_freed_in_turns() -> None:
    bench = Bench()
    count = 2 * FREED_MAX + 5
    queue = filled(bench, count)
    bench.broker.log_views.ack_through(
        "archive", "", "spark", lease(bench), count, RecordingEndpoint(), 9
    )
    assert (queue.message_count, queue.bytes, bench.broker.memory.used_bytes) == (0, 0, 0)
    assert bench.broker.log_views.position("archive").messages == 0
    turns = 0
    while bench.timers.due.pop(FREED_TIMER, None) is not None:
        bench.broker.on_timer(bench.now, FREED_TIMER)
        turns += 1
    assert (turns, bench.broker.log_views.freed.lists) == (3, [])
