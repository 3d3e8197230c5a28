"""The guard of a node, as the configuration wants it."""

from __future__ import annotations

import logging
from pathlib import Path

from atalanta.app.startup_error import StartupError
from atalanta.app.witness import listen_address
from atalanta.config.configuration import Configuration
from atalanta.ha.manager_config import GuardVoter, QuorumManagerConfig
from atalanta.runtime.disk.data_folder import MEMBER_NAME
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.guard.line import GuardLine
from atalanta.runtime.ha.guard.start import VoterStart, start_guard
from atalanta.runtime.ha.managers.configured_manager import ManagerRefused, voters_password
from atalanta.runtime.ha.managers.voter_folder import MARK, VoterFolder
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.wire.loopback import is_loopback

log = logging.getLogger("atalanta.guard")


def start_guard_of(configuration: Configuration, guarded: bool) -> GuardLine | None:
    """Starts the guard of a node that other members replicate, and returns this process' line to it. StartupError.

    It is called before locks and ports are taken, so that the guard has none of them.
    """
    voter = voter_of(configuration)
    if guarded:
        return start_guard(voter)
    if voter is not None and isinstance(configuration.ha.manager, GuardVoter):
        raise StartupError(exit_codes.BAD_CONFIGURATION, [
            f"{configuration.path}: --no-guard: no manager is configured, and the voter that decides instead runs in "
            "the guard: start atalanta ha witness and name it in atalanta.toml, [ha.manager], or leave --no-guard out",
        ])  # fmt: skip
    if voter is not None:
        why = "--no-guard: start it beside the node, with atalanta ha witness"
        log_event(log, "voter_not_started", {"at": f"{voter.host}:{voter.port}", "why": why})
    return None


def make_voter(folder: Path) -> None:
    """Makes the folder of a voter before the first start of a member, if it is not there. StartupError."""
    if (folder / MARK).exists():
        return
    try:
        VoterFolder(folder, new=True).close()
    except DataFolderError as error:
        raise StartupError(exit_codes.BAD_DATA, [str(error)]) from error
    except OSError as error:
        raise StartupError(exit_codes.DISK_FAILED, [f"{folder}: {error}"]) from error


def voter_of(configuration: Configuration) -> VoterStart | None:
    """Returns the voter that the configuration gives to the guard of this node. StartupError."""
    manager = configuration.ha.manager
    if not isinstance(manager, QuorumManagerConfig) or manager.voter is None:
        return None
    host, port = listen_address("[ha.manager] voter", manager.voter)
    try:
        password = voters_password(manager, configuration.instance)
    except ManagerRefused as error:
        raise StartupError(exit_codes.BAD_CONFIGURATION, [f"[ha.manager] {error}"]) from error
    if not password and not is_loopback(host):
        why = "anybody there could change the register: give a password-file, the same to all members and voters"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [f"[ha.manager] voter = {manager.voter!r}: {why}"])
    folder = configuration.instance / manager.voter_folder
    if isinstance(manager, GuardVoter) and not (configuration.journal_folder / MEMBER_NAME).exists():
        make_voter(folder)
    if not (folder / MARK).exists() and isinstance(manager, GuardVoter):
        raise StartupError(exit_codes.BAD_DATA, [
            f"{folder} is gone, the folder of the only voter of this pair: nobody knows any more which member has "
            "everything. Start a new voter (atalanta ha witness --new), name it in the atalanta.toml of both members, "
            "[ha.manager], and start the one that served last: atalanta ha promote --lossy lets it serve",
        ])  # fmt: skip
    if not (folder / MARK).exists():
        raise StartupError(exit_codes.BAD_DATA, [
            f"[ha.manager] voter-folder = {manager.voter_folder!r}: {folder} is no folder of a voter. For the first "
            f"start of this group make one: atalanta ha witness --listen 127.0.0.1:0 --folder {folder} --new, and stop "
            "it when it is ready. A voter that has lost its folder must not come back empty: see the guide",
        ])  # fmt: skip
    return VoterStart(host, port, folder, password)
