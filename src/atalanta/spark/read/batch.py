"""The batch source: a snapshot of the queues, without lease and acknowledgements."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.members import Located, PolledMembers
from atalanta.spark.read.offsets import Range, now_ms, split_all
from atalanta.spark.read.partition_reader import RangePartition, RangeReader
from atalanta.spark.read.starting_offsets import check_names, final_sequence, initial_sequence

SEQUENCE_MAX: Final = 2**63 - 1
NOT_DURABLE: Final = "not durable"  # begins the reason of a range that the node does not show

log = logging.getLogger("atalanta.spark")


class AtalantaBatchReader(DataSourceReader):
    """A reader from startingOffsets to endingOffsets; the default is every message."""

    def __init__(self, options: ReadOptions, schema: StructType, connect: Connector) -> None:
        self.options = options
        self.schema = schema
        self.connect = connect

    def partitions(self) -> list[InputPartition]:
        members = PolledMembers(self.options, self.connect)
        try:
            found = members.wait_for({}, True, 0.0)
            if not found:
                raise members.no_queue()
            check_names(self.options, members)
            wholes = []
            for node, located in sorted(found.items()):
                start = members.call(node, partial(initial_sequence, self.options, located, True))
                end = members.call(node, partial(final_sequence, self.options, located))
                bounded = bool(self.options.ending.sequences or self.options.ending_times)
                members.call(node, partial(self._warn_of_hidden, located, start, end if bounded else SEQUENCE_MAX))
                if end > start:
                    incarnation = located.position.incarnation
                    wholes.append(Range(node, incarnation, located.server, start, end, now_ms(), located.backups))
        finally:
            members.close()
        return [
            RangePartition(part)
            for part in split_all(wholes, self.options.min_partitions, self.options.max_partition_messages)
        ]

    def _warn_of_hidden(self, located: Located, start: int, end: int, gateway: Gateway) -> None:
        """Warns of messages that are no rows: non-durable ones of a queue that no group has leased yet."""
        position, queue = located.position, self.options.queue
        ranges = gateway.lost_ranges(queue, position.incarnation, start, end)
        count = sum(part.end - part.start + 1 for part in ranges if part.why.startswith(NOT_DURABLE))
        if count:
            log.warning(
                "queue %s at node %s (%s): at least %s messages are not durable and no rows of this batch read. A "
                "stream of the queue reads them: its first lease makes them durable",
                queue, position.node_id, located.server, count,
            )  # fmt: skip

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            return iter(())  # without a partition, Spark creates one from nothing
        return RangeReader(self.options, self.schema, self.connect, partition).batches()
