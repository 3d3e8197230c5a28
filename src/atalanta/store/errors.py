"""Errors of the journal."""

from __future__ import annotations

from collections.abc import Sequence


class JournalFailed(Exception):
    """A write or a sync failed earlier. In this process no further record can become durable."""


class JournalDamaged(Exception):
    """Bytes that were once durable cannot be read back. The disk was not changed.

    `name` is the file, `offset` the position in bytes. A torn tail is not damage: its records were never
    confirmed. Recovery cuts it and counts it in the RecoveryReport.

    `records`: kind and payload of the records of the damaged block, as far as they can be told apart. At least one of
    them is changed.
    """

    def __init__(
        self, name: str, offset: int, why: str, records: Sequence[tuple[int, bytes]] = ()
    ) -> None:
        super().__init__(f"journal file {name}, offset {offset}: {why}")
        self.name = name
        self.offset = offset
        self.why = why
        self.records = records

    def with_contents(self, text: str) -> JournalDamaged:
        """Returns the error with a description of the block's records; "" adds nothing."""
        why = f"{self.why}; the block had {text}" if text else self.why
        return JournalDamaged(self.name, self.offset, why, self.records)


class JournalForeign(Exception):
    """A segment was written by another node or by another version of the format."""
