"""The voter of a guard: a process beside the broker, so that a pair needs no third machine to keep its register.

Signals to stop are for the broker, which may need the voter until it has stopped. The guard ends the voter when a
backup has taken over. If the guard cannot, the voter ends by itself, some seconds after the guard or the broker: until
then a backup that waits for the lease may take over by it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.guard.line import TAKEOVER_S
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from atalanta.runtime.ha.managers.voter_server import VoterServer
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import configure_logging, log_event

log = logging.getLogger("atalanta.voter")

PASSWORD_SIZE_MAX = 64 * 1024
# How long the voter of a restarted guard waits for the folder. The former one may still have it, and answers meanwhile.
FOLDER_WAIT_S = TAKEOVER_S + 5.0


def run_voter(words: Sequence[str]) -> int:
    """Runs a voter until it is killed, until its broker has ended and a backup had its time, or until its folder fails.
    Returns the exit status then.

    `words`: log level, format of the log, host, port, folder, the descriptor from which the password is read, the one
    that ends with the broker or the guard, and for how many seconds this process goes on then.
    """
    level, log_format, host, port, folder, descriptor, life, stay = words[:8]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    configure_logging(int(level), log_format == "json")
    with os.fdopen(int(descriptor), "rb") as source:
        password = source.read(PASSWORD_SIZE_MAX).decode()
    try:
        voters = VoterFolder(Path(folder), new=False, wait_s=FOLDER_WAIT_S)
        asyncio.run(serve(voters, host, int(port), password, int(life), float(stay)))
    except (DataFolderError, OSError) as error:
        log_event(log, "voter_failed", {"at": f"{host}:{port}", "folder": folder, "why": str(error)})
        return exit_codes.DISK_FAILED
    return exit_codes.STOPPED


async def serve(folder: VoterFolder, host: str, port: int, password: str, life: int, stay_s: float) -> None:
    """Answers proposers until `stay_s` after the end of `life`. OSError if the port or the folder cannot be used."""
    loop = asyncio.get_running_loop()
    server = VoterServer(folder, password)
    bound = await server.listen(host, port)
    log_event(log, "voter_started", {"at": f"{host}:{bound}", "folder": str(folder.folder), "pid": os.getpid()})
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        loop.remove_reader(life)
        ended.set_result(None)

    loop.add_reader(life, end)
    await asyncio.wait([server.failed, ended], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait([server.failed], timeout=stay_s)
    if server.failed.done():
        await server.failed
    await server.close()
