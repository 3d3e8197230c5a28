"""The lock of an epoch's holder: the system releases it when the process ends, however it ends.

A lock that was seen locked and is free now proves that the holder's process has ended, so that nobody needs to wait for
its lease. A lock that was free whenever it was looked at proves nothing: on some network file systems each machine sees
its own locks only. On the machine of the holder (same boot id) it is proof.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from atalanta.runtime.process.high_descriptor import high_descriptor

LOCK_NAME: Final = "holder.lock"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

# Results of a look at the lock.
MISSING: Final = "missing"
LOCKED: Final = "locked"
FREE: Final = "free"


class HolderLock:
    """The lock of this process on its epoch."""

    def __init__(self, folder: Path) -> None:
        """Makes the lock. Where the file system has no locks there is no file, and the lease decides alone.

        The file gets its name when it is locked: nobody sees it free before.
        """
        fresh = folder / f"{LOCK_NAME}.new"
        # A high one ends first: the other process is awake before the clients of this one are.
        self._file = high_descriptor(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640))
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            os.unlink(fresh)
            return
        os.rename(fresh, folder / LOCK_NAME)

    def renew(self) -> None:
        """Locks the file again, in case the lock was lost; nothing happens where it is held. Raises OSError.

        A network file system takes the locks of a machine that it does not reach for long (NFS 4: 90 s), which must be
        longer than a lease. When it reaches this one again, others must not take its process for one that has ended.
        """
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Releases the lock. May be called twice."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def look_at_lock(folder: Path) -> str:
    """Returns whether the lock of an epoch's folder is MISSING, LOCKED or FREE. Raises OSError."""
    try:
        file = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return MISSING
    try:
        # Shared: candidates that look at the same time do not see each other's locks.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return LOCKED
    except OSError:
        return MISSING
    finally:
        os.close(file)
    return FREE


def boot_id() -> str:
    """Returns the id of this start of the machine, "" if the system has none."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()[:64]
    except (OSError, UnicodeDecodeError):
        return ""
