"""The page files and large bodies of a follower: equal to those of the active node before a record names them.

A page file is a job of the disk before the block that names it. A large body comes under a number of its own, and gets
its final one when it is complete and synced; what follows its end in the stream waits for that (backup.py). So the
disk never has a record without its files, and a file that is there is whole. Only a page file that was being written
at a crash may not be: its number is noted before.

Deletions wait until the record that makes the file unneeded is on the disk.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from atalanta.cluster.replication.member_codec import (
    LARGE_FILE,
    PAGE_FILE,
    FileDeletion,
    KeptFiles,
    LargeData,
    LargeEnd,
    PageFile,
    StoredFiles,
)
from atalanta.kernel.ports import Disk, LargeFiles, PageError
from atalanta.store.pages import PageFiles, page_name
from atalanta.wire.protocol_error import ProtocolError

BARRIER_NAME: Final = "replica-barrier"
BARRIER_SIZE: Final = 4096
# A large body that is not complete has its number with this bit. No message has it.
INCOMPLETE: Final = 1 << 62


class WriteBarrier:
    """Tells when all earlier jobs of a disk are done: a commit of a file of its own, whose token is negative.

    The file keeps `page`, the number of the page file that was begun last, 0 without one. Make it before any job.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._last = 0
        self._exists = BARRIER_NAME in disk.names() and disk.size(BARRIER_NAME) == BARRIER_SIZE
        self.page: int = int.from_bytes(disk.read(BARRIER_NAME, 0, 8), "big") if self._exists else 0

    def begin(self, page: int = 0) -> int:
        """Sets a barrier behind all jobs so far, before that of page file `page`, if given. Returns its token."""
        if not self._exists:
            self._exists = True
            self._disk.create(BARRIER_NAME, BARRIER_SIZE, b"")
        if page:
            self.page = page
        self._last -= 1
        self._disk.commit(BARRIER_NAME, 0, self.page.to_bytes(8, "big"), self._last)
        return self._last


class FollowerFiles:
    """The files of one follower."""

    def __init__(self, disk: Disk, large: LargeFiles, journal_id: bytes, barrier: WriteBarrier) -> None:
        self._disk = disk
        self._large = large
        self._journal_id = journal_id
        self._barrier = barrier
        # Of large bodies that are not complete: the bytes received.
        self._growing: dict[int, int] = {}
        # Large bodies that get their final number: how often that is under way.
        self._ending: dict[int, int] = {}
        self._deletions: deque[FileDeletion] = deque()
        self._told: StoredFiles = StoredFiles((), ())
        self._page_numbers: list[int] = []
        # Page files that are being written: the barrier behind each, and its bytes.
        self._written: deque[tuple[int, int]] = deque()
        self._page_bytes = 0
        self._body_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """Returns the bytes that were received and are not written: the caller limits them."""
        return self._page_bytes + self._body_bytes

    # --- the begin of a stream --------------------------------------------------------------------

    def stored(self) -> StoredFiles:
        """Returns the complete files, at the begin of a stream, when no job of the disk waits. Raises OSError.

        What an earlier stream has asked for is forgotten: the new one begins with all files.
        """
        self._deletions.clear()
        self.forget_incomplete()
        pages = PageFiles(self._disk, self._journal_id)
        numbers = pages.numbers()
        # One of these was being written at a crash: as a follower, or as the active node.
        torn = {self._barrier.page, numbers[-1] if numbers else 0}
        entries: list[tuple[int, int, int]] = []
        for number in numbers:
            try:
                size, checksum = pages.stamp(number)
                if number in torn:
                    pages.check(number)
            except PageError:
                continue  # the active node sends it again
            entries.append((number, size, checksum))
        bodies = [(file, size) for file, size in sorted(self._large.files().items()) if file < INCOMPLETE]
        self._told = StoredFiles(tuple(entries), tuple(bodies))
        self._page_numbers = numbers
        return self._told

    def forget_incomplete(self) -> None:
        """Deletes the large bodies that are not complete: they begin again."""
        numbers = [file | INCOMPLETE for file in self._growing]
        numbers += [file for file in self._large.files() if file >= INCOMPLETE and file not in numbers]
        for number in numbers:
            self._large.delete(number)
        self._growing.clear()

    def on_kept(self, kept: KeptFiles) -> None:
        """Deletes what the active node does not have, when everything up to that moment is on the disk."""
        pages = frozenset(kept.pages)
        bodies = frozenset(kept.large)
        for number in self._page_numbers:  # also torn ones, which the active node was not told of
            if number not in pages:
                self._deletions.append(FileDeletion(PAGE_FILE, number, kept.lsn))
        for file, _ in self._told.large:
            if file not in bodies:
                self._deletions.append(FileDeletion(LARGE_FILE, file, kept.lsn))
        self._page_numbers = []
        self._told = StoredFiles((), ())

    # --- files ------------------------------------------------------------------------------------

    def on_page(self, page: PageFile) -> None:
        """Writes a page file."""
        self._barrier.begin(page.number)
        self._disk.create(page_name(page.number), len(page.data), page.data)
        self._page_bytes += len(page.data)
        self._written.append((self._barrier.begin(), len(page.data)))

    def on_barrier(self, token: int) -> None:
        """Records that all page files before a barrier are written."""
        if self._written and self._written[0][0] == token:
            self._page_bytes -= self._written.popleft()[1]

    def on_large_data(self, data: LargeData) -> None:
        """Appends to a large body, or begins one."""
        if data.file >= INCOMPLETE:
            raise ProtocolError(f"{data.file} is no number of a large message file")
        if data.offset == 0:
            self._large.create(data.file | INCOMPLETE, True)
        elif self._growing.get(data.file, -1) != data.offset:
            raise ProtocolError(f"bytes at {data.offset} of large message file {data.file}, where they do not belong")
        self._growing[data.file] = data.offset + len(data.data)
        if data.data:
            self._body_bytes += len(data.data)
            self._large.append(data.file | INCOMPLETE, data.data)

    def on_large_end(self, end: LargeEnd) -> None:
        """Syncs a large body and gives it its number: `is_complete` tells when that is done."""
        received = self._growing.pop(end.file, -1)
        if received != end.size:
            raise ProtocolError(f"large message file {end.file} ends at {end.size}, {received} bytes have come")
        self._ending[end.file] = self._ending.get(end.file, 0) + 1
        self._large.rename(end.file | INCOMPLETE, end.file)

    def is_complete(self, file: int) -> bool:
        """Returns whether a large body that has ended is synced."""
        return file not in self._ending

    def on_large_written(self, size: int) -> None:
        """Records that bytes of a large body are in their file."""
        self._body_bytes -= size

    def on_large_synced(self, file: int) -> None:
        """Records that a large body survives a crash, under its number."""
        self._ending[file] -= 1
        if self._ending[file] == 0:
            del self._ending[file]

    # --- deletions --------------------------------------------------------------------------------

    def on_deletion(self, deletion: FileDeletion) -> None:
        """Deletes a file as soon as `delete_up_to` reaches its lsn."""
        if deletion.kind == LARGE_FILE and self._growing.pop(deletion.number, -1) >= 0:
            self._large.delete(deletion.number | INCOMPLETE)
        self._deletions.append(deletion)

    def delete_up_to(self, durable: int) -> None:
        """Deletes what is not needed once everything up to `durable` is on the disk."""
        deletions = self._deletions
        while deletions and deletions[0].lsn <= durable:
            deletion = deletions.popleft()
            if deletion.kind == PAGE_FILE:
                self._disk.delete(page_name(deletion.number))
            else:
                self._large.delete(deletion.number)
