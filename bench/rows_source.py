"""A Python source of Spark without a broker: rows like those of the bench, from memory.

What it costs is Spark's own part of a read by any Python source: the least that one from a broker can cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

BATCH_ROWS = 1900  # of a chunk of 2 MiB, in which our source reads


@dataclass
class Rows(InputPartition):
    """The input of a task: so many rows."""

    count: int


class RowsReader(DataSourceReader):
    """The reader of a batch read."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.rows = int(options["rows"])
        self.tasks = int(options["tasks"])
        self.body_bytes = int(options["bodyBytes"])
        self.names = schema.names

    def partitions(self) -> Sequence[InputPartition]:
        return self.tasks_of(self.rows)

    def tasks_of(self, rows: int) -> Sequence[InputPartition]:
        return [Rows(rows // self.tasks)] * self.tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        whole = self._batch()
        for at in range(0, partition.count, BATCH_ROWS):
            yield whole.slice(0, min(BATCH_ROWS, partition.count - at))

    def _batch(self) -> pa.RecordBatch:
        count = BATCH_ROWS
        made: dict[str, Any] = {
            "body": pa.array([bytes(self.body_bytes)] * count),
            "queue": pa.array(["bench"] * count),
            "node": pa.array(["bench"] * count),
            "sequence": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([datetime(2026, 1, 1)] * count, pa.timestamp("us", tz="UTC")),
        }
        return pa.RecordBatch.from_arrays([made[name] for name in self.names], names=self.names)


class RowsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream. An offset is the number of rows before it."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.reader = RowsReader(options, schema)
        self.limit = int(options.get("maxOffsetsPerTrigger", self.reader.rows))

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """The rows are fixed: a run has no limit to record."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"rows": min(self.reader.rows, start["rows"] + self.limit)}

    def commit(self, end: dict[str, int]) -> None:
        """The rows stay."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.reader.tasks_of(end["rows"] - start["rows"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reader.read(partition)


class RowsSource(DataSource):
    """The format `rows`: options rows, tasks, bodyBytes and maxOffsetsPerTrigger."""

    @classmethod
    def name(cls) -> str:
        return "rows"

    def reader(self, schema: StructType) -> RowsReader:
        return RowsReader(self.options, schema)

    def streamReader(self, schema: StructType) -> RowsStream:
        return RowsStream(self.options, schema)
