"""The check of a follower's disk: everything is read again, a little at a time, before anybody needs it.

A flipped bit is found while the active node still has what is damaged. The last segment is left out, because it grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from atalanta.ha.replication.block_stream import name_of
from atalanta.kernel.ports import Disk, PageError
from atalanta.store.block import decode_block_head
from atalanta.store.errors import JournalDamaged
from atalanta.store.pages import PageFiles, page_name
from atalanta.store.segment import SEGMENT_HEAD_SIZE, Segment

# Bytes of the journal that one step reads.
STEP_BYTES: Final = 1 << 18
# From the begin of one pass to that of the next.
PASS_NS: Final = 3_600_000_000_000


class DiskCheck:
    """Reads the journal and the page files of a follower, again and again. The last segment is left out: it grows.

    `segments` returns those of the journal as it is now. `writes` tells whether anything is being written, and
    `writes_files` whether a page file is.
    """

    def __init__(
        self,
        disk: Disk,
        journal_id: bytes,
        segments: Callable[[], list[Segment]],
        writes: Callable[[], bool],
        writes_files: Callable[[], bool],
    ) -> None:
        self._disk = disk
        self._segments = segments
        self._writes = writes
        self._writes_files = writes_files
        self._pages = PageFiles(disk, journal_id)
        self._steps: Iterator[None] | None = None
        self._next_ns = 0

    def step(self, now: int) -> None:
        """Reads the next part, if it is time for one. JournalDamaged, PageError; then the file needs another copy."""
        if self._steps is None and now >= self._next_ns and not self._writes():
            self._next_ns = now + PASS_NS
            self._steps = self._all()
        if self._steps is not None:
            try:
                next(self._steps)
            except StopIteration:
                self._steps = None
            except (JournalDamaged, PageError):
                self._steps = None
                self._next_ns = now
                raise

    def _all(self) -> Iterator[None]:
        """Reads everything that is on the disk at the first step; each step is short."""
        for segment in self._segments()[:-1]:
            yield from self._segment(segment)
        if not self._writes_files():
            for number in self._pages.numbers():
                yield from self._page(number)

    def _exists(self, segment: Segment) -> bool:
        """Returns whether the active node has not deleted the segment meanwhile."""
        return segment in self._segments()

    def _segment(self, segment: Segment) -> Iterator[None]:
        offset = SEGMENT_HEAD_SIZE
        size = segment.block_head_size
        while offset < segment.end and self._exists(segment):
            data = self._disk.read(segment.name, offset, min(STEP_BYTES, segment.end - offset))
            head = decode_block_head(segment.seal, data, 0, size)
            if head is not None and size + head.length > len(data):
                data = self._disk.read(segment.name, offset, size + head.length)
            position = 0
            while (found := name_of(segment, offset + position, data, position)) is not None:
                position += found.length
            if position == 0:
                raise JournalDamaged(segment.name, offset, "a block does not match its checksum")
            offset += position
            yield

    def _page(self, number: int) -> Iterator[None]:
        """Reads a page file, block by block. One that goes, or comes again, meanwhile is not damaged."""
        block = 0
        try:
            while block < self._pages.block_count(number):
                self._pages.read(number, block)
                block += 1
                yield
        except PageError:
            if not self._writes_files() and page_name(number) in self._disk.names():
                self._pages.keep(number)
                raise
        finally:
            self._pages.forget(number)
