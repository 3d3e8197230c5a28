"""A witness: one voter of the HA register in a process of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from atalanta.app.startup_error import StartupError
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from atalanta.runtime.ha.managers.voter_server import VoterServer
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.process.signals import StopSignals
from atalanta.wire.loopback import is_loopback

log = logging.getLogger("atalanta.voter")


def run_witness(
    listen: str,
    folder: Path,
    new: bool,
    copies: Sequence[Path],
    password: str,
    ready: Callable[[list[str]], None],
) -> int:
    """Runs one voter until SIGTERM or SIGINT. Returns the exit status. StartupError.

    `listen` is host:port; port 0 takes a free one. `ready` gets the words of the ready line. Without a password only
    a loopback address is listened at. `copies` are folders of the other voters, for a new one in the place of a lost
    one.
    """
    host, port = listen_address("--listen", listen)
    if copies and not new:
        raise _refused("--copy-of: only with --new, for a voter in the place of a lost one")
    if not password and not is_loopback(host):
        raise _refused(
            f"--listen {listen}: anybody there could change the register. Give --password-file, or listen at 127.0.0.1"
        )
    try:
        voters = VoterFolder(folder, new, copies)
    except DataFolderError as error:
        raise StartupError(exit_codes.BAD_DATA, [str(error)]) from error
    except OSError as error:
        raise StartupError(exit_codes.DISK_FAILED, [f"--folder {folder}: {error}"]) from error
    try:
        return asyncio.run(_serve(voters, host, port, password, ready))
    finally:
        voters.close()


async def _serve(
    folder: VoterFolder, host: str, port: int, password: str, ready: Callable[[list[str]], None]
) -> int:
    """Listens until a signal comes, or the folder cannot be written. Returns the exit status."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[str] = loop.create_future()
    server = VoterServer(folder, password)

    def stop(signal_name: str) -> None:
        if not stopped.done():
            stopped.set_result(signal_name)

    with StopSignals(loop, stop, lambda _: None):
        try:
            bound = await server.listen(host, port)
        except OSError as error:
            raise StartupError(exit_codes.UNAVAILABLE, [f"--listen {host}:{port}: {error}"]) from error
        ready([f"voter={host}:{bound}"])
        ends: list[asyncio.Future[Any]] = [stopped, server.failed]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await server.close()
    if server.failed.done():
        log_event(log, "voter_folder_failed", {"why": str(server.failed.exception())})
        return exit_codes.DISK_FAILED
    return exit_codes.STOPPED


def listen_address(option: str, text: str) -> tuple[str, int]:
    """Returns the host and the port of host:port, the value of an option. StartupError."""
    host, separator, port = text.rpartition(":")
    host = host.strip("[]")
    if not separator or not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise _refused(f"{option} {text}: not host:port, such as 127.0.0.1:5790")
    return host, int(port)


def _refused(why: str) -> StartupError:
    return StartupError(exit_codes.USAGE, [why])
