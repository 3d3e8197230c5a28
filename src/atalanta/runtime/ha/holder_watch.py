"""The wait for the end of the process that holds a shared store.

The holder has locked a file of its epoch for its life (flock). When it ends, however it ends, the system releases the
lock, and a thread that waits for it continues at once. So a backup needs no poll to notice a kill. The lock is only a
wake-up call: whether the store may be taken is decided afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path


class HolderWatch:
    """Calls `ended` in the loop whenever the followed lock was released. Use it in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        self._loop = loop
        self._ended = ended
        self._path: Path | None = None
        self._closed = False

    def follow(self, path: Path | None) -> None:
        """Waits for the release of this lock from now on; None for none. Each path is waited for once."""
        if path is None or path == self._path or self._closed:
            return
        self._path = path
        # A daemon: nothing can interrupt flock, and a process may end while it waits.
        threading.Thread(target=self._wait, args=(path,), name="holder-watch", daemon=True).start()

    def close(self) -> None:
        """Calls `ended` no more."""
        self._closed = True

    def _wait(self, path: Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return  # the epoch is gone; the next look follows another one
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except OSError:
            return  # a file system without locks: the lease decides
        finally:
            os.close(descriptor)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._tell, path)

    def _tell(self, path: Path) -> None:
        if not self._closed and path == self._path:
            self._ended()
