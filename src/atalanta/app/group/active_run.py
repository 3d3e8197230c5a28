"""The active run of a member of a replicated group: one epoch, from the takeover to its end."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from atalanta.app.group.member import GroupMember
from atalanta.app.group.replica_run import ATTEND_S
from atalanta.app.node_config import node_config
from atalanta.app.running_node import run_node
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage
from atalanta.cluster.replication.seat import ReplicationSeat
from atalanta.config.problems import ConfigError
from atalanta.ha.policy import BACKUP
from atalanta.ha.replication import Follower
from atalanta.kernel.security.security import Security
from atalanta.management.status import COLOCATED_POLICY, HaStatus
from atalanta.node.config import NodeConfig
from atalanta.runtime.ha.group.disk_watch import DiskWatch
from atalanta.runtime.ha.group.member_status import FollowerStatus
from atalanta.runtime.ha.group.register_calls import RegisterCalls
from atalanta.runtime.ha.store_requests import HANDOVER, take_request, withdraw_requests
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.node.node import Node
    from atalanta.runtime.disk.disk import FileDisk
    from atalanta.runtime.disk.memory_disk import MemoryDisk
    from atalanta.runtime.shell import Shell
    from atalanta.web.server import WebServer

log = logging.getLogger("atalanta.app")

POLICY: Final = "Replication Primary w/lock manager"
# A follower that makes no progress for the lease and this time is removed from the in-sync set.
DROP_S: Final = 1.0


class ActiveRun:
    """One epoch of this process: from the takeover to its end."""

    def __init__(
        self, member: GroupMember, security: Security, server: WebServer | None, shell: Shell, follower: Follower
    ) -> None:
        self.member = member
        self.security = security
        self.server = server
        self.shell = shell
        self.follower = follower
        self.status = exit_codes.BUG  # until the run has ended without an error
        self.gives = ""  # why the service is given to another member
        self._node: Node | None = None
        self._serves = False
        self._attendance: asyncio.Task[None] | None = None
        self._disk_watch: DiskWatch | None = None
        self._primary_since = -1.0  # since when a primary is in sync

    async def run(self) -> bool:
        """Serves to the end of the epoch. Returns whether the process ends then; `status` is its exit status."""
        member = self.member
        register = self.follower.view.known
        epoch = 0 if register is None else register.epoch
        log_event(log, "member_active", {"member": member.folder.member, "role": member.policy.role, "epoch": epoch})
        calls = RegisterCalls(member.manager, self.shell.driver)
        try:
            storage = member.storage(reserved=True)
            config = self._config(storage)
            self.shell.give_store_with(lambda: self._give("an operator asked for a failover"))
            withdraw_requests(member.folder.journal)
            self.status = await run_node(
                self.shell, config, member.configuration, storage, self._ready, self.server, self._begun,
                self._seat(calls, epoch), member.colocated,
            )  # fmt: skip
        finally:
            if self._attendance is not None:
                self._attendance.cancel()
            if self._disk_watch is not None:
                self._disk_watch.stop()
            await calls.close()
        deposed = "" if self._node is None else self._node.deposed
        if deposed:
            log_event(log, "member_deposed", {"epoch": epoch, "why": deposed})
        return not deposed and not self.gives

    def _config(self, storage: Storage) -> NodeConfig:
        """Returns the configuration of the node, with the settings that the group has stored."""
        member = self.member
        try:
            storage.settings.read(member.configuration)
        except ConfigError as error:
            lines = [str(problem) for problem in error.problems]
            raise StartupError(exit_codes.BAD_CONFIGURATION, lines) from error
        return node_config(member.configuration, self.security, storage.node_id)

    def _seat(self, calls: RegisterCalls, epoch: int) -> ReplicationSeat:
        member = self.member
        return ReplicationSeat(
            follower=self.follower,
            register=calls,
            group=member.group,
            key=member.key,
            drop_after_ns=member.terms.length_ns + int(DROP_S * 1e9),
            min_in_sync=member.policy.min_in_sync,
            settings=member.read_settings,
            guard=None if member.guard is None else member.guard.begin(epoch),
        )

    def _ready(self, words: list[str]) -> None:
        self._serves = True
        self.member.told_active()
        self.member.ready(["role=active", *words])
        # The files may have changed while this process was passive.
        self.shell.loop.call_soon(self.shell.request_reload, "the node is active")

    def _begun(self, node: Node, disk: FileDisk | MemoryDisk) -> None:
        self._node = node
        timeout_ms = self.member.policy.disk_timeout_ms
        if timeout_ms:
            shell = self.shell
            self._disk_watch = DiskWatch(
                shell.loop, timeout_ms / 1_000, lambda: disk.busy_since, node.has_successor, shell.driver.disk_failed
            )
            self._disk_watch.start()
        self._attendance = self.shell.loop.create_task(self._attend(node))

    async def _attend(self, node: Node) -> None:
        """Tells how far the followers are, and hands over when an operator or a primary asks for it."""
        member = self.member
        while True:
            followers = self._followers(node)
            replicas = tuple((each.member, each.in_sync, each.behind) for each in followers)
            epoch = 0 if self.follower.view.known is None else self.follower.view.known.epoch
            policy = POLICY if member.colocated is None else COLOCATED_POLICY
            node.status.set_ha(HaStatus(policy, False, True, epoch, replicas))
            try:
                await asyncio.to_thread(member.folder.note_journal)
                await member.tell("active", epoch, member.folder.member, node.journal.durable, 0, followers)
                requested = await asyncio.to_thread(take_request, member.folder.journal, HANDOVER)
            except OSError as error:
                member.tell_unusable(str(error))
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
        if replicator is None or not self._serves:
            return []
        in_sync = replicator.in_sync()
        answered = replicator.active.answered
        last = node.journal.last
        names = sorted({*replicator.streams, *(each for each in in_sync if each != self.member.folder.member)})
        return [FollowerStatus(each, each in in_sync, last - answered.get(each, 0)) for each in names]

    def _gives_back(self, node: Node) -> bool:
        """Tells whether a primary is in sync for a while, and this backup gives its service back."""
        policy, replicator = self.member.policy, node.replicator
        if policy.role != BACKUP or not policy.allow_failback or replicator is None or not self._serves:
            return False
        now = time.monotonic()
        in_sync = replicator.in_sync()
        back = any(each.connection.primary for name, each in replicator.streams.items() if name in in_sync)
        if not back or self._primary_since < 0:
            self._primary_since = now
        return back and now - self._primary_since >= policy.failback_after_s

    def _give(self, why: str) -> None:
        """Stops the node, without a wait for its clients: they follow to the member that takes over."""
        if self.shell.pause(why):
            self.gives = why
