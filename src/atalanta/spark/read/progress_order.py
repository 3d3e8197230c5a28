"""The order of Spark's calls, which shows whether its commit log is complete.

Between the plan of a batch and `partitions` Spark calls `commit` with the start of the batch: the batch before is in
its commit log. With asynchronous progress tracking (`asyncProgressTrackingEnabled`) it does not: then batches that are
done are read again after a crash, and must not have been acknowledged. A source sees no option of the query, only this.
"""

from __future__ import annotations

from typing import Any

from atalanta.spark.errors import OptionError


class ProgressOrder:
    """The calls of one source."""

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
