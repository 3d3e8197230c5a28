"""The runs of a member of a replicated group: passive until it takes over, then active, and so on, in one process.

Source: ReplicationPrimaryActivation and ReplicationBackupActivation of Artemis. Differences: a register says who is
active and who is in sync (ha/register.py); a member keeps its journal, and catches up from where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from typing import TYPE_CHECKING, Final

from atalanta.app.node_config import node_config
from atalanta.app.replica_run import ATTEND_S, ReplicaRun
from atalanta.app.running_node import Ready, bound_shell, run_node
from atalanta.app.shared_store import NoCheck, announced_connectors, transport
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage, refuse_artemis_journal
from atalanta.app.web import start_web
from atalanta.cluster.replication.member_handshake import member_key
from atalanta.cluster.replication.seat import ReplicationSeat
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.stored_settings import StoredSettingsFile
from atalanta.files.replace import replace_file
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.policy import BACKUP, PRIMARY
from atalanta.ha.replication import Follower
from atalanta.kernel.security.security import Security
from atalanta.management.status import HaStatus
from atalanta.node.config import NodeConfig
from atalanta.runtime.clock import Clock, steady_ns
from atalanta.runtime.disk.data_folder import make_folder
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.disk.reserve import DiskReserve
from atalanta.runtime.ha.group.member_folder import MemberFolder, group_id, open_member_folder
from atalanta.runtime.ha.group.member_status import (
    FollowerStatus,
    MemberStatus,
    remove_status,
    write_status,
)
from atalanta.runtime.ha.group.register_calls import RegisterCalls
from atalanta.runtime.ha.managers.configured_manager import ManagerRefused, configured_manager
from atalanta.runtime.ha.managers.manager import Manager
from atalanta.runtime.ha.store_requests import HANDOVER, take_request, withdraw_requests
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.net.limits import limits_of_this_process
from atalanta.runtime.network_check.check import network_check
from atalanta.runtime.network_check.guard import NetworkGuard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.event_loop import trim_allocator, unsettle_collector
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.node.node import Node
    from atalanta.runtime.shell import Shell
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")

POLICY: Final = "Replication Primary w/lock manager"
# A follower that makes no progress for the lease and this time is removed from the in-sync set.
DROP_S: Final = 1.0
# A primary gets its service back after it has been in sync for so long.
FAILBACK_AFTER_S: Final = 30.0


def open_member(configuration: Configuration) -> MemberFolder:
    """Opens the journal folder of this member. StartupError if it cannot be used."""
    journal = configuration.journal_folder
    refuse_artemis_journal(journal)
    fixed = configuration.ha.coordination_id
    try:
        folder = open_member_folder(
            journal, configuration.broker.name, None if fixed is None else group_id(fixed), SystemIds().secret
        )
    except DataFolderError as error:
        raise StartupError(exit_codes.FOLDER_TAKEN, [str(error)]) from error
    except OSError as error:
        line = f"the data folder {journal} cannot be used: {error}"
        raise StartupError(exit_codes.DISK_FAILED, [line]) from error
    if folder.lost:
        log_event(log, "member_renamed", {"was": folder.lost, "member": folder.member, "folder": journal})
    return folder


async def serve_group(
    configuration: Configuration,
    security: Security,
    folder: MemberFolder,
    ready: Ready,
    web: str | None = None,
) -> int:
    """Runs this member of the group in the running loop, and returns the exit status."""
    loop = asyncio.get_running_loop()
    server = await start_web(web) if web is not None else None
    check = network_check(loop, configuration.network_check) or NoCheck()
    guard = NetworkGuard(loop, check, configuration.network_check.period_ms / 1_000)
    runs = ReplicatedRuns(configuration, security, folder, ready, server, guard)
    try:
        if server is not None:
            guard.on_change = server.network_changed
        return await guard.run(runs.next)
    finally:
        await runs.close()
        if server is not None:
            await server.stop()


class ReplicatedRuns:
    """The runs of one process. `next` is called by the network guard."""

    def __init__(
        self,
        configuration: Configuration,
        security: Security,
        folder: MemberFolder,
        ready: Ready,
        server: WebServer | None,
        guard: NetworkGuard,
    ) -> None:
        self.configuration = configuration
        self.security = security
        self.folder = folder
        self.ready = ready
        self.server = server
        self.guard = guard
        self.policy = configuration.ha
        self.primary = self.policy.role == PRIMARY
        self.group = self.policy.group_name or ""
        self.limits = limits_of_this_process()
        self.terms = LeaseTerms(self.policy.lease_ms * 1_000_000)
        self.connectors = {
            name: transport(name, values) for name, values in announced_connectors(configuration).items()
        }
        broker = configuration.broker
        self.key = member_key(broker.cluster_user, broker.cluster_password)
        self.stored_settings = StoredSettingsFile.of(configuration)
        self._manager: Manager | None = None
        self._beat = 0
        self._told = ""
        self._told_passive = False

    # --- what the runs share ----------------------------------------------------------------------

    @property
    def manager(self) -> Manager:
        """The manager of the group's register. StartupError if it is configured wrongly."""
        if self._manager is None:
            config = self.policy.manager
            if config is None:
                raise AssertionError("a member without a manager")
            name = str(self.folder.node_id or "")
            try:
                self._manager = configured_manager(config, name, self.configuration.instance)
            except ManagerRefused as error:
                line = f"{self.configuration.path}: the manager of the replication: {error}"
                raise StartupError(exit_codes.BAD_CONFIGURATION, [line]) from error
        return self._manager

    def storage(self, reserved: bool) -> Storage:
        """Returns the storage of the next run. `reserved`: files of the journal are made ahead."""
        configuration, folder = self.configuration, self.folder
        node_id = folder.node_id
        if node_id is None:  # it has met no active node yet, and stores nothing
            return Storage(uuid.UUID(int=0), folder)
        pages = configuration.paging_folder / str(node_id)
        large = configuration.large_messages_folder / str(node_id)
        try:
            make_folder(pages)
            make_folder(large)
        except (OSError, DataFolderError) as error:
            raise StartupError(exit_codes.DISK_FAILED, [f"the data folders cannot be used: {error}"]) from error
        reserve = DiskReserve(folder.journal, configuration.journal.file_size_bytes) if reserved else None
        return Storage(node_id, folder, pages, large, reserve, self.stored_settings)

    def read_settings(self) -> bytes:
        """Returns the stored management settings, b"" without any."""
        path = self.stored_settings.path
        try:
            return b"" if path is None else path.read_bytes()
        except FileNotFoundError:
            return b""

    def write_settings(self, data: bytes) -> None:
        """Stores the management settings of the active node. Raises OSError."""
        path = self.stored_settings.path
        if path is None or data == self.read_settings():
            return
        if data:
            replace_file(path, data)
        else:
            path.unlink(missing_ok=True)

    async def tell(
        self, state: str, epoch: int, active: str, durable: int, behind: int, followers: list[FollowerStatus]
    ) -> None:
        """Writes the status of this process. Raises OSError."""
        self._beat += 1
        status = MemberStatus(
            member=self.folder.member,
            role=self.policy.role,
            state=state,
            epoch=epoch,
            active=active,
            durable=durable,
            behind=behind,
            followers=followers,
            beat=self._beat,
        )
        await asyncio.to_thread(write_status, self.folder.journal, status)

    def tell_once(self, event: str, why: str) -> None:
        """Logs a failure that repeats, once."""
        if why != self._told:
            self._told = why
            log_event(log, event, {"why": why})

    async def close(self) -> None:
        """Ends what outlives the runs."""
        if self._manager is not None:
            await self._manager.close()
        with contextlib.suppress(OSError):  # it is of no use without the process
            remove_status(self.folder.journal)

    def tell_web(self, role: str) -> None:
        """Tells the HTTP server which role this process has."""
        if self.server is not None:
            self.server.role_changed(role)

    # --- the runs ---------------------------------------------------------------------------------

    async def next(self) -> int | None:
        """Follows and serves, again and again. Returns the exit status, None after a lost network."""
        while True:
            self.tell_web("passive")
            shell = bound_shell(self.configuration, signals=False, clock=Clock(steady_ns))
            try:
                passive = await self._follow()
            except BaseException:
                shell.accept_no_more()
                raise
            if passive.follower is None:
                shell.accept_no_more()
                return None if passive.paused else exit_codes.STOPPED
            shell.listen_early()
            self.tell_web("active")
            active = ActiveRun(self, shell, passive.follower)
            self.guard.born(shell)
            if await active.run():
                if active.gives:
                    self.guard.ended()
                return active.status
            unsettle_collector()
            trim_allocator()

    async def _follow(self) -> ReplicaRun:
        """Runs passively until the member has taken over, or ends. It learns the node id of its group first."""
        while True:
            run = ReplicaRun(self)
            self.guard.born(run)
            if not self.primary:
                self.tell_passive()  # a primary that serves at once does not say so
            # A new primary looks whether its group has an active node, and founds a group if there is none.
            founds = self.folder.node_id is None and self.primary
            await run.run(self.terms.wait_ns / 1e9 if founds else None)
            if run.stopping or run.follower is not None:
                return run
            found = run.node_id or uuid.UUID(bytes=SystemIds().uuid())
            self.folder.identify(found)
            log_event(log, "member_identified", {"node_id": found, "founded": run.node_id is None})

    def told_active(self) -> None:
        """Records that the next passive run is told again."""
        self._told_passive = False

    def tell_passive(self) -> None:
        """Tells once that this process is passive."""
        if self._told_passive:
            return
        self._told_passive = True
        log_event(
            log,
            "member_passive",
            {"member": self.folder.member, "role": self.policy.role, "node_id": self.folder.node_id or "unknown"},
        )
        self.ready(["role=passive"])


class ActiveRun:
    """One epoch of this process: from the takeover to its end."""

    def __init__(self, runs: ReplicatedRuns, shell: Shell, follower: Follower) -> None:
        self.runs = runs
        self.shell = shell
        self.follower = follower
        self.status = exit_codes.BUG  # until the run has ended without an error
        self.gives = ""  # why the service is given to another member
        self._node: Node | None = None
        self._attendance: asyncio.Task[None] | None = None
        self._primary_since = -1.0  # since when a primary is in sync

    async def run(self) -> bool:
        """Serves to the end of the epoch. Returns whether the process ends then; `status` is its exit status."""
        runs = self.runs
        register = self.follower.view.known
        epoch = 0 if register is None else register.epoch
        log_event(log, "member_active", {"member": runs.folder.member, "role": runs.policy.role, "epoch": epoch})
        calls = RegisterCalls(runs.manager, self.shell.driver)
        try:
            storage = runs.storage(reserved=True)
            config = self._config(storage)
            self.shell.give_store_with(lambda: self._give("an operator asked for a failover"))
            withdraw_requests(runs.folder.journal)
            self.status = await run_node(
                self.shell, config, runs.configuration, storage, self._ready, runs.server, self._begun,
                self._seat(calls),
            )  # fmt: skip
        finally:
            if self._attendance is not None:
                self._attendance.cancel()
            await calls.close()
        deposed = "" if self._node is None else self._node.deposed
        if deposed:
            log_event(log, "member_deposed", {"epoch": epoch, "why": deposed})
        return not deposed and not self.gives

    def _config(self, storage: Storage) -> NodeConfig:
        """Returns the configuration of the node, with the settings that the group has stored."""
        runs = self.runs
        try:
            storage.settings.read(runs.configuration)
        except ConfigError as error:
            lines = [str(problem) for problem in error.problems]
            raise StartupError(exit_codes.BAD_CONFIGURATION, lines) from error
        return node_config(runs.configuration, runs.security, storage.node_id)

    def _seat(self, calls: RegisterCalls) -> ReplicationSeat:
        runs = self.runs
        return ReplicationSeat(
            follower=self.follower,
            register=calls,
            group=runs.group,
            key=runs.key,
            drop_after_ns=runs.terms.length_ns + int(DROP_S * 1e9),
            min_in_sync=runs.policy.min_in_sync,
            settings=runs.read_settings,
        )

    def _ready(self, words: list[str]) -> None:
        self.runs.told_active()
        self.runs.ready(["role=active", *words])
        # The files may have changed while this process was passive.
        self.shell.loop.call_soon(self.shell.request_reload, "the node is active")

    def _begun(self, node: Node) -> None:
        self._node = node
        self._attendance = self.shell.loop.create_task(self._attend(node))

    async def _attend(self, node: Node) -> None:
        """Tells how far the followers are, and hands over when an operator or a primary asks for it."""
        runs = self.runs
        while True:
            followers = self._followers(node)
            replicas = tuple((each.member, each.in_sync, each.behind) for each in followers)
            epoch = 0 if self.follower.view.known is None else self.follower.view.known.epoch
            node.status.set_ha(HaStatus(POLICY, False, True, epoch, replicas))
            try:
                await asyncio.to_thread(runs.folder.note_journal)
                await runs.tell("active", epoch, runs.folder.member, node.journal.durable, 0, followers)
                requested = await asyncio.to_thread(take_request, runs.folder.journal, HANDOVER)
            except OSError as error:
                runs.tell_once("member_folder_unusable", str(error))
                requested = False
            ready = any(each.in_sync for each in followers)
            if requested and ready:
                self._give("an operator asked for a handover")
            elif requested:
                log_event(log, "handover_refused", {"why": "no other member is in sync"})
            elif self._gives_back(node):
                self._give("the primary is back and in sync")
            await asyncio.sleep(ATTEND_S)

    def _followers(self, node: Node) -> list[FollowerStatus]:
        replicator = node.replicator
        if replicator is None or not replicator.begun:
            return []
        in_sync = replicator.in_sync()
        answered = replicator.active.answered
        last = node.journal.last
        names = sorted({*replicator.streams, *(each for each in in_sync if each != self.runs.folder.member)})
        return [FollowerStatus(each, each in in_sync, last - answered.get(each, 0)) for each in names]

    def _gives_back(self, node: Node) -> bool:
        """Tells whether a primary is in sync for a while, and this backup gives its service back."""
        policy, replicator = self.runs.policy, node.replicator
        if policy.role != BACKUP or not policy.allow_failback or replicator is None:
            return False
        now = time.monotonic()
        in_sync = replicator.in_sync() if replicator.begun else ()
        if not any(stream.connection.primary and name in in_sync for name, stream in replicator.streams.items()):
            self._primary_since = now
        elif self._primary_since < 0:
            self._primary_since = now
        return now - self._primary_since >= FAILBACK_AFTER_S

    def _give(self, why: str) -> None:
        """Stops the node, without a wait for its clients: they follow to the member that takes over."""
        if self.shell.pause(why):
            self.gives = why
