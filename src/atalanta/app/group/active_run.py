"""The active run of a member of a replicated group: one epoch, from the takeover to its end."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from atalanta.app.group.handover import Handover
from atalanta.app.group.member import GroupMember
from atalanta.app.group.replica_run import ATTEND_S
from atalanta.app.ha_run import HaRun
from atalanta.app.life import Life
from atalanta.app.running_node import NewNode, new_node
from atalanta.app.startup_error import StartupError
from atalanta.app.storage import Storage
from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.replication.active.seat import ReplicationSeat
from atalanta.ha.manager_config import GuardVoter, has_only_voter
from atalanta.ha.policy import BACKUP
from atalanta.ha.replication.follower import Follower
from atalanta.kernel.broker.recovery import Recovery
from atalanta.management.status import COLOCATED_POLICY, HaStatus, ReplicaStatus
from atalanta.node.config import NodeConfig
from atalanta.runtime.clock import steady_ns
from atalanta.runtime.ha.group.disk_watch import DiskWatch
from atalanta.runtime.ha.group.member_status import FollowerStatus
from atalanta.runtime.ha.group.register_calls import RegisterCalls
from atalanta.runtime.ha.managers.quorum_manager import QuorumManager
from atalanta.runtime.ha.store_requests import HANDOVER, take_request, withdraw_requests
from atalanta.runtime.process.event_loop import unsettle_collector
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.ha.replication.copy_replay import CopyReplay
    from atalanta.node.node import Node
    from atalanta.runtime.disk.disk import FileDisk
    from atalanta.runtime.disk.memory_disk import MemoryDisk
    from atalanta.runtime.shell import Shell

log = logging.getLogger("atalanta.app")

POLICY: Final = "Replication Primary w/lock manager"
# A follower that makes no progress for the lease and this time is removed from the in-sync set.
DROP_S: Final = 1.0
# Between two looks whether the register has answered, when the service is to be given away.
HANDOVER_LOOK_S: Final = 0.05


class MemberRun(HaRun):
    """One epoch of this process: from the takeover to its end. Its node can be prepared before."""

    def __init__(self, life: Life, member: GroupMember, shell: Shell) -> None:
        super().__init__(life, shell, member.colocated)
        self.member = member
        self.follower: Follower
        self._replay: CopyReplay | None = None
        self._calls: RegisterCalls | None = None
        self._storage: Storage
        self._config: NodeConfig
        self._seat: ReplicationSeat
        self._new: NewNode | None = None
        self._serves = False
        self._disk_watch: DiskWatch | None = None
        self._handover = Handover(shell.driver.callback(NodeInputs.on_timer), self.give)
        self._primary_since = -1.0  # since when a primary is in sync

    def prepare(self) -> Recovery | None:
        """Makes the node, and returns what replays its journal. None if the settings of the group cannot be used."""
        try:
            self._make()
        except StartupError:
            return None  # it is told when this member takes over
        return None if self._new is None else self._seat.prepare(Recovery(self._new.node.broker))

    def _make(self) -> None:
        """Makes the node with the settings that the group has stored. StartupError."""
        member = self.member
        replaced = self._new is not None
        self._close()
        self._storage = member.storage(reserved=True)
        self._config = self.configure(self._storage)
        if self._calls is None:
            self._calls = RegisterCalls(member.manager, self.shell.driver)
        self._seat = ReplicationSeat(
            register=self._calls,
            group=member.group,
            key=member.key,
            drop_after_ns=member.terms.length_ns + int(DROP_S * 1e9),
            min_in_sync=member.policy.min_in_sync,
            settings=member.read_settings,
            steady_ns=steady_ns,
            damaged=member.damaged,
            restores_register=isinstance(member.policy.manager, GuardVoter),
        )
        self._new = new_node(
            self.shell, self._config, member.configuration, self._storage, self._seat, member.colocated
        )
        if replaced:
            unsettle_collector()  # the objects of the former node refer to each other

    def _close(self) -> None:
        """Closes the files of a node that does not run."""
        if self._new is not None:
            self._new.close()
            self._new = None

    async def close(self) -> None:
        """Ends what was prepared, if this member has not taken over."""
        self._close()
        if self._calls is not None:
            await self._calls.close()

    def take_over(self, follower: Follower, replay: CopyReplay | None) -> None:
        """Records what the member has as a follower. `replay`: that of the node that was prepared last."""
        self.follower = follower
        self._replay = replay

    async def run(self) -> bool:
        """Implements ActiveRun.run."""
        member = self.member
        register = self.follower.view.known
        epoch = 0 if register is None else register.epoch
        name, role, why = member.folder.member, member.policy.role, member.why_active
        log_event(log, "member_active", {"member": name, "role": role, "epoch": epoch, "why": why})
        try:
            if self._replay is None:
                self._make()
            new = self._new
            assert new is not None
            guard = None if member.guard is None else member.guard.begin(epoch)
            self._seat.take(self.follower, guard, self._replay)
            self.shell.ends_in_recovery = False
            self.shell.give_store_with(self._fail_over)
            withdraw_requests(member.folder.journal)
            await self.serve(self._storage, self._config, new)
        finally:
            if self._disk_watch is not None:
                self._disk_watch.stop()
            await self.close()
        replicator = None if self.node is None else self.node.replicator
        deposed = "" if replicator is None else replicator.deposed
        if deposed:
            log_event(log, "member_deposed", {"epoch": epoch, "why": deposed})
        why = deposed or self.gives
        if self.scale_down.has_ended_run:
            member.kept_messages = self.scale_down.messages_left()
            why = why or "it has given its messages to another node"
        if not why:
            self._warn_of_no_successor()
        member.why_passive = why or "the node has stopped"
        return not why

    def _warn_of_no_successor(self) -> None:
        """Warns after a stop if no other member has everything that was confirmed."""
        member, known = self.member.folder.member, self.follower.view.known
        if known is not None and known.in_sync == (member,):
            why = "no other member is in sync: start this one again, and the others before the next stop"
            log_event(log, "stopped_without_successor", {"member": member, "why": why})

    def tries_scale_down(self) -> bool:
        """Implements HaRun.tries_scale_down."""
        return not self.member.kept_messages

    def on_ready(self) -> None:
        """Implements HaRun.on_ready."""
        self._serves = True
        self.member.told_active()

    def begin(self, node: Node, disk: FileDisk | MemoryDisk) -> None:
        """Implements HaRun.begin: watches the disk."""
        timeout_ms = self.member.policy.disk_timeout_ms
        if timeout_ms and node.replicator is not None:
            shell = self.shell
            self._disk_watch = DiskWatch(
                shell.loop, timeout_ms / 1_000, lambda: disk.busy_since, node.replicator.has_successor,
                shell.driver.callback(NodeInputs.on_disk_failed),
            )  # fmt: skip
            self._disk_watch.start()

    async def attend(self, node: Node) -> None:
        """Implements HaRun.attend: tells how far the followers are, and hands over when somebody asks for it."""
        member = self.member
        while True:
            followers = self._followers(node)
            places = {} if node.replicator is None else node.replicator.followers.places
            replicas = tuple(
                ReplicaStatus(
                    each.member, each.in_sync, each.asynchronous, each.behind, each.behind_s,
                    places.get(each.member, ""),
                )
                for each in followers
            )  # fmt: skip
            epoch = 0 if self.follower.view.known is None else self.follower.view.known.epoch
            replicator = node.replicator
            problem = "" if replicator is None else replicator.register_problem()
            connected = () if replicator is None else replicator.streams.keys()
            required = member.policy.min_in_sync
            policy = POLICY if member.colocated is None else COLOCATED_POLICY
            only_voter = has_only_voter(member.policy.manager)
            manager = member.manager
            silent = manager.silent() if isinstance(manager, QuorumManager) else {}
            node.status.ha = HaStatus(
                policy, False, True, epoch, replicas, required, problem, connected, only_voter, silent
            )  # fmt: skip
            try:
                await asyncio.to_thread(member.folder.note_journal)
                await member.tell("active", epoch, member.folder.member, node.journal.durable, 0, followers)
                requested = await asyncio.to_thread(take_request, member.folder.journal, HANDOVER)
            except OSError as error:
                member.tell_unusable(str(error))
                requested = False
            self._consider(node, requested)
            end = time.monotonic() + ATTEND_S
            while time.monotonic() < end:
                if self._handover.step(node.replicator):
                    self._primary_since = -1.0  # the service is given back later
                await asyncio.sleep(HANDOVER_LOOK_S if self._handover.waits else ATTEND_S)

    def _consider(self, node: Node, requested: bool) -> None:
        """Decides whether another member is to serve. `requested`: an operator wants that."""
        replicator = node.replicator
        if requested:
            self._handover.want(replicator, "an operator asked for a handover")
        elif replicator is not None and replicator.has_wanted():
            why = f"an operator promoted {replicator.followers.wanted}"
            self._handover.want(replicator, why, chosen=True, once=True)
        elif self._gives_back(node):
            self._handover.want(replicator, "the primary is back and in sync", chosen=True, once=True)

    def _fail_over(self) -> None:
        """Gives the service away at the request of a management client."""
        if self.node is not None:
            self._handover.want(self.node.replicator, "an operator asked for a failover")

    def _followers(self, node: Node) -> list[FollowerStatus]:
        replicator = node.replicator
        if replicator is None or not self._serves:
            return []
        in_sync = replicator.in_sync()
        answered, known = replicator.active.answered, replicator.followers
        last, now = node.journal.last, self.shell.clock.now()
        own = self.member.folder.member
        names = {*replicator.streams, *(each for each in in_sync if each != own), *known.seen()}
        found = []
        for name in sorted(names):
            lag = known.lags.get(name)
            behind_s = 0.0 if lag is None else lag.behind_ns(now, last) / 1e9
            far = lag is not None and lag.asynchronous
            connected = name in replicator.streams
            if not connected:
                behind_s = max(behind_s, known.gone_for_ns(now, name) / 1e9)
            behind = last - answered.get(name, 0)
            found.append(FollowerStatus(name, name in in_sync, behind, far, behind_s, connected))
        return found

    def _gives_back(self, node: Node) -> bool:
        """Returns whether a primary is in sync for a while, and this backup gives its service back."""
        policy, replicator = self.member.policy, node.replicator
        gives = policy.allow_failback or self.member.configuration.empties_itself
        if policy.role != BACKUP or not gives or replicator is None or not self._serves:
            return False
        now = time.monotonic()
        in_sync = replicator.in_sync()
        back = any(each.connection.primary for name, each in replicator.streams.items() if name in in_sync)
        if not back or self._primary_since < 0:
            self._primary_since = now
        return back and now - self._primary_since >= policy.failback_after_s
