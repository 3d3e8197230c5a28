"""The reload of the configuration, on request (SIGHUP) and when one of its files has changed.

The files are read on a thread; a valid configuration is passed to the event loop as a whole. After an invalid
one the running configuration stays, and each problem is logged on its own line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from atalanta.kernel.settings.configuration_request import ConfigurationAnswer
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.trace import LogTrace
from atalanta.tls.context import ClientTls

if TYPE_CHECKING:
    from atalanta.node.config import NodeConfig
    from atalanta.runtime.net.acceptor import Listen

logger = logging.getLogger("atalanta.runtime")

# Pause between two checks of a file that is being written, until it stays unchanged.
SETTLE_S = 0.2
SETTLE_LOOKS_MAX = 20

Stamp = tuple[int, int, int]
ReloadDone = Callable[[str], None]
Result = TypeVar("Result")


class ReloadRefused(Exception):
    """The files cannot be used. Each line names a file, a line and the problem. `files` are the files with
    problems."""

    def __init__(self, lines: Sequence[str], files: Sequence[Path] = ()) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)
        self.files = list(files)


@dataclass
class Reloaded:
    """A valid configuration. `files` are watched from now on; `restart` lists the changes that need a restart, and
    `reasons` says why."""

    config: NodeConfig
    files: list[Path]
    acceptors: list[Listen] = field(default_factory=list)
    connectors: dict[str, ClientTls] = field(default_factory=dict)
    restart: list[str] = field(default_factory=list)
    reasons: str = ""


class ConfigurationAttempt(Protocol):
    """A request about the configuration files. Both steps run on a thread, while no file is read."""

    def begin(self) -> Reloaded | None:
        """Checks the request and writes the files. Returns what is to be applied, None if nothing is."""

    def end(self, problem: str) -> ConfigurationAnswer:
        """Returns the answer. `problem`: what was to be applied is not, and the files are put back; else ""."""


class Reloader:
    """Reads the configuration, once at a time. Requests during a read cause one more read."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        trace: LogTrace,
        read: Callable[[], Reloaded],
        apply: Callable[[Reloaded], None],
        files: Sequence[Path],
        period_s: float,
    ) -> None:
        self.files = list(files)
        self._loop = loop
        self._trace = trace
        self._read = read
        self._apply = apply
        self._period_s = period_s
        self._one_at_a_time = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._requests: list[tuple[str, ReloadDone | None]] = []

    def start(self) -> None:
        """Begins to watch the files, if this is configured."""
        if self._period_s > 0:
            self._watching = self._loop.create_task(self._watch())

    def request(self, why: str, done: ReloadDone | None = None) -> None:
        """Reads the files now, changed or not; `done` is called after it with the problem, "" without one."""
        self._requests.append((why, done))
        if self._reading is None:
            self._reading = self._loop.create_task(self._reload())

    def change(
        self, work: Callable[[], Result], done: Callable[[Result | None, str], None]
    ) -> None:
        """Runs `work`, which changes a file, on a thread while no file is read; then `done` with its result.

        `done` gets None and the reason if `work` raised ReloadRefused.
        """
        task = self._loop.create_task(self._change(work, done))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _change(
        self, work: Callable[[], Result], done: Callable[[Result | None, str], None]
    ) -> None:
        async with self._one_at_a_time:
            try:
                result = await self._loop.run_in_executor(None, work)
            except ReloadRefused as error:
                done(None, "; ".join(error.lines))
            except Exception as error:
                log_event(logger, "reload_bug", {}, error)
                done(None, "an internal error, see the log")
            else:
                done(result, "")

    def attempt(self, attempt: ConfigurationAttempt, done: Callable[[ConfigurationAnswer], None]) -> None:
        """Executes a request about the configuration files, then `done`. Nothing else is read or written meanwhile."""
        task = self._loop.create_task(self._attempt(attempt, done))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)

    async def _attempt(self, attempt: ConfigurationAttempt, done: Callable[[ConfigurationAnswer], None]) -> None:
        async with self._one_at_a_time:
            try:
                problem = ""
                found = await self._loop.run_in_executor(None, attempt.begin)
                if found is not None:
                    try:
                        self._apply(found)
                    except ReloadRefused as error:
                        problem = str(error)
                    except Exception as error:
                        log_event(logger, "reload_bug", {}, error)
                        problem = "an internal error, see the log"
                    else:
                        self.files = found.files
                answer = await self._loop.run_in_executor(None, attempt.end, problem)
            except Exception as error:
                log_event(logger, "reload_bug", {}, error)
                answer = ConfigurationAnswer(why="an internal error, see the log")
        done(answer)

    def close(self) -> None:
        """Stops the reloader without further output."""
        for task in (self._watching, self._reading, *self._changes):
            if task is not None:
                task.cancel()
        self._requests.clear()

    async def _reload(self) -> None:
        while self._requests:
            asked, self._requests = self._requests, []
            async with self._one_at_a_time:
                problem = await self._read_once(asked[-1][0])
            for _, done in asked:
                if done is not None:
                    done(problem)
        self._reading = None

    async def _read_once(self, why: str) -> str:
        """Reads the files and applies them; returns the problem, "" without one."""
        try:
            self._trace.event("configuration_read", {"why": why})
            found = await self._loop.run_in_executor(None, self._read)
            self._apply(found)
        except ReloadRefused as error:
            for line in error.lines:
                self._trace.event("reload_refused", {"why": line})
            # A file that only now belongs to the configuration is read again when it was repaired.
            self.files = list(dict.fromkeys([*self.files, *error.files]))
            return str(error)
        except Exception as error:
            # The node continues with its configuration; the traceback is for us.
            log_event(logger, "reload_bug", {}, error)
            return f"the configuration was not read: {error}"
        self.files = found.files
        if found.restart:
            self._trace.event(
                "reload_incomplete", {"restart_for": ",".join(found.restart), "why": found.reasons}
            )
        return ""

    async def _watch(self) -> None:
        known = await self._look()
        while True:
            await asyncio.sleep(self._period_s)
            seen = await self._look()
            # Files that only now belong to the configuration have not changed.
            changed = [path.name for path in seen if path in known and seen[path] != known[path]]
            if changed:
                seen = await self._settled(seen)
                self.request(f"{', '.join(changed)} changed")
            known = seen

    async def _settled(self, seen: dict[Path, Stamp | None]) -> dict[Path, Stamp | None]:
        for _ in range(SETTLE_LOOKS_MAX):
            await asyncio.sleep(SETTLE_S)
            later = await self._look()
            if later == seen:
                break
            seen = later
        return seen

    async def _look(self) -> dict[Path, Stamp | None]:
        return await self._loop.run_in_executor(None, stamps, list(self.files))


def stamps(files: Sequence[Path]) -> dict[Path, Stamp | None]:
    """Returns the attributes that change with a file's contents; None for a missing file."""
    found: dict[Path, Stamp | None] = {}
    for path in files:
        try:
            status = path.stat()
        except OSError:
            found[path] = None
        else:
            found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
