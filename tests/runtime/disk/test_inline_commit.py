"""When the node's own thread commits: as long as the disk is fast, and never for long once it is not."""

from __future__ import annotations

from atalanta.runtime.disk.inline_commit import BYTES_MAX, PAUSE_MAX, SMALL_BYTES, OwnCommits

FAST_S = 0.000_15
SLOW_S = 0.005
HUNG_S = 10.0


def of_many(own: OwnCommits, size: int, took_s: float, count: int) -> int:
    """Returns how many of `count` commits that all take so long the node's thread does."""
    done = 0
    for _ in range(count):
        if own.wanted(size):
            own.own(size, took_s)
            done += 1
        else:
            own.worker(size, took_s)
    return done


def test_a_fast_disk_keeps_the_worker_out_but_for_the_first() -> None:
    own = OwnCommits()
    assert of_many(own, 1_300, FAST_S, 1_000) == 999
    assert of_many(own, 500_000, 0.000_6, 1_000) == 999, "so many bytes may take a little longer"


def test_what_is_too_long_is_the_workers() -> None:
    own = OwnCommits()
    assert of_many(own, BYTES_MAX + 1, FAST_S, 100) == 0


def test_a_slow_disk_is_tried_ever_more_rarely() -> None:
    own = OwnCommits()
    of_many(own, 1_300, FAST_S, 100)
    assert of_many(own, 1_300, SLOW_S, 100) <= 12
    of_many(own, 1_300, SLOW_S, 2 * PAUSE_MAX)
    assert of_many(own, 1_300, SLOW_S, 10 * PAUSE_MAX) <= 11


def test_a_hung_disk_is_not_tried_at_all() -> None:
    own = OwnCommits()
    assert of_many(own, 1_300, HUNG_S, 10 * PAUSE_MAX) == 0


def test_one_slow_commit_among_many_changes_nothing() -> None:
    own = OwnCommits()
    of_many(own, 1_300, FAST_S, 100)
    assert of_many(own, 1_300, SLOW_S, 1) == 1
    assert of_many(own, 1_300, FAST_S, 100) == 100


def test_a_disk_that_hangs_holds_the_node_up_once() -> None:
    own = OwnCommits()
    for size in (1_300, 500_000):
        of_many(own, size, FAST_S, 100)
    assert of_many(own, 1_300, HUNG_S, 1) == 1
    assert of_many(own, 1_300, HUNG_S, 5) == of_many(own, 500_000, HUNG_S, 5) == 0
    assert of_many(own, 1_300, FAST_S, 100) == of_many(own, 500_000, FAST_S, 100) - 1 == 99


def test_a_disk_that_is_fast_again_is_noticed() -> None:
    own = OwnCommits()
    of_many(own, 1_300, SLOW_S, 3 * PAUSE_MAX)
    of_many(own, 1_300, FAST_S, 2 * PAUSE_MAX)
    assert of_many(own, 1_300, FAST_S, 100) == 100


def test_slow_bulk_does_not_take_small_commits_from_the_turn() -> None:
    own = OwnCommits()
    of_many(own, SMALL_BYTES, FAST_S, 100)
    of_many(own, BYTES_MAX, SLOW_S, 100)
    assert of_many(own, SMALL_BYTES, FAST_S, 100) == 100
