"""A query of the write-ahead source without Spark: what a checkpoint has, and the rows of committed batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import read_options
from atalanta.spark.wal.wal_node import WalNode
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from tests.spark.wal.fake_broker import QUEUE, FakeBroker

SCHEMA = StructType([StructField("body", BinaryType()), StructField("queue", StringType())])
Json = dict[str, Any]


class Servers(Protocol):
    """The nodes, as an Opener. `kill` is called at every step of the driver, and may end it."""

    kill: Callable[[str], None]

    @property
    def names(self) -> str:
        """Returns the option servers."""
        ...

    def __call__(self, server: str, credentials: Credentials) -> WalNode: ...


class Query:
    """The durable part of a query. `run` is one run of a driver."""

    def __init__(self, location: str, servers: Servers, **options: str) -> None:
        self.location = location
        self.servers = servers
        self.options = {"queue": QUEUE} | options
        self.planned: list[Json] = []
        self.committed = 0
        self.rows: list[str] = []
        self.queues: Counter[str] = Counter()

    def reader(self, **options: str) -> WalStreamReader:
        given = {"servers": self.servers.names, "nodeTimeout": "2s"}
        given |= {"walLocation": self.location, "maxOffsetsPerTrigger": "4"}
        given |= self.options | options
        return WalStreamReader(read_options(given), SCHEMA, self.servers)

    def run(self, **options: str) -> None:
        """Runs the query until the queues are empty, as Spark does after a start."""
        reader = self.reader(**options)
        if not self.planned:
            self.planned.append(reader.initialOffset())
        if self.committed < len(self.planned) - 1:
            self._batch(reader)
        while True:
            start = self.planned[-1]
            end = reader.latestOffset(start, ReadMaxRows(4))
            if end == start:
                return
            self.servers.kill("before offset log")
            self.planned.append(end)
            self.servers.kill("after offset log")
            self._batch(reader)

    def _batch(self, reader: WalStreamReader) -> None:
        rows: list[str] = []
        queues: list[str] = []
        for part in reader.partitions(self.planned[self.committed], self.planned[-1]):
            for batch in reader.read(part):
                rows += [body.decode() for body in batch.column("body").to_pylist()]
                queues += batch.column("queue").to_pylist()
        self.servers.kill("before batch commit")
        self.rows += rows
        self.queues.update(queues)
        self.committed += 1
        self.servers.kill("after batch commit")


class Kill:
    """Kills the driver at the `at`th step of all."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.left = at
        self.error = error
        self.where = ""

    def __call__(self, step: str) -> None:
        self.left -= 1
        if self.left == 0:
            self.where = step
            raise self.error


def expected(*brokers: FakeBroker) -> Counter[str]:
    """Returns the rows of everything that was added."""
    return Counter(
        f"{each.node_id}/{queue}/{number}"
        for each in brokers
        for queue, count in each.added.items()
        for number in range(1, count + 1)
    )
