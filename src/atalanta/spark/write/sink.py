"""The sink: one transaction per partition, at most once under the id query/batch/partition.

The sorted `servers` alone decide the node of a partition, not the live topology. A batch that is written again after a
crash thus reaches the node that knows its id. While that node is away the write waits, up to `nodeTimeout`.
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from atalanta.spark.errors import NodeTimeout, NodeUnavailable, SparkSourceError
from atalanta.spark.gateway.gateway import Connector, OutMessage
from atalanta.spark.options import WriteOptions
from atalanta.spark.read.members import CONNECT_TIMEOUT_S
from atalanta.spark.write.rows import RowReader

RETRY_S: Final = 0.2

log = logging.getLogger("atalanta.spark")


@dataclass
class Written(WriterCommitMessage):
    """The result of one task; `repeated`: the node already had the transaction."""

    server: str
    messages: int
    repeated: bool


def server_for(servers: Sequence[str], query: str, partition: int) -> str:
    """Returns the server of a partition: the same for the same query, as long as `servers` does not change."""
    ordered = sorted(servers)
    digest = hashlib.sha256(f"{query}/{partition}".encode()).digest()
    return ordered[int.from_bytes(digest[:8], "big") % len(ordered)]


class PartitionWriter:
    """The writer of one task's rows. The rows stay in memory until the node has committed them."""

    def __init__(self, options: WriteOptions, schema: StructType, connect: Connector) -> None:
        self.options = options
        self.connect = connect
        self.rows = RowReader(options, schema)

    def write(
        self, batches: Iterator[pa.RecordBatch], query: str, batch: int, partition: int
    ) -> Written:
        """Writes the rows. Raises NodeTimeout if the node does not return. An empty partition sends nothing."""
        server = server_for(self.options.login.servers, query, partition)
        messages = [message for one in batches for message in self.rows.messages(one)]
        if not messages:
            return Written(server, 0, False)
        deadline = time.monotonic() + self.options.login.node_timeout_s
        while True:
            try:
                added = self._send(server, messages, query, batch, partition)
            except NodeUnavailable as error:
                if time.monotonic() >= deadline:
                    raise NodeTimeout(
                        f"server {server} did not answer for "
                        f"{self.options.login.node_timeout_s:g} s (nodeTimeout): {error}"
                    ) from error
                log.warning("server %s: %s; trying again", server, error)
                time.sleep(RETRY_S)
            else:
                return Written(server, len(messages), not added)

    def _send(
        self, server: str, messages: Sequence[OutMessage], query: str, batch: int, partition: int
    ) -> bool:
        login = self.options.login
        connect_s = min(CONNECT_TIMEOUT_S, login.request_timeout_s)
        credentials = login.credentials(connect_s)
        gateway = self.connect(server, credentials)
        try:
            return gateway.send_transaction(messages, query, batch, partition)
        finally:
            gateway.close()


class AtalantaStreamWriter(DataSourceStreamArrowWriter):
    """The writer of streaming queries: a repeated batch is not sent again."""

    def __init__(self, options: WriteOptions, schema: StructType, connect: Connector) -> None:
        self.writer = PartitionWriter(options, schema, connect)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = task_context()
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise SparkSourceError(
                "Spark names neither query nor batch: is this a streaming write?"
            )
        return self.writer.write(iterator, query, int(batch), context.partitionId())


class AtalantaBatchWriter(DataSourceArrowWriter):
    """The writer of batch queries: a repeated task is not sent again, a repeated job is."""

    def __init__(self, options: WriteOptions, schema: StructType, connect: Connector) -> None:
        self.writer = PartitionWriter(options, schema, connect)
        # Created once in the driver and pickled to the tasks.
        self.run = f"batch-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.writer.write(iterator, self.run, 0, task_context().partitionId())


def task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise SparkSourceError("the sink writes in Spark tasks only")
    return context
