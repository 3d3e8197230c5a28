"""The choice between the log view and the write-ahead source (`sourceMode`), by the nodes if no option says it.

A query starts a process that plans it, whose start waits for every import: readers that few queries use are imported
where they are made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.spark.environment.compatibility import (
    ADMISSION_CONTROL,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from atalanta.spark.errors import LogViewMissing, OptionError
from atalanta.spark.gateway.gateway import Connector
from atalanta.spark.options import DEAD_LETTER, LATEST, LOG_MODE, WAL_MODE, ReadOptions, Start
from atalanta.spark.read.partition_reader import RangePartition
from atalanta.spark.read.stream_reader import AtalantaStreamReader

if TYPE_CHECKING:
    from atalanta.spark.read.batch import AtalantaBatchReader
    from atalanta.spark.read.several_queues import QueuesBatchReader, QueuesStreamReader
    from atalanta.spark.wal.wal_node import Opener
    from atalanta.spark.wal.wal_stream_reader import WalStreamReader

    LogStreamReader = AtalantaStreamReader | QueuesStreamReader
    LogBatchReader = AtalantaBatchReader | QueuesBatchReader

log = logging.getLogger("atalanta.spark")


def stream_reader(
    options: ReadOptions, schema: StructType, connect: Connector, open_node: Opener, load: str
) -> DataSourceStreamReader:
    """Returns the reader of the mode, or one that chooses. `load`: see shared_lease.py. Raises OptionError."""
    if options.ending != Start(LATEST) or options.ending_times:
        raise OptionError("endingOffsets and endingTimestamp are for batch reads: a stream has no end")
    reader = limited_reader(options, schema, connect, open_node, load)
    if ADMISSION_CONTROL:
        return reader
    from atalanta.spark.read.older_stream_reader import OlderStreamReader

    return OlderStreamReader(options, reader)


def limited_reader(
    options: ReadOptions, schema: StructType, connect: Connector, open_node: Opener, load: str
) -> WalStreamReader | LogStreamReader | ChosenStreamReader:
    """Returns the reader as Spark 4.2 calls it."""
    if options.source_mode == WAL_MODE:
        from atalanta.spark.wal.wal_stream_reader import WalStreamReader

        return WalStreamReader(options, schema, open_node)
    by_log: LogStreamReader
    if options.several:
        from atalanta.spark.read.several_queues import QueuesStreamReader

        by_log = QueuesStreamReader(options, schema, connect, load)
    else:
        by_log = AtalantaStreamReader(options, schema, connect, load)
    if options.source_mode == LOG_MODE:
        return by_log
    return ChosenStreamReader(options, schema, by_log, open_node)


def batch_reader(
    options: ReadOptions, schema: StructType, connect: Connector, open_node: Opener
) -> DataSourceReader:
    """Returns the reader of the mode, or one that chooses. Raises OptionError."""
    if options.undecodable == DEAD_LETTER:
        raise OptionError("undecodable=dead-letter is for streams: a batch read leaves every message in its queue")
    if options.source_mode == WAL_MODE:
        from atalanta.spark.wal.browse_reader import BrowseReader

        return BrowseReader(options, schema, open_node)
    by_log: LogBatchReader
    if options.several:
        from atalanta.spark.read.several_queues import QueuesBatchReader

        by_log = QueuesBatchReader(options, schema, connect)
    else:
        from atalanta.spark.read.batch import AtalantaBatchReader

        by_log = AtalantaBatchReader(options, schema, connect)
    if options.source_mode == LOG_MODE:
        return by_log
    return ChosenBatchReader(options, schema, by_log, open_node)


class ChosenStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream without `sourceMode`: the checkpoint says the mode, before there is one the nodes."""

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        by_log: LogStreamReader,
        open_node: Opener,
    ) -> None:
        self.options = options
        self.schema = schema
        self.open_node = open_node
        self._log = by_log
        self._wal: WalStreamReader | None = None
        self._bounded = False  # Trigger.AvailableNow

    # -- calls of Spark in the driver ---------------------------------------------------------------
    def initialOffset(self) -> dict[str, Any]:
        if self._wal is None:
            try:
                return self._log.initialOffset()
            except LogViewMissing as error:
                self._change(error)
        return self._chosen_wal().initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:
        return self._log.getDefaultReadLimit()  # of the options alone

    def prepareForTriggerAvailableNow(self) -> None:
        self._bounded = True
        if self._wal is not None:
            return self._wal.prepareForTriggerAvailableNow()
        try:
            self._log.prepareForTriggerAvailableNow()
        except LogViewMissing as error:
            self._change(error)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit, certain: bool = True) -> dict[str, Any]:
        return self._by(start).latestOffset(start, limit, certain)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._log.reportLatestOffset() if self._wal is None else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self._by(end).partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        self._by(end).commit(end)

    def acknowledge(self, end: dict[str, Any]) -> None:
        self._by(end).acknowledge(end)

    def stop(self) -> None:
        self._log.stop()
        if self._wal is not None:
            self._wal.stop()

    # -- calls of Spark in a task -------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            from atalanta.spark.wal.wal_stream_reader import FilePartition

            if isinstance(partition, FilePartition):
                return self._chosen_wal().read(partition)
        return self._log.read(partition)

    # -- the mode -------------------------------------------------------------------------------------
    def _by(self, offset: dict[str, Any]) -> LogStreamReader | WalStreamReader:
        """Returns the reader whose offsets these are. Spark calls with the checkpoint's before all others."""
        return self._chosen_wal() if "wal" in offset or self._wal is not None else self._log

    def _change(self, error: LogViewMissing) -> None:
        """Goes over to the write-ahead folder. Raises OptionError if there is none."""
        self._log.stop()
        self._chosen_wal()
        log.warning("sourceMode=wal (walLocation %s): %s", self.options.wal_location, error)

    def _chosen_wal(self) -> WalStreamReader:
        if self._wal is None:
            from atalanta.spark.wal.wal_stream_reader import WalStreamReader

            self._wal = WalStreamReader(self.options, self.schema, self.open_node)
            if self._bounded:
                self._wal.prepareForTriggerAvailableNow()
        return self._wal


class ChosenBatchReader(DataSourceReader):
    """The reader of a batch without `sourceMode`: nodes without the log view are browsed."""

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        by_log: LogBatchReader,
        open_node: Opener,
    ) -> None:
        self.options = options
        self.schema = schema
        self.open_node = open_node
        self._log = by_log

    def partitions(self) -> list[InputPartition]:
        try:
            return [*self._log.partitions()]
        except LogViewMissing as error:
            from atalanta.spark.wal.browse_reader import BrowseReader

            log.warning("the queues are browsed: %s", error)
            return BrowseReader(self.options, self.schema, self.open_node).partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, RangePartition):
            return self._log.read(partition)
        from atalanta.spark.read.several_queues import QueuePartition
        from atalanta.spark.wal.browse_reader import BrowsePartition, BrowseReader

        if isinstance(partition, BrowsePartition):
            return BrowseReader(self.options, self.schema, self.open_node).read(partition)
        if not isinstance(partition, QueuePartition):
            return iter(())  # without a partition, Spark creates one from nothing
        return self._log.read(partition)
