"""The streaming source for Spark 4.0 and 4.1, which call `latestOffset` without start and limit.

The start is the last end that is known: of the batch planned last, or of the one that Spark's checkpoint had at the
start of the query (Spark asks for the empty range at that end first). Spark plans the next batch only when this one
is in its commit log; so a second call of `latestOffset` acknowledges, as with Spark 4.2, and `commit` does, too.

Spark does not tell these versions of Trigger.AvailableNow, and plans one batch in such a run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from atalanta.spark.environment.compatibility import ReadLimit
from atalanta.spark.read.batch_plan import BatchLimits, limits_of
from atalanta.spark.read.offsets import Offset
from atalanta.spark.read.stream_reader import AtalantaStreamReader

log = logging.getLogger("atalanta.spark")


class OlderStreamReader(AtalantaStreamReader):
    """The reader, which remembers the end of the last batch itself."""

    _end_known: dict[str, Any] | None = None
    _plans = 0
    _committed = False  # whether that end is certainly in the commit log

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Returns the end of the next batch, under the limits of the options."""
        before = self._end_known or self.initialOffset()
        limit = self.getDefaultReadLimit()
        if self._plans == 0 and limits_of(self.options) != BatchLimits(None, None):
            log.warning(
                "Spark 4.0 and 4.1 plan one batch in a run with Trigger.AvailableNow: with "
                "maxOffsetsPerTrigger or maxBytesPerTrigger the rest stays in the queue until the "
                "next run (see docs/guide/spark.md)"
            )
        self._committed = self._plans > 0
        self._plans += 1
        self._end_known = super().latestOffset(before, limit)
        return self._end_known

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._end_known = end
        return super().partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        """Acknowledges a batch. Spark commits it when the next one is in its checkpoint."""
        super().commit(end)
        self._acknowledging.settle()
        self._committed = True
        self._acknowledge(Offset.from_json(end, self.options.queue))

    def _acknowledge(self, before: Offset) -> None:
        """Acknowledges nothing before it is certain that Spark does not repeat it.

        With spark.sql.streaming.triggerAvailableNowWrapper.enabled Spark plans before it repeats an unfinished batch.
        """
        if self._committed or self._end_known is None:
            super()._acknowledge(before)
