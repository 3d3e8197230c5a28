"""The newest committed batch of every Spark query and partition: what makes its writes exactly once.

Not a circular cache of ids: an entry stays until `SINKS_MAX` others were committed after it. A batch write has a query
id of its own, so entries would otherwise grow without end.
"""

from __future__ import annotations

from typing import Final

SINKS_MAX: Final = 100_000


class Sinks:
    """(query, partition) -> (batch, lsn of the record that says so), the longest unused first."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], tuple[int, int]] = {}

    def newest(self, query: str, partition: int) -> int:
        """The newest committed batch, -1 if there is none."""
        known = self.entries.get((query, partition))
        return -1 if known is None else known[0]

    def lsn_of(self, query: str, partition: int) -> int:
        known = self.entries.get((query, partition))
        return -1 if known is None else known[1]

    def put(self, query: str, partition: int, batch: int, lsn: int) -> None:
        key = (query, partition)
        self.entries.pop(key, None)
        self.entries[key] = (batch, lsn)
        if len(self.entries) > SINKS_MAX:
            del self.entries[next(iter(self.entries))]

    def moved(self, query: str, partition: int, lsn: int) -> None:
        """The record was copied by compaction; the entry keeps its age."""
        self.entries[(query, partition)] = (self.newest(query, partition), lsn)
