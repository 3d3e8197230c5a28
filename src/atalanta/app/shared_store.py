"""The runs of a node with a shared store: passive until it may take the store, then active, and so on.

Source: SharedStorePrimaryActivation and SharedStoreBackupActivation of Artemis. Differences: an epoch protects the
store, not only a lock (runtime/ha/); a node that has lost its store becomes passive, in the same process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.app.node_config import node_config
from atalanta.app.passive_run import PassiveRun, StoreWait
from atalanta.app.running_node import Ready, bound_shell, run_node
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage, epoch_storage, refuse_artemis_journal
from atalanta.app.web import start_web
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.config.configuration import Configuration
from atalanta.config.folder_owner import OWNER_NAME, owner_of
from atalanta.config.problems import ConfigError
from atalanta.files.replace import replace_file
from atalanta.ha.folder_lease import RELEASED, STOPPED
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.policy import BACKUP, PRIMARY
from atalanta.kernel.security.security import Security
from atalanta.management.status import COLOCATED_POLICY, HaStatus, PassiveStatus
from atalanta.node.config import NodeConfig
from atalanta.runtime.disk.folder_lock import DataFolderDamaged, DataFolderError, lock_folder
from atalanta.runtime.disk.message_deletion import delete_messages
from atalanta.runtime.ha.member_file import MemberRecord
from atalanta.runtime.ha.pair_members import PairMembers, member_name
from atalanta.runtime.ha.shared_store import HeldEpoch, SharedStore, StoreView
from atalanta.runtime.ha.store_requests import HANDOVER, take_request, withdraw_requests
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.lifecycle.takeover_scale_down import TakeoverScaleDown
from atalanta.runtime.network_check.check import NoCheck, network_check
from atalanta.runtime.network_check.guard import NetworkGuard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.allocator import trim_allocator
from atalanta.runtime.process.event_loop import unsettle_collector
from atalanta.runtime.process.logs import log_event
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.node.node import Node
    from atalanta.runtime.shell import Shell
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")

ATTEND_S: Final = 0.5
# A store is given back when its holder has served for so long: a primary that fails again and again takes it rarely.
FAILBACK_AFTER_S: Final = 5.0


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


async def serve_store(
    configuration: Configuration,
    security: Security,
    store: SharedStore,
    ready: Ready,
    web: str | None = None,
    colocated: ColocationSeat | None = None,
) -> int:
    """Runs this process of the pair in the running loop, and returns the exit status."""
    loop = asyncio.get_running_loop()
    server = await start_web(web) if web is not None else None
    check = network_check(loop, configuration.network_check) or NoCheck()
    guard = NetworkGuard(loop, check, configuration.network_check.period_ms / 1_000)
    try:
        if server is not None:
            guard.on_change = server.network_changed
        return await guard.run(SharedStoreRuns(configuration, security, store, ready, server, guard, colocated).next)
    finally:
        if server is not None:
            await server.stop()


class SharedStoreRuns:
    """The runs of one process. `next` is called by the network guard."""

    def __init__(
        self,
        configuration: Configuration,
        security: Security,
        store: SharedStore,
        ready: Ready,
        server: WebServer | None,
        guard: NetworkGuard,
        colocated: ColocationSeat | None = None,
    ) -> None:
        self.configuration = configuration
        self.colocated = colocated
        self.security = security
        self.store = store
        self.ready = ready
        self.server = server
        self.guard = guard
        self.policy = configuration.ha
        self.title = title_of(configuration)
        self.deletes_messages = configuration.delete_messages_at_start  # never after another process has served
        self.kept_messages = False  # a scale-down could not move all: this process does not try it again
        own = MemberRecord(
            name=member_name(),
            role=self.policy.role,
            connectors=announced_connectors(configuration),
            wants="failback" if self.policy.role == PRIMARY else "",
            beat=0,
        )
        self.members = PairMembers(store.members_folder, own, time.monotonic_ns)

    async def next(self) -> int | None:
        """Waits for the store and serves, again and again. Returns the exit status, None after a lost network."""
        wait_ms = self.configuration.journal.lock_acquisition_timeout_ms
        store_wait = StoreWait(self.policy, time.monotonic_ns, wait_ms)
        while True:
            self._tell_web("passive")
            shell = self._bound_shell()
            passive = PassiveRun(
                self.store, self.policy, self.members, self.title, time.monotonic_ns, store_wait
            )
            self.guard.born(passive)
            try:
                held = await passive.wait(shell, self._waiting)
            except BaseException:
                shell.accept_no_more()
                raise
            finally:
                self.members.leave()
            if held is None:
                shell.accept_no_more()
                if passive.again:
                    continue
                if passive.timed_out:
                    log_event(log, "store_wait_timed_out", {"waited_ms": wait_ms, "store": self.store.journal})
                    return exit_codes.FOLDER_TAKEN
                return None if passive.paused else exit_codes.STOPPED
            self._tell_web("active")
            self.deletes_messages = self.deletes_messages and not store_wait.waited
            active = ActiveRun(self, shell, held)
            self.guard.born(shell)
            ends = await active.run()
            self.deletes_messages = False
            if ends:
                if active.gives or shell.left:
                    self.guard.ended()
                return active.status
            unsettle_collector()
            trim_allocator()
            store_wait = StoreWait(self.policy, time.monotonic_ns, wait_ms)

    def _bound_shell(self) -> Shell:
        """Returns a shell with bound ports. StartupError names the holder of the store, which may have them."""
        try:
            return bound_shell(self.configuration, signals=False)
        except StartupError as error:
            view = self.store.look()
            if not view.locked or error.status != exit_codes.UNAVAILABLE:
                raise
            line = f"the store {self.store.journal} is served by {view.holder}: on one machine each needs its own ports"
            raise StartupError(error.status, [*error.lines, line]) from error

    def _tell_web(self, role: str) -> None:
        if self.server is not None:
            self.server.role_changed(role)

    def _waiting(self, view: StoreView) -> None:
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
        if self.server is not None:
            policy = "Shared Store Primary" if self.policy.role == PRIMARY else "Shared Store Backup"
            self.server.show_passive(PassiveStatus(policy, True, epoch=view.epoch))
        self.ready(["role=passive"])


class ActiveRun:
    """One epoch of this process: from the taken store to its end."""

    def __init__(self, runs: SharedStoreRuns, shell: Shell, held: HeldEpoch) -> None:
        self.runs = runs
        self.shell = shell
        self.held = held
        self.status = exit_codes.BUG  # until the run has ended without an error
        self.lost = ""
        self.gives = ""  # why the store is given to another process
        self._since = time.monotonic()
        self._backups: dict[str, TransportConfiguration] = {}
        self._node: Node | None = None
        self._attendance: asyncio.Task[None] | None = None
        self._scale_down = TakeoverScaleDown(shell, runs.configuration.empties_itself)

    async def run(self) -> bool:
        """Serves to the end of the epoch. Returns whether the process ends then; `status` is its exit status."""
        runs = self.runs
        held = self.held
        log_event(log, "node_active", {"role": runs.policy.role, "epoch": held.epoch})
        try:
            if runs.deletes_messages:
                deleted = await asyncio.to_thread(delete_messages, held.journal, held.pages, held.large)
                log_event(log, "messages_deleted", {"folder": held.journal, "files": deleted})
            storage = epoch_storage(runs.configuration, runs.store.node_id, held)
            config = self._config(storage)
            self.shell.begin_clock(held.last_ns())
            self.shell.driver.hold_output(held.hold)
            self.shell.give_store_with(lambda: self._give("an operator asked for a failover"))
            held.start(self._on_lost, self.shell.clock.now)
            withdraw_requests(runs.store.journal)
            self.status = await run_node(
                self.shell, config, runs.configuration, storage, self._ready, runs.server, self._begun,
                colocation=runs.colocated,
            )  # fmt: skip
        finally:
            if self._attendance is not None:
                self._attendance.cancel()
            self._scale_down.end()
            await asyncio.to_thread(self._end)
        if self.lost:
            log_event(log, "store_lost", {"epoch": held.epoch, "why": self.lost})
            return False
        if self.gives or self._scale_down.has_ended_run:
            return runs.policy.role == BACKUP and not runs.policy.restart_backup
        return True

    def _config(self, storage: Storage) -> NodeConfig:
        """Returns the configuration of the node, with the settings that the epoch has stored."""
        runs = self.runs
        try:
            storage.settings.read(runs.configuration)
        except ConfigError as error:
            lines = [str(problem) for problem in error.problems]
            raise StartupError(exit_codes.BAD_CONFIGURATION, lines) from error
        return node_config(runs.configuration, runs.security, runs.store.node_id)

    def _ready(self, words: list[str]) -> None:
        runs = self.runs
        runs.ready(["role=active", *words])
        if self._node is not None:
            self._scale_down.begin(self._node, not runs.kept_messages)
        # The files may have changed while this process was passive.
        self.shell.loop.call_soon(self.shell.request_reload, "the node is active")

    def _on_lost(self, why: str) -> None:
        """Records the loss of the epoch, from any thread, and ends the node also when it has nothing to send."""
        self.lost = why
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.shell.loop.call_soon_threadsafe(self.shell.driver.disk_failed, why)

    def _end(self) -> None:
        """Tells the others how this epoch ended. After a failure the release of the lock tells it."""
        if self.lost or self.status not in (exit_codes.STOPPED, exit_codes.MESSAGES_LEFT):
            self.held.abandon()
        elif self._scale_down.has_ended_run:
            self.runs.kept_messages = self._scale_down.messages_left()
            self.held.stop(RELEASED)
        elif self.shell.paused or self.runs.policy.failover_on_shutdown:
            self.held.stop(RELEASED)
        else:
            self.held.stop(STOPPED)

    # --- the other processes ----------------------------------------------------------------------

    def _begun(self, node: Node, disk: object) -> None:
        """Begins to read the files of the passive processes, for the node that has just been built."""
        self._node = node
        node.status.ha = HaStatus(
            "Shared Store Primary" if self.runs.colocated is None else COLOCATED_POLICY,
            True,
            self.runs.policy.failover_on_shutdown,
            self.held.epoch,
        )
        self._attendance = self.shell.loop.create_task(self._attend())

    async def _attend(self) -> None:
        told = ""
        while True:
            await asyncio.sleep(ATTEND_S)
            try:
                await self.runs.members.read()
                request = await asyncio.to_thread(take_request, self.runs.store.journal, HANDOVER)
            except OSError as error:
                if str(error) != told:
                    told = str(error)
                    log_event(log, "store_unreadable", {"why": told})
                continue
            self._announce()
            if request:
                self._give("an operator asked for a handover")
            elif self._gives_back():
                self._give("the primary is back")

    def _announce(self) -> None:
        """Tells the cluster which process would take over: the first backup, else a primary that waits."""
        alive = self.runs.members.alive
        connectors = alive[0].connectors if alive else {}
        backups = {name: transport(name, values) for name, values in connectors.items()}
        if described(backups) != described(self._backups):
            self._backups = backups
            self.shell.driver.backups(backups)

    def _gives_back(self) -> bool:
        policy = self.runs.policy
        served_s = time.monotonic() - self._since
        wanted = any(each.wants == "failback" for each in self.runs.members.alive)
        return policy.role == BACKUP and policy.allow_failback and wanted and served_s >= FAILBACK_AFTER_S

    def _give(self, why: str) -> None:
        """Stops the node, without a wait for its clients: they follow."""
        if self.shell.pause(why):
            self.gives = why


def title_of(configuration: Configuration) -> str:
    """Returns the name of this process for people: its broker, role and machine."""
    name = configuration.broker.name
    return f"{name} ({configuration.ha.role}, process {os.getpid()} of {socket.gethostname()})"


def announced_connectors(configuration: Configuration) -> dict[str, dict[str, object]]:
    """Returns the parameters of each cluster connection's connector, by the name of the cluster connection."""
    settings = configuration.cluster_settings()
    if settings is None:
        return {}
    return {
        each.name: dict(settings.connectors[each.connector].transport_params())
        for each in settings.cluster_connections
    }


def transport(name: str, values: Mapping[str, object]) -> TransportConfiguration:
    """Returns the connector that a member's file describes."""
    made = TransportConfiguration(name)
    for key, value in values.items():
        if isinstance(value, (bool, int, str)):
            made.put(key, value)
    return made


def described(backups: dict[str, TransportConfiguration]) -> dict[str, dict[str, str]]:
    """Returns the parameters of connectors, to compare them."""
    return {name: each.parameters for name, each in backups.items()}
