"""The batch source over nodes without the log view: a browser per node, which leaves every message in its queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.client import ClientError
from atalanta.client.log import EntryWriter
from atalanta.spark.errors import QueueMissing, SparkSourceError
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.offsets import now_ms
from atalanta.spark.wal.body_limit import body_error
from atalanta.spark.wal.queue_names import QueueNames, check_found
from atalanta.spark.wal.wal_file import CHUNK_BYTES
from atalanta.spark.wal.wal_node import Opener, WalNode
from atalanta.spark.wal.wal_nodes import WalNodes
from atalanta.spark.wal.wal_options import check_batch


@dataclass
class BrowsePartition(InputPartition):
    """The input of a task: a queue of one node."""

    node_id: str
    server: str
    queue: str
    planned_at_ms: int


class BrowseReader(DataSourceReader):
    """The reader. The column `sequence` counts the messages of a queue of a node as the browser shows them, from 1."""

    def __init__(self, options: ReadOptions, schema: StructType, open_node: Opener) -> None:
        check_batch(options)
        self.options = options
        self.schema = schema
        self.open_node = open_node

    def partitions(self) -> list[InputPartition]:
        names = QueueNames(self.options)
        nodes = WalNodes(self.options, self.open_node)
        found: list[BrowsePartition] = []
        try:
            for node_id, node in sorted(nodes.present().items()):
                for queue in names.at(node):
                    try:
                        node.waiting(queue)
                    except QueueMissing:
                        continue
                    found.append(BrowsePartition(node_id, node.server, queue, now_ms()))
        finally:
            nodes.close()
        check_found(self.options, {part.queue for part in found})
        return [*found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, BrowsePartition):
            raise TypeError(f"{partition!r} is not a partition of this source")
        from atalanta.spark.wal.wal_batches import batches

        node = self.open_node(partition.server, self.options.receiving_credentials())
        try:
            if node.node_id != partition.node_id:
                raise SparkSourceError(
                    f"{partition.server} is node {node.node_id} now, not {partition.node_id}"
                )
            chunks = self._chunks(node, partition)
            yield from batches(
                self.schema, self.options, partition.queue, node.node_id, chunks, 0, partition.planned_at_ms
            )
        finally:
            node.close()

    def _chunks(self, node: WalNode, part: BrowsePartition) -> Iterator[tuple[int, bytes, str]]:
        queue = part.queue
        chunk = EntryWriter()
        messages = node.browse(queue, self.options.selector)
        for number, message in enumerate(messages, 1):
            try:
                error_text = body_error(message, self.options, queue, node.node_id, part.planned_at_ms)
                if error_text:
                    if chunk.count:
                        yield chunk.count, chunk.getvalue(), ""
                    chunk = EntryWriter()
                    chunk.add(number, message, b"")
                    yield 1, chunk.getvalue(), error_text
                    chunk = EntryWriter()
                    continue
                chunk.add(number, message)
            except ClientError as error:
                raise SparkSourceError(
                    f"message {message.message_id} of queue {queue} at node {node.node_id} "
                    f"cannot be read: {error}"
                ) from error
            if len(chunk) >= CHUNK_BYTES:
                yield chunk.count, chunk.getvalue(), ""
                chunk = EntryWriter()
        if chunk.count:
            yield chunk.count, chunk.getvalue(), ""
