"""The voter of a guard: a process beside the broker, so that a pair needs no third machine to keep its register.

Signals to stop are for the broker, which may need the voter until it has stopped. The voter ends by itself, some
seconds after the broker or the guard, however that ended and whatever role it had: until then the survivor may take
over by it, and remove the member that has ended from those in sync.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from atalanta.runtime.disk.folder_lock import LOOK_S, DataFolderError, FolderInUse
from atalanta.runtime.ha.guard.line import TAKEOVER_S
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from atalanta.runtime.ha.managers.voter_server import VoterServer
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import configure_logging, log_event

log = logging.getLogger("atalanta.voter")

PASSWORD_SIZE_MAX = 64 * 1024
# The voter of a restarted guard waits for the folder: the former one may still have it, and answers meanwhile. After
# this time something else has it.
FOLDER_TOLD_S = TAKEOVER_S + 5.0


class BrokerLife:
    """The life of the broker and its guard, which ends with `descriptor`, and the `stay_s` that the voter has after it.

    `deadline` is the end of those on the monotonic clock, None while the life lasts.
    """

    def __init__(self, descriptor: int, stay_s: float) -> None:
        self.descriptor = descriptor
        self.deadline: float | None = None
        self._stay_s = stay_s

    def wait(self, seconds: float) -> bool:
        """Waits about so long. Returns False if the voter has to end."""
        if self.deadline is not None:
            time.sleep(seconds)
        elif select.select([self.descriptor], [], [], seconds)[0]:
            self.end()
        return self.deadline is None or time.monotonic() < self.deadline

    def end(self) -> float:
        """Notes the end of the life. Returns the seconds that the voter has left."""
        now = time.monotonic()
        if self.deadline is None:
            self.deadline = now + self._stay_s
        return max(0.0, self.deadline - now)


def run_voter(words: Sequence[str]) -> int:
    """Runs a voter until it is killed, until its broker has ended and the survivor had its time, or until its folder
    fails. Returns the exit status then.

    `words`: log level, format of the log, host, port, folder, the descriptor from which the password is read, the one
    that ends with the broker or the guard, and for how many seconds this process goes on then.
    """
    level, log_format, host, port, folder, descriptor, life, stay = words[:8]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    configure_logging(int(level), log_format == "json")
    with os.fdopen(int(descriptor), "rb") as source:
        password = source.read(PASSWORD_SIZE_MAX).decode()
    # Whoever reads what the node prints sees the end of that with the broker's, not with this one's.
    with open(os.devnull, "r+b") as nothing:
        for stream in (0, 1):
            os.dup2(nothing.fileno(), stream)
    try:
        broker = BrokerLife(int(life), float(stay))
        voters = await_folder(Path(folder), broker)
        if voters is not None:
            asyncio.run(serve(voters, host, int(port), password, broker))
    except (DataFolderError, OSError) as error:
        log_event(log, "voter_failed", {"at": f"{host}:{port}", "folder": folder, "why": str(error)})
        return exit_codes.DISK_FAILED
    return exit_codes.STOPPED


def await_folder(folder: Path, broker: BrokerLife, told_s: float = FOLDER_TOLD_S) -> VoterFolder | None:
    """Returns the folder when no other process has it, None if this voter has to end before. DataFolderError, OSError.

    After `told_s` the log says who has it. The wait has no other end: the broker goes on meanwhile, and has no other
    voter.
    """
    tells = time.monotonic() + told_s
    while True:
        try:
            return VoterFolder(folder, new=False)
        except FolderInUse as error:
            if time.monotonic() >= tells:
                tells = float("inf")
                what = f"end process {error.holder} if it is no voter of this group: this one waits, and goes on then"
                log_event(log, "voter_folder_awaited", {"folder": str(folder), "what_to_do": what})
        if not broker.wait(LOOK_S):
            return None


async def _listen(server: VoterServer, host: str, port: int) -> int:
    """Listens, and returns the port. The former voter may still have it, though its folder was removed. OSError."""
    end = time.monotonic() + FOLDER_TOLD_S
    while True:
        try:
            return await server.listen(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= end:
                raise
        await asyncio.sleep(LOOK_S)


async def serve(folder: VoterFolder, host: str, port: int, password: str, broker: BrokerLife) -> None:
    """Answers proposers until the broker has ended and the survivor had its time. OSError if the port or the folder
    cannot be used."""
    loop = asyncio.get_running_loop()
    server = VoterServer(folder, password)
    bound = await _listen(server, host, port)
    log_event(log, "voter_started", {"at": f"{host}:{bound}", "folder": str(folder.folder), "pid": os.getpid()})
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        loop.remove_reader(broker.descriptor)
        ended.set_result(None)

    loop.add_reader(broker.descriptor, end)
    await asyncio.wait([server.failed, ended], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait([server.failed], timeout=broker.end())
    if server.failed.done():
        await server.failed
    await server.close()
