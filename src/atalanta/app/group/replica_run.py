"""The passive run of a member of a replicated group: it follows the active node until it may take over.

Its ports are bound and do not listen, so clients go on to the next server of their list. When the connection to the
active node is lost, or when this member has taken over, they listen: clients wait in the backlog until the node has
read its journal. cluster/replication/passive/client_backlog.py has the rule.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.app.group.member import GroupMember
from atalanta.app.running_node import BoundPorts
from atalanta.app.startup_error import StartupError
from atalanta.app.transports import secure_connectors
from atalanta.cluster.config import DiscoveryGroupConfig
from atalanta.cluster.replication.passive.active_search import Candidate
from atalanta.cluster.replication.passive.backup import Backup
from atalanta.cluster.replication.passive.backup_config import (
    BackupConfig,
    BackupPorts,
    BackupStatus,
    Damaged,
    MemberIdentity,
    TakenOver,
)
from atalanta.config.configuration import Configuration
from atalanta.ha.last_instant import NO_INSTANT, LastInstant
from atalanta.ha.replication.follower import Follower
from atalanta.kernel.ports import Disk, LargeFiles
from atalanta.management.status import PassiveStatus
from atalanta.message.encoding.buffer import DecodeError
from atalanta.runtime.clock import steady_ns
from atalanta.runtime.ha.group.guard_calls import GuardCalls
from atalanta.runtime.ha.group.passive_shell import PassiveShell
from atalanta.runtime.ha.group.register_calls import RegisterCalls
from atalanta.runtime.ha.store_requests import PROMOTE, PROMOTE_LOSSY, take_request
from atalanta.runtime.net.limits import limits_of_this_process
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.store.errors import JournalForeign
from atalanta.wire.endpoint import ConnectorConfig

if TYPE_CHECKING:
    from atalanta.ha.replication.copy_replay import CopyReplay
    from atalanta.store.ports import GrowingReplay

log = logging.getLogger("atalanta.app")

ATTEND_S: Final = 0.5


class ReplicaRun:
    """One passive run. A stop signal, or a lost network, ends it.

    Afterwards `follower` is set if it has taken over, `node_id` if it has learned that of its group and begins again,
    `damaged` if it begins again with `repair` under a new name. If it has not taken over and its ports `listen`, they
    must be bound anew.
    """

    def __init__(
        self,
        member: GroupMember,
        bound: BoundPorts,
        prepare: Callable[[], GrowingReplay | None],
        repair: bool = False,
    ) -> None:
        """`prepare`: that of BackupPorts. `repair`: the journal is damaged."""
        self.member = member
        self._prepare = prepare
        self.repair = repair
        self.damaged = False
        self.listens = False
        self.paused = False
        self.stopping = False
        self.follower: Follower | None = None
        self.replay: CopyReplay | None = None
        self.last_instant = NO_INSTANT  # of the clock of the node's predecessor, by `steady_ns`
        self.node_id: uuid.UUID | None = None
        self.show_passive: Callable[[PassiveStatus], None] = lambda status: None  # the HTTP server's, if there is one
        self.founded = False  # the node id is a new one
        self._bound = bound
        self._shell: PassiveShell | None = None
        self._backup: Backup | None = None

    # --- asked by the network watch ---------------------------------------------------------------

    def pause(self, why: str) -> bool:
        """Ends the run in order to begin again."""
        self.paused = True
        self.request_stop(why)
        return True

    def request_stop(self, why: str) -> None:
        """Ends the run."""
        if not self.stopping:
            self.stopping = True
            log_event(log, "node_stopping", {"why": why})
        if self._shell is not None:
            self._shell.end()

    def request_reload(self, why: str) -> None:
        """Changes nothing: the files are read again when this node becomes active."""

    # --- the run ----------------------------------------------------------------------------------

    async def run(self, wait_s: float | None) -> None:
        """Follows until the end, at most for `wait_s`. StartupError if it cannot go on."""
        if self.stopping:
            return
        member = self.member
        loop = asyncio.get_running_loop()
        shell = PassiveShell(loop, limits_of_this_process(), secure_connectors(member.configuration))
        self._shell = shell
        calls = RegisterCalls(member.manager, shell.driver)
        storage = member.storage(reserved=False)
        disk = storage.disk(loop, shell.driver, member.configuration.own.commits_in_loop)
        large = storage.large_files(loop, shell.driver, 0, member.configuration.journal.large_message_sync)
        guard = GuardCalls(member.guard_key, self._on_ended)
        backup = self._new_backup(self._ports(shell, disk, large, calls, guard))
        self._backup = backup
        attendance = loop.create_task(self._attend(shell, backup))
        timer = None if wait_s is None else loop.call_later(wait_s, shell.end)
        try:
            await shell.run(backup, disk, large)
        except (JournalForeign, DecodeError) as error:
            line = f"the journal in {member.folder.journal} cannot be read: {error}"
            raise StartupError(exit_codes.BAD_DATA, [line]) from error
        finally:
            guard.close()
            self._shell = self._backup = None
            if timer is not None:
                timer.cancel()
            attendance.cancel()
            await asyncio.gather(attendance, return_exceptions=True)
            await calls.close()
        if shell.failed:
            raise StartupError(exit_codes.BUG if shell.bug else exit_codes.DISK_FAILED, [shell.failed])
        outcome = backup.outcome
        if isinstance(outcome, TakenOver):
            self.follower = outcome.follower
            self.replay = outcome.replay
            if outcome.last is not NO_INSTANT:
                self.last_instant = LastInstant(outcome.last.at(shell.clock.now()), steady_ns())
            self.member.why_active = outcome.why
        self.damaged = isinstance(outcome, Damaged)
        if isinstance(outcome, MemberIdentity):
            self.node_id = uuid.UUID(bytes=outcome.node_id)
            self.founded = outcome.founded

    def _config(self) -> BackupConfig:
        member = self.member
        node_id = member.folder.node_id
        return BackupConfig(
            member=member.folder.member,
            node_id=None if node_id is None else node_id.bytes,
            group=member.group,
            candidates=self._candidates(),
            terms=member.terms,
            primary=member.primary,
            journal=None if node_id is None else member.configuration.journal.journal_config(node_id.bytes),
            key=member.key,
            connectors=member.connectors,
            folder=str(member.folder.journal),
            repair=self.repair,
            learned=member.folder.learned,
            asynchronous=member.policy.asynchronous,
            granted_ns=member.folder.granted_ns,
        )

    def _new_backup(self, ports: BackupPorts) -> Backup:
        configuration, config = self.member.configuration, self._config()
        group = heard_group(configuration)
        if group is None:
            return Backup(config, ports)
        # Few members need it.
        from atalanta.cluster.discovery.discovering_backup import DiscoveringBackup

        own = own_connector(configuration)
        return DiscoveringBackup(config, ports, group, own.name, own.tls is not None)

    def _candidates(self) -> list[Candidate]:
        member = self.member
        if member.colocated is None:
            return candidates(member.configuration)
        hosts = member.colocated.hosts()
        return [colocated_candidate(member.configuration, each.host, each.port) for each in hosts]

    def _ports(
        self, shell: PassiveShell, disk: Disk, large: LargeFiles, calls: RegisterCalls, guard: GuardCalls
    ) -> BackupPorts:
        return BackupPorts(
            wire=shell.connections,
            disk=disk,
            large=large,
            timers=shell.timers,
            links=shell.links,
            ids=shell.ids,
            trace=shell.trace,
            register=calls,
            settings=self.member.write_settings,
            guard=None if self.member.policy.asynchronous else guard,  # no proof lets it take over
            listen=self._listen,
            prepare=self._prepare,
            keep_lease=self.member.folder.keep_lease,
        )

    def _on_ended(self, epoch: int) -> None:
        """Handles that the process that was active in `epoch` has provably ended."""
        shell = self._shell
        if shell is not None:
            shell.driver.post(Backup.on_process_ended, epoch)

    def _listen(self) -> None:
        """Lets clients that have lost the active node wait here."""
        self.listens = True
        self._bound.listen_early()

    def _passive_status(self, seen: BackupStatus) -> PassiveStatus:
        in_sync = bool(seen.active) and self.member.folder.member in seen.in_sync
        policy = f"Replication {'Primary' if self.member.primary else 'Backup'} w/lock manager"
        return PassiveStatus(policy, False, in_sync, seen.epoch, seen.behind, seen.waits)

    async def _attend(self, shell: PassiveShell, backup: Backup) -> None:
        """Tells how far the member is, and looks for an operator's request."""
        member = self.member
        while True:
            try:
                await asyncio.to_thread(member.folder.note_journal)
                seen = backup.status()
                self.show_passive(self._passive_status(seen))
                await member.tell("passive", seen.epoch, seen.active, seen.durable, seen.behind, [], seen.waits)
                promoted = await asyncio.to_thread(take_request, member.folder.journal, PROMOTE)
                forced = await asyncio.to_thread(take_request, member.folder.journal, PROMOTE_LOSSY)
            except OSError as error:
                member.tell_unusable(str(error))
            else:
                if promoted or forced:
                    shell.driver.post(Backup.promote, lossy=forced)
            await asyncio.sleep(ATTEND_S)
            member.tell_passive()  # not at once: a primary that serves at once does not say so


def colocated_candidate(configuration: Configuration, host: str, port: int) -> Candidate:
    """Returns the other half of a colocated pair. It is dialled as this node's own connector says, with TLS or not."""
    own = own_connector(configuration)
    return Candidate(own.name, host, port, own.tls is not None)


def own_connector(configuration: Configuration) -> ConnectorConfig:
    """Returns the connector that this member announces to the others."""
    connection = configuration.group_connection()
    assert connection is not None
    return configuration.connectors[connection.connector]


def heard_group(configuration: Configuration) -> DiscoveryGroupConfig | None:
    """Returns the discovery group by which this member finds the others. None with static connectors, and in a
    colocated pair, whose halves know each other."""
    connection = configuration.group_connection()
    policy = configuration.ha
    if connection is None or connection.discovery_group is None or policy.colocation is not None or policy.hosted:
        return None
    return configuration.discovery_groups[connection.discovery_group]


def candidates(configuration: Configuration) -> list[Candidate]:
    """Returns the other members of the group: the static connectors of its cluster connection, without the own ones."""
    connection = configuration.group_connection()
    if connection is None:
        return []
    hosted = configuration.ha.hosted
    if hosted is not None:
        return [colocated_candidate(configuration, hosted.host, hosted.port)]
    own = {(each.host, each.port) for each in configuration.acceptors}
    found = []
    for name in connection.static_connectors:
        connector = configuration.connectors.get(name)
        if connector is None or name == connection.connector or (connector.host, connector.port) in own:
            continue
        found.append(Candidate(name, connector.host, connector.port, connector.tls is not None))
    return found
