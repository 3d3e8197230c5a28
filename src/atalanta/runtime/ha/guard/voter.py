"""The voter of a guard: a process beside the broker, so that a pair needs no third machine to keep its register.

It lives as long as the guard does. Signals to stop are for the broker, which may need the voter until it has stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from atalanta.runtime.ha.managers.voter_server import VoterServer
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import configure_logging, log_event

log = logging.getLogger("atalanta.voter")

PASSWORD_SIZE_MAX = 64 * 1024


def run_voter(words: Sequence[str]) -> int:
    """Runs a voter until it is killed, or until its folder fails. Returns the exit status then.

    `words`: log level, format of the log, host, port, folder, and the descriptor from which the password is read.
    """
    level, log_format, host, port, folder, descriptor = words[:6]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    configure_logging(int(level), log_format == "json")
    with os.fdopen(int(descriptor), "rb") as source:
        password = source.read(PASSWORD_SIZE_MAX).decode()
    try:
        voters = VoterFolder(Path(folder), new=False)
        asyncio.run(serve(voters, host, int(port), password))
    except (DataFolderError, OSError) as error:
        log_event(log, "voter_failed", {"at": f"{host}:{port}", "folder": folder, "why": str(error)})
    return exit_codes.DISK_FAILED


async def serve(folder: VoterFolder, host: str, port: int, password: str) -> None:
    """Answers proposers. OSError if the port or the folder cannot be used."""
    server = VoterServer(folder, password)
    bound = await server.listen(host, port)
    log_event(log, "voter_started", {"at": f"{host}:{bound}", "folder": str(folder.folder), "pid": os.getpid()})
    await server.failed

