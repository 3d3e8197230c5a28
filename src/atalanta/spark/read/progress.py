"""The progress of a query: the order of Spark's calls, and the source's part in its reports.

The reports have lag, rates and lease of each node. PySpark 4.2 has no metrics for a Python stream. Spark shows the
latest offset as the source reports it, so the figures stand there, beside the sequence. Spark does not store it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from atalanta.client import Position
from atalanta.message import dataclass
from atalanta.spark.errors import OptionError
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.leases import Leases
from atalanta.spark.read.members import Located
from atalanta.spark.read.offsets import NodeOffset, Offset


class ProgressOrder:
    """The order of Spark's calls of one source, which shows whether its commit log is complete.

    Between the plan of a batch and `partitions` Spark calls `commit` with the start of the batch: the batch before is
    in its commit log. With asynchronous progress tracking (`asyncProgressTrackingEnabled`) it does not: then batches
    that are done are read again after a crash, and must not have been acknowledged. A source sees no option of the
    query, only this.
    """

    def __init__(self) -> None:
        self.initial: dict[str, Any] | None = None
        self.due: dict[str, Any] | None = None
        self.complete = False  # the order was seen

    def begin(self, initial: dict[str, Any]) -> None:
        """Records the initial offset of a new query."""
        self.initial = initial

    def plan(self, start: dict[str, Any]) -> bool:
        """Records the plan of a batch. Returns True if its start may be acknowledged now, not at `commit`."""
        # Spark commits neither the initial offset nor a start without nodes (a queue that has just appeared).
        self.due = None if start == self.initial or not start["nodes"] else start
        return self.complete or self.due is None

    def commit(self, end: dict[str, Any]) -> bool:
        """Records a commit. Returns True for the first one that a plan was waiting for."""
        if self.due is None or self.due != end:
            return False
        self.due = None
        first, self.complete = not self.complete, True
        return first

    def check(self) -> None:
        """Raises OptionError if the tasks of a batch are planned and its start was not committed."""
        if self.due is not None:
            raise OptionError(
                "Spark plans a batch before the one before is in its commit log: the query has "
                "asynchronous progress tracking (asyncProgressTrackingEnabled), with which messages could be "
                "acknowledged too early. Remove that option"
            )


@dataclass(frozen=True)
class Seen:
    """A node's queue at a time (s): the last sequence, and the last one that a batch has."""

    at_s: float
    last: int
    planned: int


class Progress:
    """The figures of one query. Rates are those since the report before."""

    def __init__(
        self, options: ReadOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.options = options
        self.clock = clock
        self.planned: dict[str, NodeOffset] = {}
        self.seen: dict[tuple[str, str], Seen] = {}

    def plan(self, end: Offset) -> None:
        """Records the end of the batch that was planned last."""
        self.planned = dict(end.entries)

    def report(self, found: Mapping[str, Located], leases: Leases | None) -> dict[str, Any]:
        """Returns the latest offset with `group`, `lag` (messages), and the figures of each node."""
        now_s = self.clock()
        entries = {
            node: NodeOffset(located.position.incarnation, located.position.last, located.server)
            for node, located in found.items()
        }
        shown = Offset(self.options.queue, entries).to_json()
        shown["group"] = self.options.group
        for node, entry in entries.items():
            shown["nodes"][node].update(self._figures(node, found[node].position, now_s))
            if leases is not None:
                shown["nodes"][node].update(leases.shown(node, entry.incarnation))
        shown["lag"] = sum(figures["lag"] for figures in shown["nodes"].values())
        return shown

    def _figures(self, node: str, position: Position, now_s: float) -> dict[str, Any]:
        planned = self.planned.get(node)
        read = max(position.first - 1, position.acked_through)
        if planned is not None and planned.incarnation == position.incarnation:
            read = planned.sequence
        now = Seen(now_s, position.last, read)
        before = self.seen.get((node, position.incarnation), now)
        self.seen[node, position.incarnation] = now
        seconds = now.at_s - before.at_s
        return {
            "lag": max(0, now.last - now.planned),
            "arrived_per_second": rate(now.last - before.last, seconds),
            "read_per_second": rate(now.planned - before.planned, seconds),
        }


def rate(count: int, seconds: float) -> float:
    return round(max(0, count) / seconds, 1) if seconds > 0 else 0.0
