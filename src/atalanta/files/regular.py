"""Reading of files that are named in configurations: regular files only, with a size limit.

A named pipe would block until another process writes to it, and a device may have no end. A file on the command
line may be both: the user who types it waits for it and can interrupt.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

PIECE_BYTES: Final = 1 << 16
STDIN: Final = Path("-")
KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegular(OSError):
    """The file is not regular; `strerror` names its kind."""


def read_regular(path: Path, bytes_max: int) -> bytes:
    """Reads a file, at most `bytes_max` + 1 bytes. Raises OSError, including NotRegular.

    The file is checked before it is opened, since opening a device may have effects, and again when it is open.
    """
    _check(path, os.stat(path))
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        _check(path, found)
        # The expected size is read at once.
        pieces = [file.read(min(found.st_size, bytes_max) + 1)]
        size = len(pieces[0])
        while pieces[-1] and size <= bytes_max:  # the file grows, or reports no size
            pieces.append(file.read(min(PIECE_BYTES, bytes_max + 1 - size)))
            size += len(pieces[-1])
    return pieces[0] if size == len(pieces[0]) else b"".join(pieces)


def read_named(path: Path, bytes_max: int) -> bytes:
    """Reads a file of the command line like `read_regular`, but also a pipe (`<(…)`), a terminal, and stdin for
    "-"."""
    if path == STDIN:
        source = os.dup(0)
    else:
        kind = os.stat(path).st_mode
        if not stat.S_ISFIFO(kind) and not stat.S_ISCHR(kind):
            return read_regular(path, bytes_max)
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(source, "rb", buffering=0) as file:
        data = bytearray()
        while len(data) <= bytes_max:
            piece = file.read(min(PIECE_BYTES, bytes_max + 1 - len(data)))
            if not piece:
                break
            data += piece
    return bytes(data)


def _check(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise NotRegular(errno.EINVAL, f"is {kind}, not a regular file", str(path))
