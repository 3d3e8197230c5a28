"""What the journal asks of its owner, the keeper of what is alive, and the reader of a recovery."""

from __future__ import annotations

from typing import Protocol


class JournalOwner(Protocol):
    """The node. Called from within `on_committed`, `on_failed` and `compact_step`."""

    def on_durable(self, now: int, lsn: int) -> None:
        """Every record up to `lsn` is on disk; `lsn` grows from call to call."""

    def on_journal_failed(self, now: int, why: str) -> None:
        """Nothing more will become durable; once in the life of a journal."""


class JournalKeeper(Protocol):
    """Knows which records are alive: the kernel's half of compaction."""

    def live_bytes(self) -> int:
        """About how many bytes of records are alive; a wrong guess costs space, never data."""

    def before_compaction(self, now: int) -> None:
        """Append what must survive beside single records (counters); once a segment."""

    def relocate(self, lsn: int, kind: int, payload: bytes) -> None:
        """Append the present state of what is alive in this record, which is about to vanish."""


class Replay(Protocol):
    """Receives every record of a recovery, in the order of their lsn."""

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        """One record; what it raises ends the recovery."""
