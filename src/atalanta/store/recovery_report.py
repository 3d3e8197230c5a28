"""What a recovery found, for the log, and what the journal goes on from."""

from __future__ import annotations

from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment


class RecoveryReport:
    """`first` and `last` are lsns, 0 in an empty journal; `torn_bytes` were cut at `torn_at`."""

    def __init__(self) -> None:
        self.records: int = 0
        self.blocks: int = 0
        self.segments: int = 0
        self.bytes: int = 0
        self.first: int = 0
        self.last: int = 0
        self.torn_bytes: int = 0
        self.torn_at: str = ""


class RecoveredState:
    """`position` is where the next block begins in the last of `segments`."""

    def __init__(self) -> None:
        self.report: RecoveryReport = RecoveryReport()
        self.segments: list[Segment] = []
        self.spares: list[Segment] = []
        self.position: int = SEGMENT_HEAD_SIZE


class Stretch:
    """A stretch of one file, in bytes, and what is to be said of it."""

    def __init__(self, name: str, offset: int, end: int, why: str) -> None:
        self.name = name
        self.offset = offset
        self.end = end
        self.why = why
