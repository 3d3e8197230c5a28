"""Faults of the system calls by which a node's process changes its files, planted from inside the process.

The calls are counted: writes, syncs, new, renamed, linked and removed files, and the writes to sockets between them. At
the n-th call one thing happens. Nothing in the product knows of it: it calls the functions of `os` by their module,
compiled or not, and these are replaced here. A replaced method of `FileDisk` counts because that class is interpreted
in both builds.
"""

from __future__ import annotations

import errno
import fcntl
import math
import mmap
import os
import signal
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

# EXT4_IOC_SHUTDOWN, and its flag to drop what the file system's own journal has not written: a power loss.
SHUTDOWN: Final = 0x8004587D
NO_LOG_FLUSH: Final = struct.pack("I", 2)

KILL, KILL_AFTER, TEAR, POWER, GONE, STOP, STOP_AFTER, ERROR, HANG, SLOW = (
    "kill", "kill after", "tear", "power", "gone", "stop", "stop after", "error", "hang", "slow",
)  # fmt: skip
# Calls with a file descriptor as first argument, and calls with a path.
BY_FILE: Final = ("write", "pwrite", "pwritev", "fsync", "fdatasync", "ftruncate", "posix_fallocate")
BY_PATH: Final = ("open", "rename", "replace", "link", "unlink", "mkdir", "rmdir")
SYNCS: Final = ("fsync", "fdatasync")
# Files that threads of their own write at their own times.
UNCOUNTED: Final = ("lease", "holder.lock", "members")
COUNT_BYTES: Final = 4096


@dataclass(frozen=True)
class Plan:
    """What happens at call number `at` (0: never). `count_file` gets the number of calls, and the last one's name.

    With "error" this and every later change of a file under `folders` fails with the errno `error`; with "hang" they
    hang while `count_file`.hangs exists, with "slow" each of them takes `slow_s` then; with "gone" the disk is gone,
    but the process lives.

    `unsynced` are parts of names of files whose syncs are left out, "/" for folders; `early`: a commit is answered
    before it is written. `only` are words, one of which is in each call that is counted. `blind`: the holder of an
    epoch never sees the next one. `unregistered`: a slow follower is required no more, and stays in the register.
    `unwritten`: a follower answers what it has received as if it were on its disk.
    """

    at: int = 0
    action: str = KILL
    error: int = errno.EIO
    folders: tuple[str, ...] = ()
    unsynced: tuple[str, ...] = ()
    early: bool = False
    blind: bool = False
    slow_s: float = 0.0
    unregistered: bool = False
    unwritten: bool = False
    count_file: str = ""
    only: tuple[str, ...] = field(default=())


class Faults:
    """The replaced functions of `os` in this process."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lock = threading.RLock()
        self._count = 0
        self._broken = False
        self._inside = threading.local()
        self._real: dict[str, Callable[..., Any]] = {}
        self._shown: mmap.mmap | None = None
        if plan.count_file:
            file = os.open(plan.count_file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
            os.ftruncate(file, COUNT_BYTES)
            self._shown = mmap.mmap(file, COUNT_BYTES)
            os.close(file)

    def plant(self) -> None:
        """Replaces the functions."""
        for name in (*BY_FILE, *BY_PATH):
            self._real[name] = getattr(os, name)
            setattr(os, name, self._replacement(name))
        if self.plan.early:
            answer_early()
        if self.plan.blind:
            see_no_epoch()
        if self.plan.unregistered:
            drop_without_register()
        if self.plan.unwritten:
            answer_unwritten()

    def _replacement(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def call(*arguments: Any, **named: Any) -> Any:
            if getattr(self._inside, "busy", False):
                return real(*arguments, **named)
            self._inside.busy = True
            try:
                path = self._path(name, arguments)
                if not path:
                    return real(*arguments, **named)
                arguments = self._without_sync(name, path, arguments)
                return self._counted(name, path, arguments, named)
            finally:
                self._inside.busy = False

        return call

    def _path(self, name: str, arguments: tuple[Any, ...]) -> str:
        """Returns the path that the call changes, `` if it is not counted."""
        if name in BY_PATH:
            path = str(os.fspath(arguments[0]))
            if name == "open" and not arguments[1] & (os.O_CREAT | os.O_DIRECT):
                return ""
        else:
            path = os.readlink(f"/proc/self/fd/{arguments[0]}")
            if name == "write":
                return path if path.startswith("socket:") else ""
        path = os.path.abspath(path)
        if not path.startswith(self.plan.folders):
            return ""
        if any(part in UNCOUNTED for part in path.split("/")):
            self._wait_while_hanging()
            return ""
        return path

    def _without_sync(self, name: str, path: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the arguments without what makes the data durable, if the plan leaves it out."""
        if not self._unsynced(path):
            return arguments
        if name == "open":
            return (arguments[0], arguments[1] & ~os.O_DIRECT, *arguments[2:])
        if name == "pwritev":
            return (*arguments[:3], 0)
        return arguments

    def _unsynced(self, path: str) -> bool:
        if not self.plan.unsynced:
            return False
        if os.path.isdir(path):
            return "/" in self.plan.unsynced
        return any(word in os.path.basename(path) for word in self.plan.unsynced)

    def _counted(self, name: str, path: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        plan = self.plan
        if name == "open" and not arguments[1] & os.O_CREAT:
            self._wait_while_hanging()
            return self._do(name, path, arguments, named)
        if plan.only and not any(word in f"{name} {path}" for word in plan.only):
            return self._do(name, path, arguments, named)
        with self._lock:
            self._count += 1
            hit = self._count == plan.at
            if self._shown is not None and (hit or not plan.at or self._count < plan.at):
                text = f"{self._count} {name} {path}".encode()[: COUNT_BYTES - 1]
                self._shown[: len(text) + 1] = text + b"\0"
        if hit:
            self._happen(name, arguments)
        if not path.startswith("socket:"):
            self._wait_while_hanging()
        if self._broken and not path.startswith("socket:"):
            raise OSError(plan.error, os.strerror(plan.error), path)
        result = self._do(name, path, arguments, named)
        if hit and plan.action == KILL_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)
        if hit and plan.action == STOP_AFTER:
            os.kill(os.getpid(), signal.SIGSTOP)
        return result

    def _do(self, name: str, path: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name in SYNCS and self._unsynced(path):
            return None
        return self._real[name](*arguments, **named)

    def _happen(self, name: str, arguments: tuple[Any, ...]) -> None:
        action = self.plan.action
        if action == ERROR:
            self._broken = True
        elif action in (HANG, SLOW):
            Path(f"{self.plan.count_file}.hangs").touch()
        elif action == STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif action in (POWER, GONE):
            lose_power(Path(self.plan.folders[0]))
        elif action == TEAR:
            self._tear(name, arguments)
        if action in (KILL, TEAR, POWER):
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # the signal arrives at once, but not before the call returns

    def _wait_while_hanging(self) -> None:
        if self.plan.action in (HANG, SLOW):
            end = time.monotonic() + (self.plan.slow_s if self.plan.action == SLOW else math.inf)
            while time.monotonic() < end and os.path.exists(f"{self.plan.count_file}.hangs"):
                time.sleep(0.01)

    def _tear(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Writes the first half of the data, also of one block of direct I/O."""
        if name not in ("pwrite", "pwritev"):
            return
        data = bytes(arguments[1] if name == "pwrite" else b"".join(bytes(each) for each in arguments[1]))
        file = os.open(f"/proc/self/fd/{arguments[0]}", os.O_WRONLY)
        self._real["pwrite"](file, data[: len(data) // 2], arguments[2])
        os.close(file)


def lose_power(folder: Path) -> None:
    """Ends the file system of a folder as a power loss does: what was not synced is gone. Raises OSError."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(file, SHUTDOWN, NO_LOG_FLUSH)
    finally:
        os.close(file)


def answer_early() -> None:
    """A planted fault: a commit is confirmed, then written, in an event-loop iteration of its own."""
    from atalanta.runtime.disk.disk import FileDisk

    def commit(self: Any, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        self._add(lambda: self._report(self._answer, token))
        self._add(lambda: late(self, name, offset, data, more))

    def late(self: Any, name: str, offset: int, data: bytes, more: bytes) -> None:
        time.sleep(0.002)
        self._write_commit(name, offset, data, more)
        self._report(self._answer, 0)

    FileDisk.commit = commit  # type: ignore[method-assign]


def see_no_epoch() -> None:
    """A planted fault: a node that has lost its epoch goes on."""
    from atalanta.runtime.ha.held_epoch import HeldEpoch

    HeldEpoch._taken = lambda self: False  # type: ignore[method-assign]


def drop_without_register() -> None:
    """A planted fault: the active member of a group goes on without a follower that the register still has."""
    from atalanta.ha.replication.active import Active

    required = Active.required
    dropped: list[str] = []

    def drop(self: Any, now: int, member: str) -> Any:
        dropped.append(member)
        return self._advance()

    Active.required = lambda self: [name for name in required(self) if name not in dropped]  # type: ignore[method-assign]
    Active.drop = drop  # type: ignore[method-assign]


def answer_unwritten() -> None:
    """A planted fault: a follower of a group answers before its disk does."""
    from atalanta.ha.replication.follower import Follower
    from atalanta.ha.replication.messages import Answer, Send

    def answer(self: Any, sent_ns: int) -> Send:
        return Send(self.active, Answer(self.epoch, self.last, self.last, sent_ns))

    Follower._answer = answer  # type: ignore[method-assign]
