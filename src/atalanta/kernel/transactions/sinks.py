"""The newest committed batch of every Spark query and partition, which makes Spark's writes exactly-once.

An entry stays until `SINKS_MAX` others were committed after it. A limit is needed because every batch write has a
query id of its own.
"""

from __future__ import annotations

from typing import Final

SINKS_MAX: Final = 100_000


class Sinks:
    """The newest batches: (query, partition) -> (batch, lsn of its record), the least recently used first."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], tuple[int, int]] = {}

    def newest(self, query: str, partition: int) -> int:
        """Returns the newest committed batch, -1 if there is none."""
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
        """Updates the lsn after compaction has copied the record; the entry keeps its age."""
        self.entries[(query, partition)] = (self.newest(query, partition), lsn)
