"""Retention: acknowledged messages of a log view stay for a replay, and nobody else sees them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.paging.iteration import everything
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, consume, endpoint
from tests.kernel.queue.paging.paging_rig import SMALL, bench_with, files, numbers_of, send

DAY_MS = 86_400_000
DAY = DAY_MS * 1_000_000
TTL = 60 * SECOND


def lease(bench: Bench, group: str = "g", ttl: int = TTL, epoch: int = 0) -> int:
    views = bench.broker.log_views
    held = views.lease(bench.now, "orders", group, "me", ttl, epoch, RecordingEndpoint(), 1)
    bench.settle()
    return held.epoch


def retain(
    bench: Bench, epoch: int, age_ms: int = -1, size: int = -1, replay: int = -1, group: str = "g"
) -> None:
    answers = RecordingEndpoint()
    bench.broker.log_views.retain("orders", "", group, epoch, age_ms, size, replay, answers, 5)
    bench.settle()
    assert answers.answers == [5]


def acknowledge(bench: Bench, epoch: int, end: int, group: str = "g") -> int:
    answers = RecordingEndpoint()
    views = bench.broker.log_views
    bench.broker.store.set_now(bench.now)
    taken = views.ack_through("orders", "", group, epoch, end, answers, 6)
    bench.settle()
    assert answers.answers == [6]
    return taken


def read(bench: Bench, start: int, end: int) -> list[int]:
    found: list[bytes] = []
    while start < end:
        chunk = bench.broker.log_views.read("orders", "", start, end, 2_000, None)
        found.extend(reference.message.body for reference in chunk.references)
        start = chunk.next
    return numbers_of(found)


def reader_of(count: int, acknowledged: int, age_ms: int = DAY_MS, size: int = 0) -> tuple[Bench, int]:
    """A small paging node; orders 0 to `count` - 1 have the sequences 1 to `count`."""
    bench = bench_with(SMALL)
    epoch = lease(bench)
    retain(bench, epoch, age_ms, size)
    send(bench, range(count))
    assert acknowledge(bench, epoch, acknowledged) == acknowledged
    invariants.validate(bench.broker)
    return bench, epoch


def restarted(bench: Bench) -> None:
    bench.restart()


def compacted(bench: Bench) -> None:
    bench.compact(bench.journal.last)
    bench.restart()


def untouched(bench: Bench) -> None:
    return None


@pytest.mark.parametrize("what", [untouched, restarted, compacted])
@pytest.mark.parametrize("acknowledged", [7, 60, 100, 157, 300])
def test_acknowledged_messages_can_be_read_again(
    what: Callable[[Bench], None], acknowledged: int
) -> None:
    """From memory, page files, and pages of which the queue still needs a part."""
    bench, epoch = reader_of(300, acknowledged)
    what(bench)
    invariants.validate(bench.broker)
    assert read(bench, 0, acknowledged) == list(range(acknowledged))
    assert read(bench, acknowledged, 300) == list(range(acknowledged, 300))
    assert read(bench, 3, acknowledged) == list(range(3, acknowledged))
    position = bench.broker.log_views.position("orders")
    assert (position.first, position.acked_through, position.messages) == (
        acknowledged + 1, acknowledged, 300 - acknowledged,
    )  # fmt: skip
    acknowledge(bench, epoch, 300)
    what(bench)
    assert read(bench, 0, 300) == list(range(300))
    invariants.validate(bench.broker)


def test_ranges_acknowledged_one_by_one_are_kept_over_restarts() -> None:
    bench, epoch = reader_of(300, 1)
    for end in range(8, 300, 13):
        acknowledge(bench, epoch, end)
        if end % 2:
            bench.restart()
        invariants.validate(bench.broker)
        assert read(bench, 0, 300) == list(range(300))


def test_consumers_and_browsers_get_only_what_waits() -> None:
    bench, epoch = reader_of(300, 157)
    queue = bench.broker.queues["orders"]
    assert (queue.message_count, len(everything(queue))) == (143, 143)
    lease(bench, ttl=0, epoch=epoch)
    for browse in (True, False):
        session = bench.session()
        consume(session, bench, "orders", browse=browse)
        bench.settle()
        assert numbers_of(endpoint(session).bodies()) == list(range(157, 300))
        if not browse:
            session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
        session.close_consumer(bench.now, 0)
        bench.settle()
    assert (queue.message_count, queue.bytes, bench.broker.memory.used_bytes) == (0, 0, 0)
    assert read(bench, 0, 157) == list(range(157))
    bench.restart()
    assert read(bench, 0, 157) == list(range(157))
    invariants.validate(bench.broker)


def test_messages_are_released_when_their_time_is_over() -> None:
    bench, epoch = reader_of(300, 100)
    bench.now += DAY // 2
    acknowledge(bench, epoch, 200)
    bench.now += DAY // 2
    bench.broker.log_views.end_leases(bench.now)
    bench.settle()
    assert read(bench, 0, 100) == list(range(100))  # not before a day is over
    bench.now += DAY // 32
    bench.broker.log_views.end_leases(bench.now)
    bench.settle()
    for _ in range(2):
        with pytest.raises(BrokerError, match="1 to 100 was acknowledged and is gone"):
            read(bench, 0, 300)
        assert read(bench, 100, 300) == list(range(100, 300))
        invariants.validate(bench.broker)
        bench.restart()
    before = files(bench)
    bench.now += DAY
    bench.broker.log_views.end_leases(bench.now)
    bench.settle()
    assert files(bench) < before
    assert read(bench, 200, 300) == list(range(200, 300))
    retained = bench.broker.queues["orders"].log.retained
    assert retained is not None and (retained.messages(), retained.total_bytes()) == (0, 0)


def test_the_oldest_messages_are_released_above_a_size() -> None:
    bench, epoch = reader_of(300, 1, age_ms=0, size=3_000_000)
    message = bench.broker.queues["orders"].bytes // 299
    bench.broker.log_views.retain("orders", "", "g", epoch, 0, 50 * message, -1, RecordingEndpoint(), 1)
    # Ranges are released as a whole, and small ones are joined up to a MiB: as much stays at least.
    retained = bench.broker.queues["orders"].log.retained
    assert retained is not None
    for end in (100, 200, 300):
        acknowledge(bench, epoch, end)
        retained.ranges[-1].bytes += 1 << 20
    acknowledge(bench, epoch, 300)
    assert retained.released_through == 200 and retained.messages() == 100
    bench.restart()
    assert read(bench, 200, 300) == list(range(200, 300))


def test_a_replay_goes_on_after_a_restart_and_ends_where_it_began() -> None:
    bench, epoch = reader_of(300, 200)
    views = bench.broker.log_views
    with pytest.raises(BrokerError, match="taken over"):
        retain(bench, epoch - 1, replay=50)
    retain(bench, epoch, replay=50)
    bench.restart()
    assert (views.position("orders").first, bench.broker.log_views.position("orders").acked_through) == (
        51, 50,
    )  # fmt: skip
    views = bench.broker.log_views
    end = views.plan("orders", "", 50, 30, -1)[0]
    assert (end, read(bench, 50, end)) == (80, list(range(50, 80)))
    acknowledge(bench, epoch, end)
    bench.restart()
    views = bench.broker.log_views
    assert views.position("orders").acked_through == 80
    bench.now += 3 * DAY  # what the replay has not acknowledged stays, under its lease
    lease(bench, epoch=epoch)
    views.end_leases(bench.now)
    bench.settle()
    assert read(bench, 80, 300) == list(range(80, 300))
    acknowledge(bench, epoch, 200)
    position = views.position("orders")
    assert (position.acked_through, position.first, position.messages) == (200, 201, 100)
    invariants.validate(bench.broker)


def test_another_group_takes_over_where_the_messages_wait() -> None:
    bench, epoch = reader_of(300, 200)
    retain(bench, epoch, replay=50)
    lease(bench, ttl=0, epoch=epoch)
    lease(bench, group="h")
    assert bench.broker.log_views.position("orders").acked_through == 200
    bench.restart()
    assert bench.broker.log_views.position("orders").acked_through == 200


def test_a_start_that_is_not_retained_is_refused() -> None:
    bench = bench_with(SMALL)
    send(bench, range(20))
    epoch = lease(bench)
    acknowledge(bench, epoch, 10)
    retain(bench, epoch, DAY_MS)
    acknowledge(bench, epoch, 15)
    with pytest.raises(BrokerError, match="retains messages behind 10 only: it cannot be read from 9"):
        retain(bench, epoch, replay=9)
    assert bench.broker.log_views.seek("orders", 0) == 10
    assert bench.broker.log_views.seek("orders", bench.now // 1_000_000 + 1) == 20


def test_the_end_of_the_retention_releases_all() -> None:
    bench, epoch = reader_of(300, 300)
    assert files(bench) > 0
    retain(bench, epoch, 0, 0)
    bench.settle()
    assert (files(bench), bench.broker.store.messages, bench.broker.values.keys()) == (0, {}, [])
    bench.restart()
    assert (files(bench), bench.broker.store.messages) == (0, {})


def test_a_deleted_queue_leaves_nothing() -> None:
    bench, _ = reader_of(300, 157)
    bench.broker.queue_registry.delete(bench.now, "orders", "deleted")
    bench.settle()
    assert (files(bench), bench.broker.store.messages, bench.broker.values.keys()) == (0, {}, [])
    bench.restart()
    invariants.validate(bench.broker)
    assert (files(bench), bench.broker.store.messages) == (0, {})


def test_without_page_files_there_is_no_retention(bench: Bench) -> None:
    bench.queue("orders")
    epoch = lease(bench)
    with pytest.raises(BrokerError, match="needs page files"):
        retain(bench, epoch, DAY_MS)
