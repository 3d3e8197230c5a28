"""Retained messages that are large, damaged, or held by a prepared branch when their neighbours were acknowledged."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.log.log_dead_letters import LogDeadLetters
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint
from tests.kernel.memory.large_rig import LargeBench, fill
from tests.kernel.queue.paging.branch_rig import ended, prepared_behind_a_page
from tests.kernel.queue.paging.paging_rig import SMALL, bench_with, send

HOUR_MS = 3_600_000


def retaining(bench: Bench) -> int:
    """A lease of the queue with a retention of an hour; its epoch."""
    views = bench.broker.log_views
    answers = RecordingEndpoint()
    epoch = views.lease(bench.now, "orders", "g", "me", 60 * SECOND, 0, answers, 1).epoch
    views.retain("orders", "", "g", epoch, HOUR_MS, 0, -1, answers, 2)
    bench.settle()
    return epoch


def acknowledge(bench: Bench, epoch: int, end: int) -> None:
    bench.broker.log_views.ack_through("orders", "", "g", epoch, end, RecordingEndpoint(), 3)
    bench.settle()
    invariants.validate(bench.broker)


def sequences(bench: Bench, end: int) -> list[int]:
    found: list[int] = []
    start = 0
    while start < end:
        chunk = bench.broker.log_views.read("orders", "", start, end, 0, None)
        found += [reference.sequence for reference in chunk.references]
        start = chunk.next
    return found


def test_bodies_of_large_messages_stay_as_long_as_their_messages() -> None:
    bench = LargeBench({"max_size_bytes": 20_000, "page_size_bytes": 8_000})
    epoch = retaining(bench)
    fill(bench, 40)
    acknowledge(bench, epoch, 15)
    acknowledge(bench, epoch, 37)
    retained = bench.broker.queues["orders"].log.retained
    assert retained is not None and retained.total_bytes() >= 37 * 2_000
    bench.power_cut()
    assert sequences(bench, 40) == list(range(1, 41))
    assert len(bench.folder.contents) == 40
    bench.now += 2 * HOUR_MS * 1_000_000
    bench.broker.log_views.end_leases(bench.now)
    bench.settle()
    assert len(bench.folder.contents) == 3
    bench.power_cut()
    assert (len(bench.folder.contents), sequences_from(bench, 37)) == (3, [38, 39, 40])


def sequences_from(bench: Bench, start: int) -> list[int]:
    chunk = bench.broker.log_views.read("orders", "", start, 40, 0, None)
    return [reference.sequence for reference in chunk.references]


def test_damaged_messages_are_listed_as_lost() -> None:
    bench = bench_with(SMALL)
    epoch = retaining(bench)
    send(bench, range(300))
    acknowledge(bench, epoch, 300)
    assert bench.pages is not None
    first = min(bench.pages.files)
    bench.pages.files[first] = [b"broken" for _ in bench.pages.files[first]]
    found = sequences(bench, 300)
    ((start, end, why),) = bench.broker.log_views.lost_ranges("orders", "", 0, 300)
    assert why == "the page file is damaged"
    assert found == [at for at in range(1, 301) if not start <= at <= end]


def test_a_retained_message_is_no_dead_letter() -> None:
    bench = bench_with(SMALL)
    epoch = retaining(bench)
    send(bench, range(20))
    acknowledge(bench, epoch, 10)
    moves = LogDeadLetters(bench.broker.log_views, bench.broker.dead_letters)
    with pytest.raises(BrokerError, match="only retained: a replay cannot move it"):
        moves.move(bench.now, "orders", "", "g", epoch, 5, "why", RecordingEndpoint(), 1)
    assert sequences(bench, 10) == list(range(1, 11))


@pytest.mark.parametrize("commit", [True, False])
def test_a_message_of_a_prepared_branch_is_not_retained_but_listed(commit: bool) -> None:
    bench = bench_with(SMALL)
    prepared_behind_a_page(bench)
    bench.restart()
    bench.settle()
    send(bench, range(110, 250))
    epoch = retaining(bench)
    acknowledge(bench, epoch, 250)
    assert bench.broker.log_views.lost_ranges("orders", "", 0, 250) == [
        (101, 101, "not retained: a prepared branch held it")
    ]
    kept = [61, *range(102, 251)]
    for _ in range(2):
        assert sequences(bench, 250) == kept
        bench.restart()
    ended(bench, commit)
    invariants.validate(bench.broker)
    bench.restart()
    assert sequences(bench, 250) == kept
    with pytest.raises(BrokerError, match="ends at 250"):
        acknowledge(bench, epoch, 251)
