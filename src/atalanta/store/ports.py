"""Interfaces of the journal: its owner, the live records, and the receiver of a replay."""

from __future__ import annotations

from typing import Protocol


class JournalListener(Protocol):
    """The one who hears what is durable: the broker of a node."""

    def on_durable(self, now: int, lsn: int) -> None:
        """Reports that every record up to `lsn` is durable; `lsn` grows from call to call."""


class JournalGroup(Protocol):
    """The group that replicates the journal: decides when records count as durable (ha/replication/)."""

    def on_stored(self, now: int, lsn: int) -> None:
        """Reports that every record up to `lsn` is on this node's disk. `Journal.confirm` follows, now or later."""

    def after_flush(self, now: int) -> None:
        """Reports that a commit may have begun: the block in flight leaves in the same turn."""

    def resign(self, now: int, why: str) -> None:
        """Reports that no further record will be on this node's disk."""


class LiveRecordsPort(Protocol):
    """The kernel's part of the compaction: knows which records are alive."""

    def live_bytes(self) -> int:
        """Estimates the bytes of all live records. A wrong estimate costs disk space, never data."""

    def before_compaction(self, now: int, first_segment: int) -> None:
        """Appends the state that is not part of single records. Called once per segment.

        `first_segment`: number of the segment behind it, the first one from now on.
        """

    def relocate(self, lsn: int, kind: int, payload: bytes) -> None:
        """Appends the current state of this record if it is alive; its segment is about to be deleted."""


class Replay(Protocol):
    """Receives every record of a recovery in lsn order."""

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        """Replays one record. An exception ends the recovery."""


class GrowingReplay(Replay, Protocol):
    """Receives the records of a journal that another node still compacts."""

    def settle(self) -> None:
        """Does what need not wait for the end of the recovery, after each bounded number of records."""

    def forget_before(self, lsn: int) -> None:
        """Forgets what only records before `lsn` say: their segments are gone, and live ones were appended again."""
