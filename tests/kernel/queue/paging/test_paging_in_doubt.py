"""Queues that page, and distributed transactions that are in doubt at a restart."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from tests.kernel.queue.paging.branch_rig import ended, prepared_behind_a_page
from tests.kernel.queue.paging.paging_rig import SMALL, Taker, bench_with, files, held, send


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
