"""The log view: repeatable reads, fencing, and what a lease keeps away."""

from __future__ import annotations

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.delivery.freed_references import FREED_MAX, FREED_TIMER
from atalanta.kernel.queue.queue import Queue
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint

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


def test_the_high_water_mark_survives_the_compaction_of_an_empty_queue(bench: Bench) -> None:
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


def test_a_released_lease_no_longer_pins_its_queue(bench: Bench) -> None:
    queue = filled(bench, 1)
    epoch = lease(bench)
    bench.broker.log_views.lease(
        bench.now, "archive", "spark", "driver", 0, epoch, RecordingEndpoint(), 1
    )
    bench.settle()
    assert queue.active_lease() is None
    bench.restart()
    assert bench.broker.log_views.queue_for("archive", "").active_lease() is None


def test_uncommitted_and_unsynced_messages_are_not_shown(bench: Bench) -> None:
    filled(bench, 2)
    session = bench.session()
    session.send(bench.now, bench.message("flights", b"late"), 1)
    assert bench.broker.log_views.position("archive").last == 2
    assert bench.broker.log_views.plan("archive", "", 0, -1, -1)[0] == 2
    bench.settle()
    assert bench.broker.log_views.plan("archive", "", 0, -1, -1)[0] == 3


def test_in_a_leased_queue_non_durable_messages_are_kept_and_shown_too(bench: Bench) -> None:
    filled(bench, 1)
    lease(bench)
    bench.session().send(bench.now, bench.message("flights", b"light", durable=False), 1)
    bench.settle()
    assert bodies(bench, 0, 2) == [b"0", b"light"]
    bench.restart()
    assert bodies(bench, 0, 2) == [b"0", b"light"]


def test_many_acknowledged_at_once_are_gone_at_once_and_freed_in_turns(bench: Bench) -> None:
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


def test_the_node_knows_without_a_search_if_a_queue_was_ever_leased(bench: Bench) -> None:
    """Messages of such a queue are durable on arrival: also after the end of the lease, until the queue is deleted."""
    filled(bench, 3)
    bench.queue("other")

    def leased() -> int:
        bench.settle()
        invariants.validate(bench.broker)
        assert bench.broker.log_views.any_leased() == (bench.broker.queue_registry.leased > 0)
        return bench.broker.queue_registry.leased

    assert leased() == 0
    epoch = lease(bench)
    lease(bench, epoch)
    lease(bench, owner="another driver")
    assert leased() == 1
    views = bench.broker.log_views
    held = views.lease(bench.now, "other", "g", "me", TTL, 0, RecordingEndpoint(), 1)
    assert leased() == 2
    views.lease(bench.now, "other", "g", "me", 0, held.epoch, RecordingEndpoint(), 1)
    views.lease(bench.now, "other", "later", "me", TTL, 0, RecordingEndpoint(), 1)
    assert leased() == 2
    bench.now += 2 * TTL
    views.end_leases(bench.now)
    assert bench.broker.queues["archive"].active_lease() is None and leased() == 2
    bench.restart()
    assert leased() == 2
    changes = QueueChanges()
    changes.filter_text = "a = 1"
    bench.broker.queue_registry.update(bench.now, "archive", changes)
    assert leased() == 2
    bench.compact(bench.journal.last)
    bench.restart()
    bench.broker.queue_registry.delete(bench.now, "other", "not needed")
    assert leased() == 1
    bench.broker.queue_registry.delete(bench.now, "archive", "not needed")
    assert leased() == 0
    filled(bench, 1)
    assert leased() == 0
    bench.restart()
    assert leased() == 0


def has_begun(bench: Bench, group: str = "spark") -> bool:
    held = bench.broker.log_views.lease(bench.now, "archive", group, "driver", TTL, 0, RecordingEndpoint(), 1)
    bench.settle()
    return held.has_position


def test_a_group_has_begun_when_it_has_acknowledged_and_not_when_it_has_a_lease(bench: Bench) -> None:
    filled(bench, 3)
    assert not has_begun(bench)
    bench.restart()
    assert not has_begun(bench)
    epoch = lease(bench)
    bench.broker.log_views.ack_through("archive", "", "spark", epoch, 0, RecordingEndpoint(), 1)  # none
    bench.settle()
    bench.restart()
    assert has_begun(bench)
    bench.compact(bench.journal.last)
    bench.restart()
    assert has_begun(bench)


def test_what_leaves_a_leased_queue_unseen_is_lost_like_what_was_seen(bench: Bench) -> None:
    queue = filled(bench, 3)
    lease(bench)
    bench.broker.log_views.read("archive", "", 0, 1, 300, None)
    bench.broker.mover.purge(queue, "purged by an operator")
    bench.settle()
    lost = bench.broker.log_views.lost_ranges("archive", "", 0, 3)
    assert sum(last - first + 1 for first, last, _ in lost) == 3


def test_before_the_first_lease_messages_that_are_not_durable_are_named(bench: Bench) -> None:
    filled(bench, 2)
    session = bench.session()
    for number in range(3):
        session.send(bench.now, bench.message("flights", b"light", durable=False), number)
    bench.settle()
    assert bench.broker.log_views.lost_ranges("archive", "", 0, 2) == []
    (hidden,) = bench.broker.log_views.lost_ranges("archive", "", 0, 100)
    assert hidden[:2] == (3, 5) and hidden[2].startswith("not durable")
    lease(bench)
    assert bench.broker.log_views.lost_ranges("archive", "", 0, 100) == []


def test_a_lease_that_has_ended_by_its_time_does_not_come_back_with_a_restart(bench: Bench) -> None:
    filled(bench, 1)
    lease(bench, group="old")
    bench.now += TTL + 2 * SECOND
    bench.broker.log_views.end_leases(bench.now)
    bench.settle()
    assert bench.broker.log_views.queue_for("archive", "").active_lease() is None
    epoch = lease(bench, group="new")
    bench.restart()
    assert lease(bench, epoch, group="new") == epoch  # renewed: the old group's lease stands in no way
