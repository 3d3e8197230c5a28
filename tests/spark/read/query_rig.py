"""A streaming source that a test calls as Spark does, without Spark."""

from __future__ import annotations

from typing import Any

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.options import read_options
from atalanta.spark.read.batch_plan import BatchLimits
from atalanta.spark.read.partition_reader import RangePartition
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.streaming_rig import QUEUE

Json = dict[str, Any]
EVERYTHING = BatchLimits(None, None).read_limit()


class Query:
    """Calls the source as Spark does, batch after batch, without Spark."""

    def __init__(self, cluster: FakeCluster, load: str = "", **options: str) -> None:
        settings = {"servers": cluster.servers, "queue": QUEUE, "nodeTimeout": "20s"}
        settings |= {"positionCache": "0s"} | options
        self.reader = AtalantaStreamReader(read_options(settings), COLUMNS, FakeGateway, load)
        cluster.readers.append(self.reader)
        self.reader.getDefaultReadLimit()

    def plan(self, start: Json, limited: bool = False) -> Json:
        """The next batch; `limited`: within the limits of the options."""
        limit = self.reader.getDefaultReadLimit() if limited else EVERYTHING
        end = self.reader.latestOffset(start, limit)
        initial = self.reader._initial
        if end != start and (initial is None or start != initial.to_json()):
            self.reader.commit(start)
        return end

    def read(self, start: Json, end: Json) -> list[int]:
        found = []
        for part in self.reader.partitions(start, end):
            assert isinstance(part, RangePartition)
            for batch in self.reader.read(part):
                found.extend(batch.column("sequence").to_pylist())
        return found


def add(cluster: FakeCluster, count: int) -> None:
    for node in cluster.nodes:
        for _ in range(count):
            node.queue(QUEUE).add("row")
