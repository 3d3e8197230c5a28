"""Page files of earlier builds, which could have a message twice for one queue: it comes once, with all binding ids."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.reference import Reference
from tests.kernel.broker_rig import Bench
from tests.kernel.queue.paging.paging_rig import SMALL, Taker, bench_with, files, held


def binding(number: int) -> bytes:
    return number.to_bytes(8, "big")


def doubled(bench: Bench, numbers: range) -> None:
    """Stores messages as an earlier build did whose queue was twice in their lists of routes."""
    store = bench.broker.store
    queue = bench.broker.queues["orders"]
    for number in numbers:
        message = bench.message("orders", number.to_bytes(4, "big") + bytes(400))
        message.id = store.take_message_id()
        both = [store.reference(message, queue, queue.take_sequence(), binding(each)) for each in (7, 8)]
        queue.count_pending(2)
        store.keep(message, both)
        message.lsn = bench.journal.append(records.MESSAGE, encode_message_record(message, both, []))
        store.enqueue_when_durable(message.lsn, 0, both, None, 0)
        if number % 10 == 9:
            bench.settle()
    bench.settle()


def ids_of(references: list[Reference]) -> set[bytes]:
    return {reference.route_to for reference in references}


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("taken", [0, 1, 40, 150])
def test_what_is_twice_in_page_files_comes_once(taken: int, compact: bool) -> None:
    bench = bench_with(SMALL)
    doubled(bench, range(200))
    assert files(bench) > 5
    bench.restart()
    assert held(bench) == list(range(200))
    assert ids_of(everything(bench.broker.queues["orders"])) == {binding(8) + binding(7)}
    first = Taker(bench)
    first.take(taken)
    if compact:
        bench.compact(bench.journal.last - 20)
    bench.restart()
    left = held(bench)
    assert left == list(range(len(first.taken), 200))
    assert Taker(bench).take(200) == left
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, queue.bytes, bench.broker.memory.used_bytes) == (0, 0, 0)
    assert files(bench) == 0 and queue.paged is None
    invariants.validate(bench.broker)


def test_they_are_purged_as_a_whole() -> None:
    bench = bench_with(SMALL)
    doubled(bench, range(200))
    bench.restart()
    queue = bench.broker.queues["orders"]
    bench.broker.mover.purge(queue, "purged")
    bench.settle()
    assert (queue.message_count, queue.bytes, files(bench)) == (0, 0, 0)
    bench.restart()
    assert held(bench) == []
