"""The reserve of the journal's disk: files that become segments when the disk has no room for new ones.

A full disk can be emptied only by acknowledgements, and these are records too. Before the reserve is used, nothing else
can take its room, since its files are renamed and not deleted.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from atalanta.runtime.disk.commit_file import UNKNOWN, write_all

NAMES = ("reserve-1", "reserve-2")
# A page file of the usual size has a head beside its messages.
MARGIN_BYTES = 1 << 20
# Errors of a full disk, or of a quota that is used up.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
ZEROS = bytes(1 << 20)


class DiskReserve:
    """The reserve in one folder. Each file has room for a segment or page of `file_bytes`. Any thread may call it."""

    def __init__(self, folder: Path, file_bytes: int) -> None:
        self._paths = [folder / name for name in NAMES]
        self._size = file_bytes + MARGIN_BYTES
        self._lock = threading.Lock()

    def fill(self) -> bool:
        """Makes missing files. Returns false if the disk has no room for them. OSError for other errors."""
        with self._lock:
            for path in self._paths:
                try:
                    if not path.exists() or path.stat().st_size < self._size:
                        self._allocate(path)
                except OSError as error:
                    path.unlink(missing_ok=True)
                    if error.errno not in NO_ROOM:
                        raise
                    return False
        return True

    def _allocate(self, path: Path) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            os.posix_fallocate(file, 0, self._size)
        except OSError as error:
            if error.errno not in UNKNOWN:
                raise
            write_zeroed(file, self._size, b"")  # the file system cannot reserve room
        finally:
            os.close(file)

    def take(self, path: Path, size: int, head: bytes) -> bool:
        """Makes the file `path` of `size` bytes, `head` and then zeros, from a file of the reserve. The caller syncs
        the folder. Returns false if there is none that is large enough. OSError."""
        with self._lock:
            for reserved in self._paths:
                if size <= self._size and reserved.exists():
                    file = os.open(reserved, os.O_WRONLY | os.O_CLOEXEC)
                    try:
                        write_zeroed(file, size, head)
                    finally:
                        os.close(file)
                    os.rename(reserved, path)
                    return True
        return False


def write_zeroed(file: int, size: int, head: bytes) -> None:
    """Makes an open file `size` bytes long, `head` and then zeros, and syncs it."""
    write_all(file, 0, head[:size])
    offset = len(head)
    while offset < size:
        piece = min(len(ZEROS), size - offset)
        write_all(file, offset, ZEROS[:piece])
        offset += piece
    os.ftruncate(file, size)
    os.fsync(file)
