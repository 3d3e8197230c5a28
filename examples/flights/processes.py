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
LOG_LINES = 12
LINE_WIDTH = 300

_living: dict[int, str] = {}


class ProcessFailed(Exception):
    """A process did not start or ended by itself; the text has the end of its log."""


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


class Program:
    """A program of a demo, which may be ended and started again. `title`: what it is called in errors."""

    def __init__(self, title: str, log: Path, stop_s: float) -> None:
        self.title = title
        self.log = log
        self._stop_s = stop_s
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None

    async def kill(self) -> None:
        """SIGKILL, for what the program has started, too."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()
        await self._stop_reader()

    async def stop(self) -> None:
        """SIGTERM: the program ends by itself, or is killed after `stop_s`."""
        child, self._child = self._child, None
        if child is not None:
            await child.terminate(self._stop_s)
        await self._stop_reader()

    async def failed(self) -> None:
        """Returns never, raises ProcessFailed if the program ends while it should run."""
        while True:
            child = self._child
            if child is not None:
                await child.process.wait()
                if child is self._child:
                    self.check()
            await asyncio.sleep(0.1)

    def check(self) -> None:
        """Errors: ProcessFailed if the program has ended by itself."""
        child = self._child
        if child is not None and not child.running:
            status = child.process.returncode
            raise ProcessFailed(f"{self.title} ended, exit status {status}\n{tail(self.log)}")

    async def _stop_reader(self) -> None:
        """Reads to the end of the pipe, so that nothing of the process is left open."""
        if self._reader is not None:
            await self._reader
            self._reader = None


def tail(log: Path) -> str:
    """The last lines of a log, those about errors first of all, with its name."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return "\n".join([f"{log}:", *(f"  {line[:LINE_WIDTH]}" for line in (telling or lines)[-LOG_LINES:])])


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
