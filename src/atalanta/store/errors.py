"""What can go wrong with a journal."""

from __future__ import annotations


class JournalFailed(Exception):
    """A write or a sync failed earlier: nothing can become durable any more in this process."""


class JournalDamaged(Exception):
    """Bytes that were once durable cannot be read back. Nothing was changed on the disk.

    `name` and `offset` (bytes) tell the place. A torn tail, by contrast, is no damage: it was never
    confirmed, is cut, and counted in the RecoveryReport.
    """

    def __init__(self, name: str, offset: int, why: str) -> None:
        super().__init__(f"journal file {name}, offset {offset}: {why}")
        self.name = name
        self.offset = offset
        self.why = why


class JournalForeign(Exception):
    """A segment that another node wrote, or another version of this program."""
