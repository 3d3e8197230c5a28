"""Compaction: the disk stays bounded, what lives survives, and nothing is deleted too early."""

from __future__ import annotations

import random

import pytest

from tests.store.journal_rig import FIRST, config
from tests.store.key_table import Table

SEGMENT = 16 * 1024


def churn(table: Table, cycles: int, first_key: int = 1000) -> int:
    """Add and delete, one after the other, in turns of 25; returns the most files ever seen."""
    most = 0
    for start in range(0, cycles, 25):
        for cycle in range(start, min(cycles, start + 25)):
            table.put(first_key + cycle % 1000, 20)
            table.delete(first_key + cycle % 1000)
        table.rig.flush()
        table.rig.settle()
        table.compact()
        table.rig.settle()
        most = max(most, len(table.rig.disk.names()))
    return most


def test_steady_traffic_keeps_the_disk_bounded() -> None:
    table = Table(config(SEGMENT))
    table.start()
    most = churn(table, 100_000)
    written = sum(len(payload) + 5 for _, payload in table.written)
    assert written > 350 * SEGMENT
    # Two that are never compacted, one that is being written, one prepared, one on its way out.
    assert most <= 5
    table.crash()
    table.start()
    assert table.live == {}


@pytest.mark.parametrize("counted", [True, False])
def test_a_segment_without_anything_alive_goes_unread(counted: bool) -> None:
    table = Table(config(SEGMENT), counted=counted)
    table.start()
    assert churn(table, 20_000) <= 5
    assert (table.looked_at == 0) == counted
    # One that stays alive makes its segment be read, once a pass.
    table.put(7, 20)
    churn(table, 20_000)
    assert table.looked_at > 0 and 7 in table.live
    table.crash()
    table.start()
    assert list(table.live) == [7]
    churn(table, 20_000)
    table.crash()
    table.start()
    assert list(table.live) == [7]


def test_forgotten_before_its_commit() -> None:
    table = Table(config(SEGMENT))
    table.start()
    for _ in range(2_000):
        table.put(1, 200)
        table.delete(1)
        table.rig.flush()
        table.rig.settle()
        table.compact()
        table.rig.settle()
    assert table.looked_at == 0 and len(table.rig.disk.names()) <= 5


def test_long_lived_records_move_along_and_survive() -> None:
    table = Table(config(SEGMENT))
    table.start()
    for key in range(100):
        table.put(key, 30)
    most = churn(table, 20_000)
    assert most <= 6
    assert table.relocated > 100
    table.crash()
    table.start()
    assert sorted(table.live) == list(range(100))


def test_what_lives_takes_its_room_and_no_more() -> None:
    """Mostly long-lived records, more than the minimum of segments: about twice their size."""
    table = Table(config(SEGMENT))
    table.start()
    for key in range(1000):
        table.put(key, 50)
        table.rig.flush()
        table.rig.settle()
    live = table.live_bytes()
    assert live > 8 * SEGMENT - SEGMENT
    churn(table, 20_000)
    assert table.journal.total_bytes <= 2 * live + 3 * SEGMENT
    table.crash()
    table.start()
    assert len(table.live) == 1000


def one_among_many(size: int) -> Table:
    """A record of that size, then hundreds of another, of which only the last is alive."""
    table = Table(config(4096))
    table.start()
    table.put(1, size)
    for _ in range(200):
        table.put(2, 30)
        table.rig.flush()
        table.rig.settle()
    return table


def test_no_segment_goes_before_its_relocated_records_are_durable() -> None:
    table = one_among_many(100)
    assert table.journal.wants_compaction()
    while table.journal.compact_step(table.rig.schedule.now):
        pass
    assert table.relocated == 1
    assert table.rig.disk.names()[0] == FIRST
    assert not table.journal.wants_compaction(), "it waits for the relocated records"
    table.rig.flush()
    while table.rig.disk.names()[0] == FIRST:
        before = table.journal.durable
        assert table.rig.schedule.step()
    assert before >= table.live[1][0]


def test_a_step_is_bounded() -> None:
    table = Table(config(64 * 1024, compact_step_bytes=512), counted=False)
    table.start()
    for index in range(1500):
        table.put(index % 50, 60)
        table.rig.flush()
        table.rig.settle()
    assert table.journal.wants_compaction()
    steps = 0
    while True:
        before = table.relocated
        more = table.journal.compact_step(table.rig.schedule.now)
        steps += 1
        assert table.relocated - before <= 512 // 65 + 1
        if not more:
            break
    assert steps >= 100


def test_records_larger_than_a_step_and_larger_than_a_segment() -> None:
    table = Table(config(4096, compact_step_bytes=100))
    table.start()
    table.put(1, 1000)
    table.put(2, 10_000)
    churn(table, 2000)
    assert table.relocated >= 4
    table.crash()
    table.start()
    assert sorted(table.live) == [1, 2]


def test_too_low_an_estimate_of_live_bytes_does_not_rewrite_for_ever() -> None:
    table = Table(config(SEGMENT))
    table.guess_percentage = 0
    table.start()
    for key in range(2000):
        table.put(key, 50)
    table.rig.flush()
    table.rig.settle()
    for _ in range(1000):
        if not table.journal.wants_compaction():
            break
        table.compact()
        table.rig.settle()
    assert not table.journal.wants_compaction()
    assert table.relocated <= 3 * 2000
    # Growth makes it worth another look, so the disk stays bounded here too.
    churn(table, 20_000)
    assert table.journal.total_bytes < 3 * table.live_size


def test_an_idle_journal_below_the_threshold_is_left_alone() -> None:
    table = Table(config(SEGMENT, compact_min_segments=10))
    table.start()
    churn(table, 1500)
    assert table.relocated == 0 and table.rig.disk.names()[0] == FIRST


def test_a_damaged_segment_fails_the_journal_and_stays() -> None:
    table = one_among_many(1400)
    table.rig.disk.flip_bit(FIRST, 300)
    assert table.journal.wants_compaction()
    while table.journal.compact_step(table.rig.schedule.now):
        pass
    table.rig.settle()
    assert len(table.rig.failures) == 1
    assert f"journal file {FIRST}, offset 96: the block of record 1 does not match" in table.rig.failures[0]
    assert FIRST in table.rig.disk.names()


@pytest.mark.parametrize("turn", [10, 100])
def test_one_step_a_turn_keeps_up_with_heavy_turns(turn: int) -> None:
    """The node makes one step a turn, whatever the turn appends: the steps must grow with it."""
    table = Table(config(SEGMENT, compact_step_bytes=100))
    table.start()
    for key in range(200):
        table.put(key, 30)
    most = 0
    for _ in range(40_000 // turn):
        for cycle in range(turn):
            table.put(1000 + cycle, 20)
            table.delete(1000 + cycle)
        table.compact(1)
        table.rig.settle()
        most = max(most, table.journal.total_bytes)
    assert most < 2 * table.live_bytes() + 8 * SEGMENT + 2 * turn * 100


@pytest.mark.parametrize("seed", range(5))
def test_compaction_interleaves_with_traffic(seed: int) -> None:
    table = Table(config(4096, compact_step_bytes=200), seed)
    table.start()
    table.work(random.Random(seed), 2000, 40, 60)
    table.rig.flush()
    table.rig.settle()
    assert table.relocated > 100 and len(table.rig.disk.names()) < 10
    table.crash()
    table.start()
