"""A query over several queues: every message once, whatever happens to the list of queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import NodeTimeout, SparkSourceError
from atalanta.spark.options import read_options
from atalanta.spark.read.several_queues import QueuesStreamReader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import EVERYTHING

Json = dict[str, Any]
Row = tuple[str, str, int]


class Run:
    """One run of a query: called as Spark does, batch after batch, without Spark."""

    def __init__(self, cluster: FakeCluster, load: str = "", **options: str) -> None:
        settings = {"servers": cluster.servers, "nodeTimeout": "2s", "positionCache": "0s"}
        parsed = read_options(settings | options)
        kind = QueuesStreamReader if parsed.several else AtalantaStreamReader
        self.reader = kind(parsed, COLUMNS, FakeGateway, load)
        self.reader.getDefaultReadLimit()
        self.first: Json = {}

    def plan(self, start: Json, limit: ReadLimit | None = None) -> Json:
        end = self.reader.latestOffset(start, limit or EVERYTHING)
        if end != start and start != self.first:
            self.reader.commit(start)
        return end

    def begin(self) -> Json:
        self.first = self.reader.initialOffset()
        return self.first

    def read(self, start: Json, end: Json) -> list[Row]:
        found: list[Row] = []
        for part in self.reader.partitions(start, end):
            for batch in self.reader.read(part):
                columns = batch.select(["queue", "node", "sequence"]).to_pydict()
                found.extend(zip(*columns.values(), strict=True))
        return found

    def batch(self, start: Json, limit: ReadLimit | None = None) -> tuple[Json, list[Row]]:
        end = self.plan(start, limit)
        return end, self.read(start, end)


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    made: list[Run] = []
    yield made
    for run in made:
        run.reader.stop()


def fill(cluster: FakeCluster, name: str, count: int = 3, node: int | None = None) -> list[Row]:
    """Adds messages at each node (or one); returns what a query should see of them."""
    added = []
    for one in cluster.nodes if node is None else [cluster.nodes[node]]:
        queue = one.queue(name)
        for _ in range(count):
            queue.add("row")
            added.append((name, one.node_id, queue.last))
    return added


def left(cluster: FakeCluster, name: str) -> int:
    return sum(len(node.queue(name).messages) for node in cluster.nodes)


def test_the_queues_of_a_list_are_read_and_acknowledged(
    cluster: FakeCluster, runs: list[Run]
) -> None:
    expected = fill(cluster, "eu") + fill(cluster, "us")
    runs.append(Run(cluster, queue="eu,us"))
    start = runs[0].begin()
    end, rows = runs[0].batch(start)
    assert sorted(rows) == sorted(expected)
    assert runs[0].plan(end) == end
    assert (left(cluster, "eu"), left(cluster, "us")) == (0, 0)


def test_a_queue_that_appears_is_read_from_its_beginning(
    cluster: FakeCluster, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atalanta.spark.read.queue_search.SEARCH_EVERY_S", 0.0)
    expected = fill(cluster, "orders.eu")
    fill(cluster, "bills")
    runs.append(Run(cluster, queuePattern="orders.#"))
    start = runs[0].begin()
    first, rows = runs[0].batch(start)
    assert sorted(rows) == sorted(expected)
    late = fill(cluster, "orders.us", node=1)
    runs[0].reader._search.next_s = 0.0  # type: ignore[union-attr]
    second, rows = runs[0].batch(first)
    assert sorted(rows) == sorted(late)
    # A driver that was killed in that batch: the next one repeats it and goes on.
    more = fill(cluster, "orders.us")
    runs.append(Run(cluster, queuePattern="orders.#"))
    assert sorted(runs[1].read(first, second)) == sorted(late)
    third, rows = runs[1].batch(second)
    assert sorted(rows) == sorted(more)
    assert runs[1].plan(third) == third
    assert left(cluster, "orders.us") == 0
    assert left(cluster, "bills") == 6


def test_a_checkpoint_of_one_queue_goes_on_with_several(
    cluster: FakeCluster, runs: list[Run]
) -> None:
    fill(cluster, "eu")
    runs.append(Run(cluster, queue="eu"))
    old, rows = runs[0].batch(runs[0].begin())
    assert len(rows) == 6
    more = fill(cluster, "eu") + fill(cluster, "us")
    runs.append(Run(cluster, queue="eu,us"))
    end, rows = runs[1].batch(old)
    assert sorted(rows) == sorted(more)
    assert runs[1].plan(end) == end
    assert (left(cluster, "eu"), left(cluster, "us")) == (0, 0)


def test_a_queue_that_is_not_named_any_more_stops_the_query_until_the_user_says_so(
    cluster: FakeCluster, runs: list[Run]
) -> None:
    fill(cluster, "eu")
    fill(cluster, "us")
    runs.append(Run(cluster, queue="eu,us"))
    end, _ = runs[0].batch(runs[0].begin())
    runs.append(Run(cluster, queue="eu"))
    with pytest.raises(SparkSourceError, match="a query over the queues eu, us: name them all"):
        runs[1].plan(end)
    runs.append(Run(cluster, queuePattern="e*"))
    with pytest.raises(SparkSourceError, match="a position in us, which no node has.*removedQueues=us"):
        runs[2].plan(end)
    more = fill(cluster, "eu")
    runs.append(Run(cluster, queue="eu", removedQueues="us"))
    later, rows = runs[3].batch(end)
    assert sorted(rows) == sorted(more)
    assert later["queues"]["us"] == end["queues"]["us"]  # for the day on which it is read again


@pytest.mark.parametrize("named", [1, 2], ids=["not among the servers", "among the servers"])
def test_the_queue_of_a_node_that_is_away_is_waited_for(
    cluster: FakeCluster, runs: list[Run], named: int
) -> None:
    options = {"servers": ",".join(cluster.servers.split(",")[:named]), "queuePattern": "orders.#"}
    expected = fill(cluster, "orders.eu", node=0) + fill(cluster, "orders.us", node=1)
    runs.append(Run(cluster, **options))
    end, rows = runs[0].batch(runs[0].begin())
    assert sorted(rows) == sorted(expected)
    cluster.nodes[1].stop()
    runs.append(Run(cluster, **options))
    with pytest.raises(NodeTimeout, match="node-2"):
        runs[1].plan(end)
    cluster.nodes[1].start()
    runs.append(Run(cluster, **options))
    assert runs[2].plan(end) == end


def test_a_limit_is_for_all_queues_together(cluster: FakeCluster, runs: list[Run]) -> None:
    expected = fill(cluster, "eu", 40) + fill(cluster, "us", 10)
    runs.append(Run(cluster, queue="eu,us", maxOffsetsPerTrigger="20"))
    end = runs[0].begin()
    read: Counter[Row] = Counter()
    sizes = []
    while len(read) < len(expected):
        end, rows = runs[0].batch(end, ReadMaxRows(20))
        read.update(rows)
        sizes.append(len(rows))
        assert 0 < len(rows) <= 20
    assert sorted(read.elements()) == sorted(expected)
    assert sizes[0] == 20


def test_partitions_are_for_all_queues_together(cluster: FakeCluster, runs: list[Run]) -> None:
    fill(cluster, "eu", 40)
    fill(cluster, "us", 40)
    runs.append(Run(cluster, queue="eu,us", minPartitions="8"))
    start = runs[0].begin()
    assert len(runs[0].reader.partitions(start, runs[0].plan(start))) == 8


def test_no_queue_that_matches_is_an_error(cluster: FakeCluster, runs: list[Run]) -> None:
    fill(cluster, "bills")
    runs.append(Run(cluster, queuePattern="orders.#"))
    with pytest.raises(SparkSourceError, match="has a queue that matches 'orders.#'"):
        runs[0].begin()
    runs.append(Run(cluster, queue="bills,orders"))
    with pytest.raises(SparkSourceError, match="has a queue orders"):
        runs[1].begin()


def test_readers_share_a_connection_to_each_node(cluster: FakeCluster, runs: list[Run]) -> None:
    for number in range(10):
        fill(cluster, f"q{number}", 1)
    runs.append(Run(cluster, queuePattern="#"))
    start = runs[0].begin()
    runs[0].plan(start)
    assert len(cluster.nodes[0].sockets) == 2  # that of the first search, and the readers'


def test_spark_reads_the_queues_of_a_pattern(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    expected = fill(cluster, "orders.eu") + fill(cluster, "orders.us")

    def run() -> None:
        frame = fake.readStream.format("atalanta").options(
            servers=cluster.servers, queuePattern="orders.*", nodeTimeout="20s"
        )
        writer = frame.load().select("queue", "node", "sequence").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination()

    batch = fake.read.format("atalanta").options(servers=cluster.servers, queue="orders.eu,orders.us")
    assert batch.load().count() == len(expected)
    run()
    expected += fill(cluster, "orders.us", 2) + fill(cluster, "orders.new", 2)
    run()
    rows = fake.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.queue, row.node, row.sequence) for row in rows) == sorted(expected)
    assert [left(cluster, f"orders.{name}") for name in ("eu", "us", "new")] == [0, 0, 0]


def test_the_end_of_a_query_releases_the_leases_of_all_queues(cluster: FakeCluster) -> None:
    fill(cluster, "a")
    fill(cluster, "b")
    run = Run(cluster, queue="a,b")
    end, _ = run.batch(run.begin())
    assert run.plan(end) == end
    run.reader.stop()
    queues = [node.queue(name) for node in cluster.nodes for name in ("a", "b")]
    assert [queue.lease_ms for queue in queues] == [0] * len(queues)


@pytest.mark.parametrize("how", [{"queue": "a,b"}, {"queuePattern": "#"}])
def test_a_self_join_shares_the_leases_of_all_queues(
    cluster: FakeCluster,
    runs: list[Run],
    how: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    rows = fill(cluster, "a") + fill(cluster, "b")
    queues = [node.queue(name) for node in cluster.nodes for name in ("a", "b")]
    for number, queue in enumerate(queues):
        queue.incarnation = f"inc-{number}"
    runs += [Run(cluster, "join", **how), Run(cluster, "join", **how)]
    one, other = runs
    start = one.begin()
    end, found = one.batch(start)
    rows_of_one, more = list(found), fill(cluster, "b")
    assert other.begin() == start
    other_end, found = other.batch(start)
    assert (sorted(rows_of_one), sorted(found)) == (sorted(rows), sorted(rows + more))
    # One has read less: what both have is gone, what it must read is there.
    last = one.plan(end)
    assert other.plan(other_end) == other_end
    assert sorted(one.read(end, last)) == sorted(more)
    assert (left(cluster, "a"), left(cluster, "b")) == (0, len(more))
    assert one.plan(last) == last
    assert (left(cluster, "a"), left(cluster, "b")) == (0, 0)
    assert [queue.epoch for queue in queues] == [1] * len(queues)
    one.reader.stop()
    assert all(queue.lease_ms > 0 for queue in queues)
    other.reader.stop()
    assert [queue.lease_ms for queue in queues] == [0] * len(queues)
