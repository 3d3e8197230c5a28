"""A process beside the node: started, started again when it ends, ended with the node. It never touches the node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Final

from atalanta.runtime.process.logs import JsonFormatter

PACKAGE: Final = str(Path(__file__).resolve().parents[2])
PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv[1]); from {} import {} as run; sys.exit(run(sys.argv[2:]))"
RESTART_S: Final = 5.0
END_S: Final = 15.0


class SideProcess:
    """The process, from `start` to `close`. Its log is that of the node. A subclass says how its life is told.

    `given` is what it reads from its standard input, for what others may not see in a list of processes.
    """

    end_s = END_S
    restart_max_s = RESTART_S

    def __init__(self, module: str, function: str, words: list[str], given: bytes | None = None) -> None:
        self._command = [sys.executable, "-P", "-c", PROGRAM.format(module, function), PACKAGE, *words]
        self._given = given
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    def started(self, pid: int) -> None:
        """Tells that the process was started."""
        raise NotImplementedError

    def ended(self, why: str) -> None:
        """Tells that it has ended by itself, or could not be started."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts the process, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def end(self) -> None:
        """Begins the end of the process: it stops in good order, and is not started again."""
        self._ending.set()

    async def close(self) -> None:
        """Ends the process, and waits for its end."""
        self.end()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        pause_s = RESTART_S
        while not self._ending.is_set():
            try:
                # A session of its own: Ctrl-C in a terminal is for the node, which ends this process then.
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL if self._given is None else asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                why = str(error)
            else:
                self.started(process.pid)
                await self._give(process)
                why = f"status {await self._wait(process)}"
            if not self._ending.is_set():
                self.ended(why)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), pause_s)
                pause_s = min(self.restart_max_s, 2 * pause_s)

    async def _give(self, process: asyncio.subprocess.Process) -> None:
        pipe = process.stdin
        if self._given is None or pipe is None:
            return
        with contextlib.suppress(ConnectionError):  # it has ended: its status says why
            pipe.write(self._given)
            await pipe.drain()
        pipe.close()

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        """Waits for the end of the process, and ends it if it shall. Returns its status."""
        ended = asyncio.ensure_future(process.wait())
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait([ended, ending], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                process.terminate()
                await asyncio.wait([ended], timeout=self.end_s)
            if not ended.done():
                process.kill()
            return await ended
        finally:
            ending.cancel()


def log_words() -> list[str]:
    """Returns the level and the form of this process' log, "json" or "text", for a process beside it."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers)
    return [logging.getLevelName(root.level).lower(), "json" if as_json else "text"]


def parent_word() -> str:
    """Returns this process' id, by which the other one sees whether it ended before."""
    return str(os.getpid())
