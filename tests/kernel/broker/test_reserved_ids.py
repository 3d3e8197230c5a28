"""Ids are never used twice, whatever the clock says: the journal reserves them."""

from __future__ import annotations

from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.broker.reserved_ids import BLOCK_IDS, FoundIds
from atalanta.kernel.journal import records
from atalanta.message.encoding.buffer import Writer
from tests.kernel.broker_rig import SECOND, START, Bench

HOUR = 3600 * SECOND


def used_ids(bench: Bench) -> tuple[int, int]:
    """Takes ids that no record has, and returns the last ones."""
    for _ in range(1_000):
        message_id = bench.broker.store.take_message_id()
        binding_id = bench.broker.bindings.take_id()
    return message_id, binding_id


def counters(message_id: int, binding_id: int) -> bytes:
    """Returns a COUNTERS record of a version that reserved nothing."""
    writer = Writer()
    writer.int64(message_id)
    writer.int64(binding_id)
    return writer.getvalue()


def test_ids_begin_above_those_of_an_earlier_life_though_the_clock_went_back() -> None:
    bench = Bench()
    bench.settle()
    last = used_ids(bench)
    bench.now -= HOUR
    bench.restart()
    first = bench.broker.store.take_message_id(), bench.broker.bindings.take_id()
    assert first[0] > last[0] and first[1] > last[1]
    # A peer may name a binding of the earlier life: the queue behind it may be there again.
    assert bench.broker.bindings.is_lost(last[1])


def test_further_ids_are_reserved_before_the_block_is_used_up() -> None:
    bench = Bench()
    bench.settle()
    for _ in range(3):
        bench.broker.store.skip_message_ids(bench.broker.store.next_message_id + BLOCK_IDS // 2)
        bench.settle()
    last = used_ids(bench)
    bench.now -= HOUR
    bench.restart()
    assert bench.broker.store.next_message_id > last[0]


def test_compaction_keeps_what_is_reserved() -> None:
    bench = Bench()
    bench.settle()
    bench.broker.reserved_ids.take_number(bench.now + HOUR, 0)
    bench.settle()
    last = used_ids(bench)
    bench.compact(bench.journal.last)
    bench.now -= HOUR
    bench.restart()
    assert bench.broker.store.next_message_id > last[0]
    assert bench.broker.reserved_ids.take_number(bench.now, 0) > (START + HOUR) // 1_000_000


def test_a_folder_of_an_earlier_version_begins_once_at_the_clock() -> None:
    bench = Bench()
    recovery = Recovery(bench.broker)
    recovery.on_record(1, records.COUNTERS, counters(500, 300))
    recovery.finish(START + HOUR)
    assert bench.broker.store.next_message_id == (START + HOUR) // 1_000
    assert bench.broker.bindings.next_id == (START + HOUR) // 1_000


def test_ids_begin_at_the_clock_when_an_earlier_version_has_used_ids_above_the_marks() -> None:
    """It ran in between: it read the marks as its next ids, and reserved nothing."""
    found = FoundIds()
    found.on_counters(1_000, 1_000, 5)
    assert found.trusted()
    found.message_id_max = 1_000
    assert not found.trusted()
    found.on_counters(2_000, 2_000, -1)
    assert not found.trusted()
    bench = Bench()
    bench.broker.reserved_ids.begin(START + HOUR, found, 0)
    assert bench.broker.store.next_message_id == (START + HOUR) // 1_000


def test_the_number_of_an_announcement_is_above_every_former_one_and_near_the_clock() -> None:
    bench = Bench()
    reserved = bench.broker.reserved_ids
    now_ms = bench.now // 1_000_000
    assert reserved.take_number(bench.now, 0) == now_ms
    assert reserved.take_number(bench.now - HOUR, 0) == now_ms + 1
    assert reserved.take_number(bench.now, now_ms + 50) == now_ms + 51
    bench.settle()
    bench.now -= HOUR
    bench.restart()
    assert bench.broker.reserved_ids.take_number(bench.now, 0) == now_ms + 52
    assert bench.broker.reserved_ids.take_number(bench.now + 2 * HOUR, 0) == (bench.now + 2 * HOUR) // 1_000_000


def test_ids_that_an_earlier_version_has_used_above_the_marks_are_not_used_again() -> None:
    """It ran in between, began at the mark, which is ahead of the clock, and recorded none of its ids."""
    found = FoundIds()
    mark = START // 1_000 + 3 * BLOCK_IDS
    found.on_counters(mark, mark, -1)
    bench = Bench()
    bench.broker.reserved_ids.begin(START, found, 0)
    assert bench.broker.store.next_message_id >= mark + BLOCK_IDS
    assert bench.broker.bindings.next_id >= mark + BLOCK_IDS
