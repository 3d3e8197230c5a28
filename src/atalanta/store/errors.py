"""Errors of the journal."""

from __future__ import annotations


class JournalFailed(Exception):
    """A write or a sync failed earlier. In this process no further record can become durable."""


class JournalDamaged(Exception):
    """Bytes that were once durable cannot be read back. The disk was not changed.

    `name` is the file, `offset` the position in bytes. A torn tail is not damage: its records were never
    confirmed. Recovery cuts it and counts it in the RecoveryReport.
    """

    def __init__(self, name: str, offset: int, why: str) -> None:
        super().__init__(f"journal file {name}, offset {offset}: {why}")
        self.name = name
        self.offset = offset
        self.why = why


class JournalForeign(Exception):
    """A segment was written by another node or by another version of the format."""
