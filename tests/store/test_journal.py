"""Appending and committing: what is reported durable, when, and what a failure ends."""

from __future__ import annotations

import pytest

from atalanta.store.errors import JournalFailed
from tests.store.journal_rig import FIRST, SECOND, Collector, Rig, config


def test_lsns_are_consecutive_from_one() -> None:
    rig = Rig()
    rig.start()
    assert [rig.journal.append(1, b"x") for _ in range(3)] == [1, 2, 3]
    assert (rig.journal.last, rig.journal.durable) == (3, 0)


def test_nothing_is_durable_before_the_disk_says_so() -> None:
    rig = Rig()
    rig.start()
    rig.append(b"a", b"b")
    rig.flush()
    assert rig.durable == [] and rig.journal.durable == 0
    rig.settle()
    assert rig.durable == [2] and rig.journal.durable == 2


def test_a_single_record_during_a_commit_needs_no_further_input() -> None:
    # The stall of facts/hot-path.md §4: one outstanding record, nothing else arriving.
    rig = Rig()
    rig.start()
    rig.append(b"first")
    rig.flush()
    rig.append(b"second")
    rig.flush()
    rig.settle()
    assert rig.durable == [1, 2]


def test_records_of_a_turn_share_one_commit() -> None:
    rig = Rig(config(64 * 1024))
    rig.start()
    for _ in range(10):
        rig.append(*[b"x" * 20] * 10)
        rig.flush()
    rig.settle()
    # The first ten went alone, all that came while they were written went together.
    assert rig.durable == [10, 100] and rig.disk.commits == 2


def test_records_appended_by_on_durable_are_committed_by_the_flush_of_that_turn() -> None:
    rig = Rig()
    rig.start()
    rig.commit(b"a")
    rig.append(b"b")
    rig.flush()
    rig.settle()
    assert rig.journal.idle() and rig.restart().payloads() == [b"a", b"b"]


def test_segments_are_filled_one_after_the_other() -> None:
    rig = Rig(config(4096))
    rig.start()
    for index in range(200):
        rig.commit(b"%03d" % index + b"x" * 97)
    assert len(rig.disk.names()) > 5
    assert rig.restart().payloads() == [b"%03d" % index + b"x" * 97 for index in range(200)]


def test_one_turn_larger_than_a_segment() -> None:
    rig = Rig(config(4096))
    rig.start()
    payloads = [bytes([index]) * 300 for index in range(100)]
    rig.commit(*payloads)
    assert rig.journal.durable == 100
    assert rig.restart().payloads() == payloads


@pytest.mark.parametrize("before", [0, 1, 3000])
def test_a_record_larger_than_a_segment(before: int) -> None:
    """Into an empty journal, into a used segment, and where a spare segment was prepared."""
    rig = Rig(config(4096))
    rig.start()
    small = [b"s" * before] if before else []
    large = bytes(range(256)) * 400
    rig.commit(*small)
    rig.commit(large)
    rig.commit(b"after")
    assert rig.disk.names()[0] == FIRST
    assert rig.restart().payloads() == [*small, large, b"after"]
    rig.commit(b"later")
    assert rig.restart().payloads() == [*small, large, b"after", b"later"]


def test_a_block_is_limited() -> None:
    rig = Rig(config(64 * 1024, block_size_bytes_max=1000))
    rig.start()
    rig.commit(*[b"x" * 95] * 25)
    assert rig.durable == [10, 20, 25]


def test_the_next_segment_is_prepared_ahead() -> None:
    rig = Rig(config(4096))
    rig.start()
    rig.commit(b"x" * 2500)
    assert rig.disk.names() == [FIRST, SECOND]
    rig.restart()
    rig.commit(b"y" * 2500)
    assert rig.restart().payloads() == [b"x" * 2500, b"y" * 2500]


def test_after_a_failed_sync_nothing_is_confirmed_any_more() -> None:
    rig = Rig()
    rig.start()
    rig.commit(b"good")
    rig.disk.fail_next_sync()
    rig.append(b"lost")
    rig.flush()
    rig.append(b"waiting")
    rig.settle()
    assert rig.durable == [1] and rig.journal.durable == 1
    assert len(rig.failures) == 1
    with pytest.raises(JournalFailed, match="does not sync"):
        rig.journal.append(1, b"more")
    rig.journal.on_committed(rig.schedule.now, 2)
    rig.journal.on_failed(rig.schedule.now, "again")
    rig.flush()
    rig.settle()
    assert rig.durable == [1] and len(rig.failures) == 1
    assert not rig.journal.wants_compaction()


def test_a_failed_creation_ends_the_journal_too() -> None:
    rig = Rig()
    rig.start()
    rig.disk.fail_next_sync()
    rig.commit(b"x")
    assert rig.durable == [] and len(rig.failures) == 1


def test_after_a_failure_and_a_restart_all_confirmed_records_are_there() -> None:
    for seed in range(50):
        rig = Rig(config(4096), seed)
        rig.start()
        rig.commit(b"one", b"two")
        rig.disk.fail_next_sync()
        rig.commit(b"three" * 500)
        assert rig.restart().payloads()[:2] == [b"one", b"two"]
        rig.commit(b"four")
        assert rig.restart().payloads()[-1] == b"four"


def test_bad_arguments_change_nothing() -> None:
    rig = Rig()
    rig.start()
    with pytest.raises(Exception, match="kind 256"):
        rig.journal.append(256, b"x")
    assert rig.journal.last == 0
    with pytest.raises(RuntimeError, match="once"):
        rig.journal.recover(Collector())


def test_a_wrong_token_is_noticed() -> None:
    rig = Rig()
    rig.start()
    with pytest.raises(ValueError, match="commit 7 completed"):
        rig.journal.on_committed(0, 7)
