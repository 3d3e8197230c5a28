"""A query from the queue `orders` to the address `out`, called as Spark does, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.options import WriteOptions, read_options, write_options
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from atalanta.spark.wal.wal_node import open_node
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from atalanta.spark.write.sink import AtalantaStreamWriter, PartitionWriter, Written

TEXT = StructType().add("text", StringType())


class Relay:
    """A query from `orders` to `out`, called as Spark does. Each call is of a new process: nothing is kept but offsets.

    With `wal` (a folder) it is the source of nodes without the log view.
    """

    def __init__(self, servers: str, wal: Path | None = None, **login: str) -> None:
        self.login = {"servers": servers, "nodeTimeout": "60s"} | login
        self.wal = wal
        self.offset: dict[str, Any] = {}
        self.batch = 0

    def reader(self) -> AtalantaStreamReader | WalStreamReader:
        given = self.login | {"queue": "orders"}
        if self.wal is None:
            return AtalantaStreamReader(read_options(given), COLUMNS, connect)
        return WalStreamReader(read_options(given | {"walLocation": str(self.wal)}), COLUMNS, open_node)

    def plan(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The next batch, which acknowledges the former one."""
        reader = self.reader()
        try:
            start = self.offset or reader.initialOffset()
            self.writer = AtalantaStreamWriter(self.sink(), TEXT, connect).writer  # Spark makes it with the query
            return start, reader.latestOffset(start, reader.getDefaultReadLimit())
        finally:
            reader.stop()

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[pa.RecordBatch]:
        reader = self.reader()
        try:
            found = [each for part in reader.partitions(start, end) for each in reader.read(part)]
            return [each.select(["text"]) for each in found]
        finally:
            reader.close() if isinstance(reader, AtalantaStreamReader) else reader.stop()

    def sink(self) -> WriteOptions:
        return write_options(self.login | {"address": "out", "routing": "anycast"})

    def write(self, rows: list[pa.RecordBatch]) -> list[Written]:
        halves = [rows[0::2], rows[1::2]]
        return [self.writer.write(iter(half), "query", self.batch, number) for number, half in enumerate(halves)]

    def commit(self, end: dict[str, Any], written: list[Written]) -> None:
        PartitionWriter(self.sink(), TEXT, connect).commit("query", self.batch, written)
        self.offset = end
        self.batch += 1
