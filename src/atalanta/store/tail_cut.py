"""The cut of a journal's tail: blocks that the other members of a group do not have leave the journal.

The blocks are kept aside, in files with a header and blocks like a segment:

    cut-<epoch, 10 digits>-<first lsn, 20 digits>-<segment number, 20 digits>.log

Epoch and lsn are those of the first block in the file. A segment without other blocks is renamed, the last one first.
From a segment with blocks on both sides the rear ones are copied. Then a file with the blocks that stay takes its
place. So after a crash in between, the journal is whole up to some block of the old tail, and the same cut completes
what is left.

A damaged journal is cut in the same way behind its last whole block. Whatever the files behind it have is kept aside
as it is, in `damaged-<name of the segment>`.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.ports import Disk
from atalanta.store.block import BlockHead
from atalanta.store.segment import (
    NAME_SUFFIX,
    SEGMENT_HEAD_SIZE,
    Segment,
    is_spare,
    spare_name,
)

CUT_PREFIX: Final = "cut-"
DAMAGED_PREFIX: Final = "damaged-"


class CutRange:
    """The bytes of one segment from offset `begin` to `end` that are cut; `name` is the file that keeps them."""

    def __init__(self, segment: Segment, begin: int, end: int, name: str) -> None:
        self.segment = segment
        self.begin = begin
        self.end = end
        self.name = name


class TailCut:
    """The blocks that are cut, by segment, oldest first.

    A recovery without a cut has none. `damaged`: they are not blocks, but what is behind damage.
    """

    def __init__(self) -> None:
        self.blocks: int = 0
        self.damaged: bool = False
        self.ranges: list[CutRange] = []
        self._spares: list[Segment] = []
        self._incomplete: str = ""

    def add(self, segment: Segment, position: int, end: int, head: BlockHead) -> None:
        """Adds the next block: the one from `position` to `end` of `segment`."""
        self.blocks += 1
        if self.ranges and self.ranges[len(self.ranges) - 1].segment is segment:
            self.ranges[len(self.ranges) - 1].end = end
        else:
            name = f"{CUT_PREFIX}{head.epoch:010d}-{head.first:020d}-{segment.number:020d}{NAME_SUFFIX}"
            self.ranges.append(CutRange(segment, position, end, name))

    def add_damaged(self, segment: Segment, begin: int) -> None:
        """Adds what a segment has from offset `begin` on, because of damage there or in an earlier segment."""
        self.damaged = True
        self.ranges.append(CutRange(segment, begin, segment.size, DAMAGED_PREFIX + segment.name))

    def exists(self) -> bool:
        """Returns whether anything is cut."""
        return len(self.ranges) > 0

    def take_empty(self, spares: list[Segment], incomplete: str) -> None:
        """Adds the empty segments behind the blocks. `incomplete` names one whose creation was cut off, or is empty."""
        self._spares = spares
        self._incomplete = incomplete

    def names(self) -> list[str]:
        """Returns the names of the files that keep the blocks."""
        return [cut.name for cut in self.ranges]

    def size_bytes(self) -> int:
        """Returns the size of all blocks that are cut."""
        return sum([cut.end - cut.begin for cut in self.ranges])

    def start(self, disk: Disk) -> None:
        """Adds the jobs that cut. The jobs hold up to one segment in memory."""
        for name in disk.names():
            if is_spare(name):
                # It may have been a segment whose number is given once more.
                disk.delete(name)
        if self._incomplete:
            disk.delete(self._incomplete)
        for spare in reversed(self._spares):
            disk.delete(spare.name)
        for cut in reversed(self.ranges):
            if cut.begin == SEGMENT_HEAD_SIZE:
                disk.set_aside(cut.segment.name, cut.name)
            else:
                self._divide(disk, cut)

    def _divide(self, disk: Disk, cut: CutRange) -> None:
        segment = cut.segment
        tail = disk.read(segment.name, cut.begin, cut.end - cut.begin)
        disk.create(cut.name, SEGMENT_HEAD_SIZE + len(tail), segment.head() + tail)
        rest = disk.read(segment.name, 0, cut.begin)
        temporary = spare_name(segment.number)
        disk.create(temporary, segment.size, b"")
        disk.reuse(temporary, segment.name, rest)
