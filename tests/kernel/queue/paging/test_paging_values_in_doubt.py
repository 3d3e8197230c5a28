"""Last values in page files, of which the newest is acknowledged in a branch in doubt when the node crashes.

An older one of that value was at a consumer, and lies in its file again. It has a newer one, so it goes at the restart:
as if the consumer had given it back, and as in a queue that does not page.
"""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.transactions import xa_session
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.queue.paging.branch_rig import XID, branch_of, ended
from tests.kernel.queue.paging.paging_rig import files
from tests.kernel.queue.paging.paging_values_rig import held_by_a_consumer, put, there
from tests.kernel.queue.paging.special_paging_rig import bench_with, reader, seen


def taken_in_doubt(bench: Bench, selector: str, number: int) -> None:
    """A branch has taken `number`, and is prepared."""
    session = branch_of(bench)
    xa_session.start(session, bench.now, XID)
    consume(session, bench, "orders", selector)
    bench.settle()
    assert seen(session) == [number]
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
    xa_session.end(session, bench.now, XID)
    xa_session.prepare(session, bench.now, XID, session.endpoint, 0)
    session.close(bench.now, False)
    bench.settle()


def in_memory(bench: Bench) -> None:
    """The older value is at a consumer; nothing of the queue lies in files."""
    put(bench, range(250, 251), 300)
    assert seen(reader(bench, "key = '250'", credits=1)) == [250]
    put(bench, range(550, 551), 300)
    taken_in_doubt(bench, "key = '250'", 550)


def in_files(bench: Bench) -> None:
    """The older value lies in a file, the newer one in another."""
    held_by_a_consumer(bench)
    taken_in_doubt(bench, "key = '250'", 550)


def behind_a_file(bench: Bench) -> None:
    """The queue is in memory, its last file is kept for 60, which a consumer has."""
    put(bench, range(100), 300)
    early = reader(bench)
    for place in range(100):
        bench.settle()
        if seen(early)[place] != 60:
            early.acknowledge(bench.now, 0, endpoint(early).message_ids[place], True, 0)
    bench.settle()
    early.stop()
    queue = bench.broker.queues["orders"]
    assert queue.paged is None and files(bench) == 1 and queue.message_count == 1


def in_the_tail(bench: Bench) -> None:
    """Both came after the last file."""
    behind_a_file(bench)
    in_memory(bench)


def in_a_file_and_the_tail(bench: Bench) -> None:
    """The older value is the one that the file is kept for."""
    behind_a_file(bench)
    put(bench, range(360, 361), 300)
    taken_in_doubt(bench, "key = '60'", 360)


# What is there besides the one in doubt, and that.
LEFT = {
    in_memory: ([], 550),
    in_files: ([n for n in range(300, 700) if n != 550], 550),
    in_the_tail: ([60], 550),
    in_a_file_and_the_tail: ([], 360),
}


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("begin", list(LEFT))
def test_the_older_one_is_not_taken_for_the_newest(begin: object, commit: bool) -> None:
    bench = bench_with(last_value_key="key")
    assert begin in LEFT and callable(begin)
    begin(bench)
    left, doubtful = LEFT[begin]
    for _ in range(2):  # the second time what the first restart wrote counts
        bench.restart()
        bench.settle()
        invariants.validate(bench.broker)
        assert sorted(there(bench)) == sorted([*left, doubtful])
        assert bench.broker.queues["orders"].delivering_count == 1
    ended(bench, commit)
    expected = sorted(left if commit else [*left, doubtful])
    assert sorted(there(bench)) == expected
    invariants.validate(bench.broker)
    bench.restart()
    bench.settle()
    assert sorted(there(bench)) == expected
    invariants.validate(bench.broker)


@pytest.mark.parametrize("commit", [True, False])
def test_what_came_after_the_one_in_doubt_replaces_both(commit: bool) -> None:
    """A third one, newer than both: a rolled back branch gives back nothing."""
    bench = bench_with(last_value_key="key")
    in_files(bench)
    put(bench, range(850, 851), 300)
    bench.restart()
    bench.settle()
    invariants.validate(bench.broker)
    left = [*(n for n in range(300, 700) if n != 550), 850]
    assert sorted(there(bench)) == left
    ended(bench, commit)
    for _ in range(2):
        assert sorted(there(bench)) == left
        invariants.validate(bench.broker)
        bench.restart()
        bench.settle()
