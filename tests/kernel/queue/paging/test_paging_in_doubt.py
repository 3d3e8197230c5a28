"""Queues that page, and distributed transactions that are in doubt at a restart."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.transactions import xa_session
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.queue.paging.branch_rig import XID, branch_of, ended
from tests.kernel.queue.paging.paging_rig import SMALL, Taker, bench_with, files, held, send


def prepared_behind_a_page(bench: Bench) -> None:
    """The queue is in memory: 60 came from a page, whose file is still there; 100 is acknowledged by the branch."""
    send(bench, range(100))
    early = bench.session()
    consume(early, bench, "orders")
    seen = endpoint(early)
    acknowledged = 0
    while acknowledged < 100:
        bench.settle()
        for place in range(acknowledged, len(seen.message_ids)):
            if place != 60:
                early.acknowledge(bench.now, 0, seen.message_ids[place], True, 0)
        acknowledged = len(seen.message_ids)
    bench.settle()
    early.stop()
    send(bench, range(100, 110))
    queue = bench.broker.queues["orders"]
    assert queue.paged is None and files(bench) == 1 and queue.message_count == 11
    session = branch_of(bench)
    xa_session.start(session, bench.now, XID)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
    xa_session.end(session, bench.now, XID)
    xa_session.prepare(session, bench.now, XID, session.endpoint, 0)
    session.close(bench.now, False)
    bench.settle()


@pytest.mark.parametrize("commit", [True, False])
def test_what_a_branch_holds_of_a_tail_ends_or_comes_back_with_it(commit: bool) -> None:
    bench = bench_with(SMALL)
    prepared_behind_a_page(bench)
    bench.restart()
    bench.settle()
    invariants.validate(bench.broker)
    queue = bench.broker.queues["orders"]
    assert queue.delivering_count == 1
    send(bench, range(110, 250))
    assert files(bench) > 1
    invariants.validate(bench.broker)
    ended(bench, commit)
    left = [60, *range(101 if commit else 100, 250)]
    for _ in range(2):
        invariants.validate(bench.broker)
        queue = bench.broker.queues["orders"]
        assert queue.message_count == len(left) and queue.delivering_count == 0
        assert sorted(held(bench)) == left
        bench.restart()
        bench.settle()
    assert sorted(Taker(bench).take(200)) == left
    assert files(bench) == bench.broker.memory.used_bytes == 0
