"""The process of one hosted backup: started, and started again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from atalanta.ha.policy_elements import HostedBackup
from atalanta.runtime.process.logs import JsonFormatter, log_event

log = logging.getLogger("atalanta.app")

PACKAGE: Final = str(Path(__file__).resolve().parents[3])
PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from atalanta.cli.run import run_hosted; sys.exit(run_hosted(sys.argv[2:]))"
)
RESTART_S: Final = 5.0
# An active one confirms what is under way and hands over.
END_S: Final = 15.0


class HostedProcess:
    """The process, from `start` to `end`. Its log is that of its host."""

    def __init__(self, broker_xml: Path, hosted: HostedBackup, guarded: bool) -> None:
        root = logging.getLogger()
        as_json = any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers)
        self._hosted = hosted
        self._command = [
            sys.executable, "-P", "-c", PROGRAM, PACKAGE,
            str(broker_xml), logging.getLevelName(root.level).lower(), "json" if as_json else "text",
            "guarded" if guarded else "alone", str(os.getpid()), json.dumps(asdict(hosted)),
        ]  # fmt: skip
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

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
        while not self._ending.is_set():
            try:
                # A session of its own: Ctrl-C in a terminal is for the host, which ends this process then.
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                why = str(error)
            else:
                log_event(log, "hosted_backup_started", {"node": self._hosted.node_id, "pid": process.pid})
                why = f"status {await self._wait(process)}"
            if not self._ending.is_set():
                log_event(log, "hosted_backup_ended", {"node": self._hosted.node_id, "why": why})
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), RESTART_S)

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        """Waits for the end of the process, and ends it if it shall. Returns its status."""
        ended = asyncio.ensure_future(process.wait())
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait([ended, ending], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                process.terminate()
                await asyncio.wait([ended], timeout=END_S)
            if not ended.done():
                process.kill()
            return await ended
        finally:
            ending.cancel()
