"""The activation of a node with a shared store: passive until it may take the store.

Source: SharedStorePrimaryActivation and SharedStoreBackupActivation of Artemis. Differences: an epoch protects the
store, not only a lock (runtime/ha/); a node that has lost its store becomes passive, in the same process.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from pathlib import Path

from atalanta.app.connectors import announced_connectors
from atalanta.app.life import ActiveRun, Life
from atalanta.app.running_node import bound_shell
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import refuse_artemis_journal
from atalanta.app.store.active_run import SharedStoreRun
from atalanta.app.store.passive_run import PassiveRun, StoreWait
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.config.configuration import Configuration
from atalanta.config.folder_owner import OWNER_NAME, owner_of
from atalanta.files.replace import replace_file
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.policy import PRIMARY
from atalanta.management.status import PassiveStatus
from atalanta.runtime.disk.folder_lock import DataFolderDamaged, DataFolderError, lock_folder
from atalanta.runtime.ha.member_file import MemberRecord
from atalanta.runtime.ha.pair_members import PairMembers, member_name
from atalanta.runtime.ha.shared_store import SharedStore, StoreView
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.runtime.shell import Shell

log = logging.getLogger("atalanta.app")


def open_store(configuration: Configuration) -> SharedStore:
    """Opens the folders that the pair has in common. StartupError if they cannot be used."""
    journal = configuration.journal_folder
    refuse_artemis_journal(journal)
    try:
        if configuration.shared_data_owner:
            claim_folder(journal, configuration.shared_data_owner)
        return SharedStore(
            journal,
            configuration.paging_folder,
            configuration.large_messages_folder,
            LeaseTerms(configuration.ha.lease_ms * 1_000_000),
            SystemIds().uuid,
            adopts=configuration.ha.equals,
        )
    except DataFolderDamaged as error:
        raise StartupError(exit_codes.BAD_DATA, [str(error)]) from error
    except DataFolderError as error:
        raise StartupError(exit_codes.FOLDER_TAKEN, [str(error)]) from error
    except OSError as error:
        line = f"the shared store {journal} cannot be used: {error}"
        raise StartupError(exit_codes.DISK_FAILED, [line]) from error


def claim_folder(journal: Path, owner: str) -> None:
    """Writes the name of its broker into a journal folder that was one for every broker of a data directory.

    DataFolderError if another broker was faster, and has the next start get a folder of its own; or if a node of an
    earlier version uses it. Raises OSError.
    """
    lock = lock_folder(journal)
    try:
        found = owner_of(journal)
        if not found:
            replace_file(journal / OWNER_NAME, f"{owner}\n".encode())
            log_event(log, "folder_claimed", {"folder": journal, "broker": owner})
    finally:
        lock.close()
    if found not in ("", owner):
        raise DataFolderError(f"{journal} became that of broker {found} just now: start this one again")


class SharedStoreActivation:
    """The activations of one process: passive until it may take the store, then active, and so on."""

    def __init__(self, configuration: Configuration, colocated: ColocationSeat | None) -> None:
        """`colocated`: of a process that may host backups of other members. StartupError if the store cannot be
        used."""
        self.configuration = configuration
        self.colocated = colocated
        self.store = open_store(configuration)
        self.policy = configuration.ha
        self.title = title_of(configuration)
        self.kept_messages = False  # a scale-down could not move all: this process does not try it again
        own = MemberRecord(
            name=member_name(),
            role=self.policy.role,
            connectors=announced_connectors(configuration),
            wants="failback" if self.policy.role == PRIMARY else "",
            beat=0,
        )
        self.members = PairMembers(self.store.members_folder, own, time.monotonic_ns)
        self._deletes_messages = configuration.delete_messages_at_start  # never after another process has served

    async def become_active(self, life: Life) -> ActiveRun | int | None:
        """Implements Activation.become_active: waits for the store."""
        wait_ms = self.configuration.journal.lock_acquisition_timeout_ms
        store_wait = StoreWait(self.policy, time.monotonic_ns, wait_ms)
        while True:
            life.tell_web("passive")
            shell = self._bound_shell()
            passive = PassiveRun(
                self.store, self.policy, self.members, self.title, time.monotonic_ns, store_wait
            )
            life.watch.begun(passive)
            try:
                held = await passive.wait(shell, lambda view: self._waiting(life, view))
            except BaseException:
                shell.accept_no_more()
                raise
            finally:
                self.members.leave()
            if held is not None:
                break
            shell.accept_no_more()
            if passive.again:
                continue
            if passive.timed_out:
                log_event(log, "store_wait_timed_out", {"waited_ms": wait_ms, "store": self.store.journal})
                return exit_codes.FOLDER_TAKEN
            return None if passive.paused else exit_codes.STOPPED
        life.tell_web("active")
        deletes, self._deletes_messages = self._deletes_messages and not store_wait.waited, False
        life.watch.begun(shell)
        return SharedStoreRun(self, life, shell, held, deletes)

    def _bound_shell(self) -> Shell:
        """Returns a shell with bound ports. StartupError names the holder of the store, which may have them."""
        try:
            return bound_shell(self.configuration)
        except StartupError as error:
            view = self.store.look()
            if not view.locked or error.status != exit_codes.UNAVAILABLE:
                raise
            line = f"the store {self.store.journal} is served by {view.holder}: on one machine each needs its own ports"
            raise StartupError(error.status, [*error.lines, line]) from error

    def _waiting(self, life: Life, view: StoreView) -> None:
        """Tells that this process is passive: another one serves, or has stopped without a failover."""
        log_event(
            log,
            "node_passive",
            {
                "role": self.policy.role, "epoch": view.epoch, "store": self.store.journal, "holder": view.holder,
                "silence_ms": self.store.silence_ms(view),
            },
        )  # fmt: skip
        name = self.configuration.broker.name
        if self.configuration.classic and view.holder and not view.holder.startswith(f"{name} ("):
            why = "a slave and its master usually have one brokerName: two brokers need a folder each"
            log_event(log, "pair_names_differ", {"own": name, "holder": view.holder, "why": why})
        if life.server is not None:
            policy = "Shared Store Primary" if self.policy.role == PRIMARY else "Shared Store Backup"
            life.server.show_passive(PassiveStatus(policy, True, epoch=view.epoch))
        life.ready(["role=passive"])

    async def close(self) -> None:
        """Implements Activation.close: each run has released its epoch."""


def title_of(configuration: Configuration) -> str:
    """Returns the name of this process for people: its broker, role and machine."""
    name = configuration.broker.name
    return f"{name} ({configuration.ha.role}, process {os.getpid()} of {socket.gethostname()})"
