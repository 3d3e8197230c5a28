"""Child processes that cannot outlive the demo: each in a session of its own, ended with everything in it."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
GONE_S = 10.0
POLL_S = 0.02

_living: dict[int, str] = {}


class Child:
    """A process with a session and process group of its own; what it starts belongs to them."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process

    @property
    def pid(self) -> int:
        """Also the number of its process group and session."""
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    async def kill(self) -> None:
        """SIGKILL for the process group, then for whoever of the session is left; returns when all are gone."""
        kill_group(self.pid)
        # Before `wait`, which in asyncio waits for the pipes to be closed by everybody, too.
        await asyncio.to_thread(sweep_session, self.pid)
        await self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
            with contextlib.suppress(ConnectionError):
                await self.process.stdin.wait_closed()
        _living.pop(self.pid, None)

    async def terminate(self, patience_s: float) -> int:
        """SIGTERM, and SIGKILL after `patience_s`; the exit status."""
        if self.running:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), patience_s)
            except TimeoutError:
                pass
        await self.kill()
        return self.process.returncode or 0


async def start_child(
    name: str,
    command: Sequence[str],
    log: Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Starts `command` in `folder`: stdin and stdout are pipes, stderr is appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,
            limit=1 << 20,
        )
    _living[process.pid] = name
    return Child(name, process)


def die_with_parent() -> None:
    """In the child, Linux only: SIGKILL when the demo itself is killed and can clean up nothing."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_group(group: int) -> None:
    """SIGKILL for a process group that may be gone already."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def sweep_session(session: int) -> None:
    """Ends the processes of `session` that left its first group (Spark's Python workers do)."""
    deadline = time.monotonic() + GONE_S
    while members := session_members(session):
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes {members} of session {session} do not end")
        time.sleep(POLL_S)


def session_members(session: int) -> list[int]:
    """The living processes of a session, zombies left out."""
    members: list[int] = []
    for pid, state in all_processes():
        try:
            if state != "Z" and os.getsid(pid) == session:
                members.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return members


def all_processes() -> list[tuple[int, str]]:
    """Number and state (a letter) of every process: from /proc, else from ps."""
    folder = Path("/proc")
    if not (folder / "self").exists():
        listing = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True)
        return [(int(line.split()[0]), line.split()[1][0]) for line in listing.stdout.splitlines()]
    found: list[tuple[int, str]] = []
    for entry in folder.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            found.append((int(entry.name), stat.rpartition(")")[2].split()[0]))
    return found


def kill_all() -> None:
    """At exit, whatever happened: nothing that was started here stays."""
    for pid in list(_living):
        kill_group(pid)
        sweep_session(pid)
        _living.pop(pid, None)


atexit.register(kill_all)
