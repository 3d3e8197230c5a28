"""File descriptors in reserve for the files of a node, for a process that has used up all others."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

# Other threads may take a descriptor between its release and the open: then the next one is released.
RESERVED = 8
EXHAUSTED = (errno.EMFILE, errno.ENFILE)


class DescriptorReserve:
    """Open descriptors, one of which is released if a file cannot be opened without. Used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = RESERVED
        self._spare: list[int] = []
        self._fill()

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """Opens a file as os.open does. OSError EMFILE only if the reserve is used up, too."""
        flags |= os.O_CLOEXEC
        try:
            return os.open(path, flags, mode)
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
        with self._lock:
            while self._spare:
                os.close(self._spare.pop())
                try:
                    return os.open(path, flags, mode)
                except OSError as error:
                    if error.errno not in EXHAUSTED:
                        raise
        return os.open(path, flags, mode)

    def close(self, file: int) -> None:
        """Closes a file. Its descriptor goes back to the reserve if one is missing there."""
        if len(self._spare) == self._wanted:
            os.close(file)
            return
        with self._lock:
            if 0 < len(self._spare) < self._wanted:
                # In one step, so that no other thread takes the descriptor.
                os.dup2(self._spare[0], file, inheritable=False)
                self._spare.append(file)
            else:
                os.close(file)
                self._fill()

    def close_all(self) -> None:
        """Closes the reserve."""
        with self._lock:
            self._wanted = 0
            while self._spare:
                os.close(self._spare.pop())

    def _fill(self) -> None:
        """Opens the missing descriptors, as many as the system has now."""
        try:
            while len(self._spare) < self._wanted:
                self._spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return
