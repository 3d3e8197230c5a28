"""The end of a query: what becomes of its leases, and of the sources that share them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Lease
from atalanta.spark.errors import DataLost, LeaseTaken, OptionError
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import Query, add
from tests.spark.read.streaming_rig import QUEUE, waiting


@pytest.fixture(autouse=True)
def _local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))


@pytest.fixture
def two(cluster: FakeCluster) -> Iterator[list[Query]]:
    """The two sources of a self-join, as Spark makes them: both before it asks one for an offset."""
    made = [Query(cluster, load="join"), Query(cluster, load="join")]
    yield made
    for query in made:
        query.reader.stop()


class StoppedAtAnswer(FakeGateway):
    """The node has acknowledged; SIGTERM comes before its answer."""

    stops = False

    def ack_through(self, *given: object) -> int:
        count: int = self.ask("ack_through", *given)
        if StoppedAtAnswer.stops:
            raise SystemExit
        return count


class StoppedAtRelease(FakeGateway):
    """The process gets SIGTERM before it releases a lease."""

    def lease(self, queue: str, group: str, owner: str, ttl_ms: int, epoch: int) -> Lease:
        if ttl_ms == 0:
            os.kill(os.getpid(), signal.SIGTERM)
        found: Lease = self.ask("lease", queue, group, owner, ttl_ms, epoch)
        return found


def leases(cluster: FakeCluster) -> list[bool]:
    """Returns whether each node's queue is leased."""
    return [node.queue(QUEUE).lease_ms > 0 for node in cluster.nodes]


def test_a_query_that_has_acknowledged_everything_releases_its_leases(cluster: FakeCluster) -> None:
    query = Query(cluster)
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    query.read(start, end)
    assert query.plan(end) == end
    assert leases(cluster) == [True, True]
    query.reader.stop()
    assert (leases(cluster), waiting(cluster)) == ([False, False], [0, 0])


def test_a_query_that_is_stopped_before_the_answer_to_its_acknowledgement_releases_its_leases(
    cluster: FakeCluster,
) -> None:
    query = Query(cluster)
    query.reader.connect = StoppedAtAnswer
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    query.read(start, end)
    StoppedAtAnswer.stops = True
    with pytest.raises(SystemExit):
        query.plan(end)
    assert waiting(cluster) == [0, 3]
    query.reader.stop()
    assert leases(cluster) == [False, True]


def test_a_sigterm_during_the_end_does_not_keep_the_leases(cluster: FakeCluster) -> None:
    """Spark closes the connection to the reader first, and sends the signal while the reader ends."""
    query = Query(cluster)
    query.reader.connect = StoppedAtRelease
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        add(cluster, 3)
        start = query.reader.initialOffset()
        end = query.plan(start)
        query.read(start, end)
        assert query.plan(end) == end
        query.reader.stop()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert leases(cluster) == [False, False]


def test_the_lease_stays_where_a_batch_is_unfinished(cluster: FakeCluster) -> None:
    query = Query(cluster)
    cluster.nodes[1].queue(QUEUE)
    for _ in range(3):
        cluster.nodes[0].queue(QUEUE).add("row")
    start = query.reader.initialOffset()
    end = query.plan(start)
    query.read(start, end)
    query.reader.stop()
    assert leases(cluster) == [True, False]
    again = Query(cluster)
    assert again.read(start, end) == [1, 2, 3]
    assert again.plan(end) == end
    again.reader.stop()
    assert (leases(cluster), waiting(cluster)) == ([False, False], [0, 0])


def test_a_query_that_may_have_a_batch_to_repeat_keeps_its_leases(cluster: FakeCluster) -> None:
    first = Query(cluster)
    add(cluster, 3)
    first.reader.initialOffset()
    first.reader.stop()
    assert leases(cluster) == [False, False]  # Spark cannot have a batch of a group that began here
    again = Query(cluster)
    again.reader.initialOffset()
    again.reader.stop()
    assert leases(cluster) == [True, True]


def test_a_query_that_was_fenced_does_not_release_the_lease_of_the_other(
    cluster: FakeCluster,
) -> None:
    first, second = Query(cluster), Query(cluster)
    add(cluster, 3)
    start = first.reader.initialOffset()
    assert first.plan(start) and second.plan(start)
    first.reader.stop()
    assert leases(cluster) == [True, True]
    second.reader.stop()


def test_a_fenced_query_is_told_so_at_a_node_that_it_has_not_leased(cluster: FakeCluster) -> None:
    """A repeated batch leases its own nodes only; another query then takes over and reads at the others."""
    first, old, new = Query(cluster), Query(cluster), Query(cluster)
    cluster.nodes[1].queue(QUEUE)
    cluster.nodes[0].queue(QUEUE).add("row")
    start = first.reader.initialOffset()
    end = first.plan(start)
    first.reader.stop()
    assert old.read(start, end) == new.read(start, end) == [1]
    cluster.nodes[1].queue(QUEUE).add("row")
    last = new.plan(end)
    assert (new.read(end, last), new.plan(last)) == ([1], last)
    with pytest.raises(LeaseTaken, match="another query took over"):
        old.plan(end)
    old.reader.stop()
    new.reader.stop()


def test_no_renewal_follows_the_release(cluster: FakeCluster) -> None:
    query = Query(cluster)
    add(cluster, 1)
    query.plan(query.reader.initialOffset())
    query.reader.stop()
    before = cluster.nodes[0].requests.count("lease")
    query.reader.leases._renew()
    assert cluster.nodes[0].requests.count("lease") == before


def test_the_sources_of_a_self_join_share_the_lease_and_acknowledge_what_both_have(
    cluster: FakeCluster, two: list[Query]
) -> None:
    left, right = two
    add(cluster, 3)
    start = left.reader.initialOffset()
    left_end = left.plan(start)
    add(cluster, 2)
    assert right.reader.initialOffset() == start
    right_end = right.plan(start)
    assert sorted(left.read(start, left_end)) == [1, 1, 2, 2, 3, 3]
    assert sorted(right.read(start, right_end)) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    left_last = left.plan(left_end)
    assert right.plan(right_end) == right_end
    # The left one has read less: what both have is gone, what it must read is there.
    assert sorted(left.read(left_end, left_last)) == [4, 4, 5, 5]
    assert waiting(cluster) == [2, 2]
    assert left.plan(left_last) == left_last
    assert waiting(cluster) == [0, 0]
    left.reader.stop()
    assert leases(cluster) == [True, True]
    right.reader.stop()
    assert leases(cluster) == [False, False]


def test_a_self_join_that_is_started_again_reads_its_unfinished_batch(
    cluster: FakeCluster, two: list[Query]
) -> None:
    add(cluster, 3)
    start = two[0].reader.initialOffset()
    two[1].reader.initialOffset()
    ends = [query.plan(start) for query in two]
    for query in two:
        query.reader.stop()
    assert leases(cluster) == [True, True]
    again = [Query(cluster, load="join"), Query(cluster, load="join")]
    for query, end in zip(again, ends, strict=True):
        assert sorted(query.read(start, end)) == [1, 1, 2, 2, 3, 3]
    for query, end in zip(again, ends, strict=True):
        assert query.plan(end) == end
    assert waiting(cluster) == [0, 0]
    for query in again:
        query.reader.stop()
    assert leases(cluster) == [False, False]


def test_another_query_of_a_loaded_stream_stops_the_first(cluster: FakeCluster) -> None:
    first = Query(cluster, load="twice")
    add(cluster, 3)
    start = first.reader.initialOffset()
    first.plan(start)
    second = Query(cluster, load="twice")
    second.reader.initialOffset()
    with pytest.raises(LeaseTaken, match="another query took over group 'spark'"):
        end = first.plan(first.plan(start))
        first.read(start, end)
    second.reader.stop()
    first.reader.stop()


def test_two_queries_of_a_loaded_stream_that_start_together_are_told(
    cluster: FakeCluster, two: list[Query]
) -> None:
    add(cluster, 3)
    end = two[0].reader.initialOffset()
    two[1].reader.initialOffset()
    with pytest.raises(LeaseTaken, match="another query reads the same loaded stream"):
        for _ in range(3):
            end = two[0].plan(end)


def test_asynchronous_progress_tracking_is_refused_before_anything_is_acknowledged_too_early(
    cluster: FakeCluster,
) -> None:
    query = Query(cluster)
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    query.read(start, end)
    add(cluster, 2)
    # Spark plans the next batch and does not commit the one before.
    later = query.reader.latestOffset(end, query.reader.getDefaultReadLimit())
    with pytest.raises(OptionError, match="Remove that option") as caught:
        query.reader.partitions(end, later)
    assert "asyncProgressTrackingEnabled" in str(caught.value)
    assert waiting(cluster) == [5, 5]
    query.reader.stop()
    assert leases(cluster) == [True, True]


def test_a_copied_checkpoint_that_is_older_is_refused_and_takes_nothing_over(
    cluster: FakeCluster,
) -> None:
    query = Query(cluster)
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    query.read(start, end)
    add(cluster, 1)
    query.read(end, query.plan(end))  # waits for the acknowledgement
    copies = [Query(cluster), Query(cluster)]
    with pytest.raises(DataLost, match="it is a copy or a backup, and the group has gone on"):
        copies[0].plan(start)
    with pytest.raises(DataLost, match="it is a copy or a backup, and the group has gone on"):
        copies[1].read(start, end)
    assert cluster.nodes[0].queue(QUEUE).epoch == 1
    for one in (query, *copies):
        one.reader.stop()


def test_a_query_whose_copy_has_gone_on_is_told_of_the_other_one(cluster: FakeCluster) -> None:
    query, copy = Query(cluster), Query(cluster)
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    query.read(start, end)
    assert copy.plan(end) == end
    add(cluster, 2)
    later = copy.plan(end)
    copy.read(end, later)
    assert copy.plan(later) == later
    assert waiting(cluster) == [0, 0]
    with pytest.raises(LeaseTaken, match="another query took over group 'spark'") as caught:
        query.plan(end)
    assert "failOnDataLoss" not in str(caught.value)
    for one in (query, copy):
        one.reader.stop()
