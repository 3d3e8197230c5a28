"""A file system on a loop device, whose power a test can cut: what was not synced is gone.

The shutdown ioctl of ext4 drops everything that the file system has not written, as a power loss does, and the mount
behind it replays the journal of ext4.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.stress.faults import lose_power

PROGRAMS: Final = ("mkfs.ext4", "mount", "umount")
# FIFREEZE, FITHAW (linux/fs.h)
FREEZE: Final = 0xC0045877
THAW: Final = 0xC0045878
SIZE_BYTES: Final = 48 << 20
# Programs of administrators are not on every user's PATH.
PATH: Final = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def why_not(folder: Path) -> str:
    """Returns why this machine cannot mount such a file system; `` if it can."""
    if os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root, to mount a file system"
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    try:
        disk = PowerDisk(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        return f"cannot mount ext4 on a loop device: {detail}"
    try:
        lose_power(disk.folder)
    except OSError as error:
        return f"the file system has no shutdown ioctl: {error}"
    finally:
        disk.close()
    return ""


class PowerDisk:
    """An ext4 in a file, mounted at `folder`. Raises OSError, CalledProcessError."""

    def __init__(self, base: Path) -> None:
        self._image = base / "disk.img"
        self.folder = base / "mounted"
        self._mounted = False
        base.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(exist_ok=True)
        with self._image.open("wb") as image:
            image.truncate(SIZE_BYTES)
        # Without lazy initialisation: no thread of the kernel writes to it.
        command("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self._image))
        self.mount()

    def mount(self) -> None:
        """Mounts it; the journal of ext4 is replayed."""
        command("mount", "-o", "loop,noatime", str(self._image), str(self.folder))
        self._mounted = True

    def unmount(self) -> None:
        """Unmounts it. A process that was just killed may hold a file for a moment."""
        for attempt in range(100):
            try:
                command("umount", str(self.folder))
                break
            except subprocess.CalledProcessError:
                if attempt == 99:
                    raise
                time.sleep(0.02)
        self._mounted = False

    def power_cycle(self) -> None:
        """Cuts the power, if the node has not done it, and brings the disk back."""
        lose_power(self.folder)
        self.unmount()
        self.mount()

    def fill(self) -> Path:
        """Makes a file that takes all room, and returns its path. Raises OSError."""
        path = self.folder / "filler"
        with path.open("wb") as file:
            found = os.statvfs(self.folder)
            with contextlib.suppress(OSError):  # less room, because of the file itself
                os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize)
        return path

    def freeze(self) -> None:
        """Lets every write hang, until `thaw`. Raises OSError."""
        self._control(FREEZE)

    def thaw(self) -> None:
        """Lets writes go on."""
        self._control(THAW)

    def _control(self, number: int) -> None:
        file = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(file, number, 0)
        finally:
            os.close(file)

    def empty(self) -> None:
        """Removes all files. They may come back with the next power loss."""
        for each in self.folder.iterdir():
            if each.name != "lost+found":
                shutil.rmtree(each)

    def close(self) -> None:
        """Unmounts it and removes the file."""
        if self._mounted:
            self.unmount()
        self._image.unlink(missing_ok=True)


def command(*words: str) -> None:
    """Runs a program; CalledProcessError with what it said."""
    found = shutil.which(words[0], path=PATH) or words[0]
    subprocess.run([found, *words[1:]], check=True, capture_output=True, text=True, timeout=60)
