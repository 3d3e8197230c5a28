"""Streams for Spark 4.0 and 4.1, which call `latestOffset` without start and limit.

The start is the last end that is known: of the batch planned last, or of the one that Spark's checkpoint had at the
start of the query (Spark asks for the empty range at that end first). Spark plans the next batch only when this one
is in its commit log; so a call of `latestOffset` after the tasks of a batch acknowledges it, as with Spark 4.2, and
`commit` does, too.

Spark does not tell these versions of Trigger.AvailableNow, and plans one batch in such a run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from atalanta.spark.environment.compatibility import ReadLimit
from atalanta.spark.errors import OptionError
from atalanta.spark.options import WAL_MODE, ReadOptions
from atalanta.spark.read.batch_plan import BatchLimits, limits_of

log = logging.getLogger("atalanta.spark")
Json = dict[str, Any]


class LimitedReader(Protocol):
    """A reader as Spark 4.2 calls it."""

    def initialOffset(self) -> Json: ...

    def getDefaultReadLimit(self) -> ReadLimit: ...

    def latestOffset(self, start: Json, limit: ReadLimit, certain: bool = True) -> Json: ...

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]: ...

    def commit(self, end: Json) -> None: ...

    def acknowledge(self, end: Json) -> None:
        """Acknowledges every batch up to `end`, which Spark never repeats."""

    def stop(self) -> None: ...

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]: ...


class OlderStreamReader(DataSourceStreamReader):
    """The reader around one for Spark 4.2. It remembers the end of the last batch itself.

    It says that the batch before may be repeated until that is certain: with
    spark.sql.streaming.triggerAvailableNowWrapper.enabled Spark plans before it repeats an unfinished batch.
    """

    def __init__(self, options: ReadOptions, reader: LimitedReader) -> None:
        check_older(options)
        self.options = options
        self.reader = reader
        self._end_known: Json | None = None
        self._certain = True  # Spark has the batch up to there in its commit log when it asks for the next one
        self._warned = False

    # -- calls of Spark in the driver ---------------------------------------------------------------
    def initialOffset(self) -> Json:
        return self.reader.initialOffset()

    def latestOffset(self) -> Json:  # type: ignore[override]  # as Spark 4.0 and 4.1 call it
        """Returns the end of the next batch, under the limits of the options."""
        limit = self.reader.getDefaultReadLimit()
        before = self._end_known or self.reader.initialOffset()
        if not self._warned and (
            limits_of(self.options) != BatchLimits(None, None) or self.options.source_mode == WAL_MODE
        ):
            log.warning(
                "Spark 4.0 and 4.1 plan one batch in a run with Trigger.AvailableNow: what is above the limits of a "
                "batch stays in the queue until the next run (see docs/guide/spark.md)"
            )
        self._warned = True
        self._end_known = self.reader.latestOffset(before, limit, self._certain)
        if self._end_known != before:
            self._certain = False
        return self._end_known

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        if start != end:
            self._certain = True  # the batch runs now, and Spark plans no other before it is committed
        elif end != self._end_known:
            self._certain = False  # the end in the checkpoint, of a batch that may be unfinished
        self._end_known = end
        return self.reader.partitions(start, end)

    def commit(self, end: Json) -> None:
        """Acknowledges a batch. Spark commits it when the next one is in its checkpoint."""
        self.reader.commit(end)
        self.reader.acknowledge(end)

    def stop(self) -> None:
        self.reader.stop()

    # -- calls of Spark in a task -------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reader.read(partition)


def check_older(options: ReadOptions) -> None:
    """Raises OptionError for an option that needs Spark 4.2."""
    if options.min_messages is not None:
        raise OptionError(
            "option minOffsetsPerTrigger needs Spark 4.2, which tells a Python source of Trigger.AvailableNow: with "
            "this version such a run would end without its last rows. Use a longer trigger, such as "
            'trigger(processingTime="1 minute")'
        )
