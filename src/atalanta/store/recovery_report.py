"""The results of a recovery: the report for the log, and the state that the journal continues from."""

from __future__ import annotations

from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment, segment_name
from atalanta.store.tail_cut import TailCut


class RecoveryReport:
    """Counts of a recovery. `first` and `last` are lsns, 0 in an empty journal. `torn_bytes` were cut at `torn_at`.

    `epochs` is the epoch table, (epoch, lsn of its first record), as the blocks that are left tell it. `cut` has
    the blocks that were left out because a lower lsn was asked for.
    `first_segment` is the number of the first file, 0 if there is none. `expected` names the file behind the last one,
    if that one is so full that the next one had been created, unless a crash came at that moment.
    """

    def __init__(self) -> None:
        self.records: int = 0
        self.blocks: int = 0
        self.segments: int = 0
        self.bytes: int = 0
        self.first: int = 0
        self.last: int = 0
        self.torn_bytes: int = 0
        self.torn_at: str = ""
        self.first_segment: int = 0
        self.expected: str = ""
        self.epochs: list[tuple[int, int]] = []
        self.cut: TailCut = TailCut()

    def check_first(self, recorded: int) -> None:
        """Raises JournalDamaged if the segment that records name as the first one is missing."""
        if self.first_segment > recorded:
            why = f"the file is missing, but {segment_name(self.first_segment)} is there"
            raise JournalDamaged(segment_name(recorded), 0, why)


class RecoveredState:
    """The files that the journal continues with. `position` is the offset of the next block in the last of
    `segments`.

    `spares` are empty segments behind it, `set_aside` files that new segments reuse. `incomplete` names a segment whose
    creation was cut off, or is empty.
    """

    def __init__(self, report: RecoveryReport) -> None:
        self.report = report
        self.segments: list[Segment] = []
        self.spares: list[Segment] = []
        self.set_aside: list[str] = []
        self.incomplete: str = ""
        self.position: int = SEGMENT_HEAD_SIZE


class FileRange:
    """A range of bytes in one file, with the reason why it is not valid."""

    def __init__(self, name: str, offset: int, end: int, why: str) -> None:
        self.name = name
        self.offset = offset
        self.end = end
        self.why = why
