"""The journal file that commits go to: past the page cache where the system lets us, through it otherwise.

A commit through the page cache copies into it, dirties pages, and looks them up again to write them: past it the
same small commit took 0.9 of the time, one of 256 KiB 0.6, for less than half of the CPU (bench/README.md). Whole
blocks of 4 KiB must be written then, so the beginning of the first block is written again, as it was, and what
follows the data in the last one becomes zeros (kernel.ports.Disk.commit allows that).
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

# pwritev(2): the write is as durable as after fdatasync. 0 where there is no such thing.
WRITE_SYNCED: int = getattr(os, "RWF_DSYNC", 0)
# open(2): past the page cache. 0 where there is no such thing.
DIRECT: int = getattr(os, "O_DIRECT", 0)

# What disks and file systems write as a whole; memory, place and length of a direct write are multiples of it.
BLOCK_BYTES = 4096
# Pages of it that no commit has filled yet take no memory. A longer commit is written in pieces.
BUFFER_BYTES = (2 << 20) + 2 * BLOCK_BYTES
ZEROS = bytes(BLOCK_BYTES)

# What systems answer that do not know a flag, or not here.
UNKNOWN = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class CommitFile:
    """One file open at a time, by `name`; "" = none. Whoever calls sees to it that there is one call at a time."""

    def __init__(self) -> None:
        self.name = ""
        # Whether files are opened for direct writes; not any more after one was refused.
        self.direct = DIRECT != 0
        self._path = Path()
        self._file = -1
        self._size = 0
        self._file_direct = False
        # Where the last direct write ended: the buffer begins with the block around that place. -1 = it does not.
        self._end = -1
        self._buffer: memoryview | None = None

    def open(self, name: str, path: Path) -> None:
        """For `write`; the file that was open before is closed. OSError."""
        self.close()
        self._path = path
        self._open_file()
        self.name = name

    def close(self) -> None:
        """Nothing happens when none is open."""
        if self._file >= 0:
            os.close(self._file)
        self.name = ""
        self._file = -1
        self._end = -1

    def write(self, offset: int, data: bytes, more: bytes = b"") -> None:
        """`data` and `more` behind it are durable when it returns. OSError: then nobody knows what is there."""
        if self._file_direct:
            if offset + len(data) + len(more) <= self._size:
                try:
                    self._write_direct(offset, data, more)
                    return
                except OSError as error:
                    if error.errno not in UNKNOWN:
                        raise
            # Some file systems refuse only here. What was written of it, if anything, is written again.
            self.direct = False
            os.close(self._file)
            self._file = -1
            self._open_file()
        write_synced(self._file, offset, data + more)

    def _open_file(self) -> None:
        if self.direct:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | DIRECT)
            except OSError as error:
                if error.errno not in UNKNOWN:
                    raise
                self.direct = False
            else:
                self._size = os.fstat(self._file).st_size
                self._file_direct = self._size > 0 and self._size % BLOCK_BYTES == 0
                self._end = -1
                if self._file_direct:
                    return
                os.close(self._file)
                self._file = -1
        self._file_direct = False
        self._file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)

    def _write_direct(self, offset: int, data: bytes, more: bytes) -> None:
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = memoryview(mmap.mmap(-1, BUFFER_BYTES))
        lead = offset % BLOCK_BYTES
        if lead and offset != self._end:
            self._read_block(buffer, offset - lead)
        self._end = -1
        if lead + len(data) + len(more) <= BUFFER_BYTES:
            # Side by side without being joined first: a commit may have half a megabyte.
            middle = lead + len(data)
            end = middle + len(more)
            buffer[lead:middle] = data
            buffer[middle:end] = more
            self._write_buffer(buffer, offset - lead, end)
        else:
            self._write_pieces(buffer, offset, data + more)
        self._end = offset + len(data) + len(more)

    def _write_pieces(self, buffer: memoryview, offset: int, data: bytes) -> None:
        lead = offset % BLOCK_BYTES
        done = 0
        while done < len(data):
            piece = data[done : done + BUFFER_BYTES - lead]
            end = lead + len(piece)
            buffer[lead:end] = piece
            self._write_buffer(buffer, offset + done - lead, end)
            done += len(piece)
            lead = end % BLOCK_BYTES

    def _write_buffer(self, buffer: memoryview, start: int, end: int) -> None:
        """All before `end`, at `start` of the file; then the block around the end begins the buffer."""
        tail = end % BLOCK_BYTES
        if tail:
            buffer[end : end + BLOCK_BYTES - tail] = ZEROS[tail:]
            end += BLOCK_BYTES - tail
        write_synced(self._file, start, buffer[:end])
        if tail and end > BLOCK_BYTES:
            buffer[:BLOCK_BYTES] = buffer[end - BLOCK_BYTES : end]

    def _read_block(self, buffer: memoryview, start: int) -> None:
        count = os.preadv(self._file, [buffer[:BLOCK_BYTES]], start)
        if count != BLOCK_BYTES:
            raise OSError(f"{self._path}, offset {start}: {count} bytes where a block belongs")


def write_synced(file: int, offset: int, data: bytes | memoryview) -> None:
    """Write and sync, where the system can by one call: the interpreter's lock is fetched once less. OSError."""
    written = 0
    if WRITE_SYNCED:
        try:
            written = os.pwritev(file, [data], offset, WRITE_SYNCED)
        except OSError as error:
            if error.errno not in UNKNOWN:
                raise
            # A file system without it: nothing is written, and the two steps do the same.
        if written == len(data):
            return
    write_all(file, offset + written, data[written:])
    sync_data(file)


def sync_data(file: int) -> None:
    """fdatasync, where there is one."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)


def write_all(file: int, offset: int, data: bytes | memoryview) -> None:
    """pwrite until nothing is left. OSError."""
    written = os.pwrite(file, data, offset)
    if written == len(data):
        return
    left = memoryview(data)[written:]
    while left:
        offset += written
        written = os.pwrite(file, left, offset)
        if written == 0:
            raise OSError("a write that writes nothing")
        left = left[written:]
