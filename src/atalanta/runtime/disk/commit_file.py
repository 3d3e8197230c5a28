"""The journal file that commits are written to: with direct I/O where the system supports it, else through the page
cache.

A commit through the page cache copies its data there, marks pages dirty, and looks them up again to write them.
With direct I/O a small commit took 0.9 of the time, and one of 256 KiB took 0.6, for less than half of the CPU
(bench/README.md). Direct I/O writes whole blocks of 4 KiB. So the beginning of the first block is written again,
unchanged. The rest of the last block becomes zeros (kernel.ports.Disk.commit allows this).
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from atalanta.runtime.disk.descriptors import DescriptorReserve

# pwritev(2): the write is as durable as after fdatasync. 0 if the system does not have the flag.
WRITE_SYNCED: int = getattr(os, "RWF_DSYNC", 0)
# open(2): direct I/O. 0 if the system does not have the flag.
DIRECT: int = getattr(os, "O_DIRECT", 0)

# Block size of disks and file systems. Memory address, offset and length of a direct write are multiples of it.
BLOCK_BYTES = 4096
# Pages of the buffer that no commit has filled yet take no memory. A longer commit is written in several parts.
BUFFER_BYTES = (2 << 20) + 2 * BLOCK_BYTES
ZEROS = bytes(BLOCK_BYTES)

# Errors of systems that do not know a flag, or do not support it for this file.
UNKNOWN = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class CommitFile:
    """The open file `name`; "" = none. The caller makes one call at a time."""

    def __init__(self, files: DescriptorReserve) -> None:
        self.name = ""
        self._files = files
        # Files are opened for direct writes until one is refused.
        self.direct = DIRECT != 0
        self._path = Path()
        self._file = -1
        self._size = 0
        self._file_direct = False
        # End offset of the last direct write: the buffer begins with the block around it. -1 = the buffer is not
        # valid.
        self._end = -1
        self._buffer: memoryview | None = None

    def open(self, name: str, path: Path) -> None:
        """Opens the file for `write` and closes the file that was open before. Raises OSError."""
        self.close()
        self._path = path
        self._open_file()
        self.name = name

    def close(self) -> None:
        """Closes the file, if one is open."""
        if self._file >= 0:
            self._files.close(self._file)
        self.name = ""
        self._file = -1
        self._end = -1

    def write(self, offset: int, data: bytes, more: bytes = b"") -> None:
        """Writes `data`, then `more`; both are durable on return. After an OSError the contents of the file are
        unknown."""
        if self._file_direct:
            if offset + len(data) + len(more) <= self._size:
                try:
                    self._write_direct(offset, data, more)
                    return
                except OSError as error:
                    if error.errno not in UNKNOWN:
                        raise
            # Some file systems refuse only the write. All of the data is written again without direct I/O.
            self.direct = False
            self._files.close(self._file)
            self._file = -1
            self._open_file()
        write_synced(self._file, offset, data + more)

    def _open_file(self) -> None:
        if self.direct:
            try:
                self._file = self._files.open(self._path, os.O_RDWR | DIRECT)
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
                self._files.close(self._file)
                self._file = -1
        self._file_direct = False
        self._file = self._files.open(self._path, os.O_WRONLY)

    def _write_direct(self, offset: int, data: bytes, more: bytes) -> None:
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = memoryview(mmap.mmap(-1, BUFFER_BYTES))
        lead = offset % BLOCK_BYTES
        if lead and offset != self._end:
            self._read_block(buffer, offset - lead)
        self._end = -1
        if lead + len(data) + len(more) <= BUFFER_BYTES:
            # Copied side by side, without a join first: a commit may have half a megabyte.
            middle = lead + len(data)
            end = middle + len(more)
            buffer[lead:middle] = data
            buffer[middle:end] = more
            self._write_buffer(buffer, offset - lead, end)
        else:
            self._write_parts(buffer, offset, data + more)
        self._end = offset + len(data) + len(more)

    def _write_parts(self, buffer: memoryview, offset: int, data: bytes) -> None:
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
        """Writes the buffer up to `end` at `start` of the file. Then moves the block around the end to its front."""
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
            raise OSError(f"{self._path}, offset {start}: {count} bytes of a block")


def write_synced(file: int, offset: int, data: bytes | memoryview) -> None:
    """Writes and syncs, in one system call where possible: this takes the interpreter's lock once less. Raises
    OSError."""
    written = 0
    if WRITE_SYNCED:
        try:
            written = os.pwritev(file, [data], offset, WRITE_SYNCED)
        except OSError as error:
            if error.errno not in UNKNOWN:
                raise
            # The file system does not support it: nothing was written, and the two calls do the same.
        if written == len(data):
            return
    write_all(file, offset + written, data[written:])
    sync_data(file)


def sync_data(file: int) -> None:
    """Calls fdatasync, or fsync where that does not exist."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)


def write_all(file: int, offset: int, data: bytes | memoryview) -> None:
    """Calls pwrite until all data is written. Raises OSError."""
    written = os.pwrite(file, data, offset)
    if written == len(data):
        return
    left = memoryview(data)[written:]
    while left:
        offset += written
        written = os.pwrite(file, left, offset)
        if written == 0:
            raise OSError("a write without progress")
        left = left[written:]
