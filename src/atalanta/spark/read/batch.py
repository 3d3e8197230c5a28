"""The batch source: a snapshot of the queues, without lease and acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.spark.errors import no_queue
from atalanta.spark.gateway.gateway import Connector
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.members import PolledMembers
from atalanta.spark.read.offsets import Range, split_all
from atalanta.spark.read.partition_reader import RangePartition, RangeReader
from atalanta.spark.read.starting_offsets import final_sequence, initial_sequence


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
                raise no_queue(self.options.login.servers, self.options.queue)
            wholes = []
            for node, located in sorted(found.items()):
                start = members.call(node, partial(initial_sequence, self.options, located, True))
                end = final_sequence(self.options, located)
                if end > start:
                    incarnation = located.position.incarnation
                    wholes.append(Range(node, incarnation, located.server, start, end))
        finally:
            members.close()
        return [RangePartition(part) for part in split_all(wholes, self.options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            return iter(())  # without a partition, Spark creates one from nothing
        return RangeReader(self.options, self.schema, self.connect, partition).batches()
