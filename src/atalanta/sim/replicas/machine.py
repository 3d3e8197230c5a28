"""A machine of a simulated group: a process with a disk of its own, which follows the active node or is it.

The rules are those of the product: `Backup` while the machine is passive, a `Node` with a `Replicator` while it is
active. This shell does what app/group/activation.py does around them: it begins the next run when one has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from atalanta.cluster.replication import (
    Backup,
    BackupConfig,
    BackupPorts,
    MemberIdentity,
    NotTakenOver,
    ReplicationSeat,
    TakenOver,
    member_key,
)
from atalanta.ha import NO_INSTANT, CopyReplay, Follower, LastInstant, LeaseTerms, Register
from atalanta.kernel import Recovery
from atalanta.node import Node
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.checks.replay import check_replay_of
from atalanta.sim.host import HostLarge, MakeNode, SimIds, SimLinks, SimTimers, SimWire
from atalanta.sim.nodes import CLUSTER_PASSWORD, CLUSTER_USER
from atalanta.sim.replicas.backlog import Backlog
from atalanta.sim.replicas.checks import ConfirmedBlocks, ConfirmedFiles
from atalanta.sim.replicas.guards import SimGuard, SimGuardWatch
from atalanta.sim.replicas.members import SimMember, SimMembers
from atalanta.sim.replicas.register import SimRegisterPort
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import SimLargeFiles
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

KEY: Final = member_key(CLUSTER_USER, CLUSTER_PASSWORD)
PATIENCE_NS: Final = 2 * SECOND  # with an active node that reads its journal
SETTLED_AT: Final = 3  # messages that a passive member replays
LOOK_NS: Final = SECOND // 100
HAND_OVER_NS: Final = 2 * SECOND  # at most
PROVEN_SHARE: Final = 0.5  # of the crashes end the process only, and its guard sees it


class ReplicaMachine(SimMember):
    """A machine. `member` is the name of its data folder."""

    restart_ns = (SECOND // 100, 2 * SECOND)

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        port: int,
        make_node: MakeNode,
        group: SimMembers,
        terms: LeaseTerms,
        number: int,
    ) -> None:
        super().__init__(
            world, network, name, port, make_node, terms, number, world.random(f"replica/{name}")
        )
        self.group = group
        self.folders = 0
        self.member = ""
        self._new_folder()
        self.backlog = Backlog(self)
        self.backup: Backup | None = None
        self._prepared: Node | None = None  # of the passive run
        self.epoch = 0  # of the node
        self.confirmed: ConfirmedBlocks | None = None
        self.files: ConfirmedFiles
        self.guard: SimGuard | None = None
        self.gives_back = False  # this process goes on as a follower when it has handed over
        self.is_doomed = False  # the process that was started has ended, and the guard ends this one soon

    def _new_folder(self) -> None:
        """Gives the machine an empty data folder, which is a new member."""
        self.folders += 1
        self.node_id = self.group.node_id if self.primary or self.group.coordinated else None
        self.member = f"{self.name}-{self.draw.randbytes(4).hex()}"
        where = f"{self.name}/{self.folders}"
        self.disk = SimDisk(self._disk_later, self.world.random(f"disk/{where}"), self.disk)
        self.large = SimLargeFiles(self._disk_later, self.world.random(f"large/{where}"))
        self.settings = b""
        self.large.attach(HostLarge(self))

    # -- runs -----------------------------------------------------------------------------------
    def start(self) -> None:
        """Starts the process, which is passive at first."""
        self.life += 1
        self.up = True
        self.guard = self.group.guards.begin(self.name)
        self._follow()

    def _follow(self) -> None:
        """Begins a passive run on the disk."""
        self.world.note(f"{self.name} follows as {self.member}, life {self.life}")
        self.clock.node.begin()
        self.backup = self._make_backup()
        self.disk.attach(self._committed, self._disk_failed, self._no_room)
        self.backup.recover(self.now())
        self.backup.start(self.now())
        self.flush_later()

    def _make_backup(self) -> Backup:
        config = BackupConfig(
            member=self.member,
            node_id=self.node_id,
            group=self.group.name,
            candidates=self.group.candidates(self),
            terms=self.terms,
            primary=self.primary,
            journal=self.group.journal,
            key=KEY,
            connectors=self.group.announced(self),
            patience_ns=PATIENCE_NS,
            asynchronous=self.group.is_far(self),
        )
        ports = BackupPorts(
            wire=SimWire(self),
            disk=self.disk,
            large=self.large,
            timers=SimTimers(self),
            links=SimLinks(self),
            ids=SimIds(self),
            trace=self.trace,
            register=SimRegisterPort(self.group.register, self),
            settings=self._store_settings,
            listen=self.backlog.listen,
            guard=None if self.group.is_far(self) else SimGuardWatch(self.group.guards, self),
            prepare=self._prepare,
        )
        return Backup(config, ports)

    def _store_settings(self, data: bytes) -> bool:
        changed = data != self.settings
        self.settings = data
        return changed

    def _prepare(self) -> Recovery:
        """Makes the node that may take over."""
        ports = self.ports()
        seat = ports.replication = ReplicationSeat(
            SimRegisterPort(self.group.register, self), self.group.name, KEY, self.terms.length_ns + SECOND,
            self.group.min_in_sync, steady_ns=self.clock.monotonic,
        )  # fmt: skip
        self._prepared = self.make_node(ports)
        return seat.prepare(Recovery(self._prepared.broker, SETTLED_AT))

    def _serve(self, follower: Follower, last: LastInstant, replay: CopyReplay | None) -> None:
        """Begins an active run: the follower has taken over."""
        self.begin_service(last)
        self.clock.stood_still = False
        known = follower.view.known
        assert known is not None
        self.epoch = known.epoch
        self.lives.begin(self.epoch)
        self.world.note(f"{self.name} serves epoch {self.epoch}")
        self._serve_node(follower, replay)

    def _end_run(self, then: Callable[[], None]) -> None:
        """Ends the run in good order: its connections end, and its files are written. Then the next one begins."""
        self.node = None
        self.backup = None
        self.confirmed = None
        self.outbox = []
        self.life += 1
        life = self.life
        self.network.leave(self, self.backlog.calls)

        def begin() -> None:
            if self.life != life:
                return
            if self.disk.busy() or self.large.busy() or self.paused:
                self.world.at(LOOK_NS, begin)
            else:
                self.life += 1
                then()

        self.world.at(0, begin)

    def _serve_node(self, follower: Follower, replay: CopyReplay | None) -> None:
        """Runs the node of the epoch."""
        if replay is None:
            self._prepare()
        self.node, self._prepared = self._prepared, None
        assert self.node is not None
        seat = self.node.ports.replication
        assert seat is not None
        seat.take(follower, None if self.guard is None else self.guard.begin(self.epoch), replay)
        self.disk.attach(self._committed, self._disk_failed, self._no_room)
        self.node.recover(self.now())
        if replay is not None:
            check_replay_of(self, self.name, self.disk, self.large)
        journal, replicator = self.node.journal, self.node.replicator
        assert replicator is not None
        self.group.check_journal(self, journal.durable)
        self.confirmed = ConfirmedBlocks(self.group, self, journal)
        self.files = ConfirmedFiles(self.group, self, journal, replicator.changes)
        self.node.start(self.now())
        for call in self.on_started:
            call(self)
        self.backlog.accept()
        self.flush_later()

    def current(self) -> bool:
        value = self.group.register.value()
        return value is not None and (value.epoch, value.active) == (self.epoch, self.member)

    # -- inputs ---------------------------------------------------------------------------------
    def on_accepted(self, conn: int, port: int) -> None:
        if self.node is None:
            self.backlog.add(conn, lambda: self.on_accepted(conn, port))
        else:
            super().on_accepted(conn, port)

    def on_bytes(self, conn: int, data: bytes) -> None:
        if not self.backlog.takes(conn, lambda: self.on_bytes(conn, data)):
            super().on_bytes(conn, data)

    def on_closed(self, conn: int, why: str) -> None:
        if not self.backlog.takes(conn, lambda: self.on_closed(conn, why)):
            super().on_closed(conn, why)

    def give(self, call: Callable[[Node], None]) -> None:
        """Gives an input to the run: a passive one has the same inputs."""
        run = self.node if self.node is not None else cast("Node | None", self.backup)
        if run is None or self.holds_back(lambda: self.give(call)):
            return
        call(run)
        self.flush_later()

    def register_answer(self, version: int, value: Register | None) -> None:
        self.give(lambda node: node.on_register(self.now(), version, value))

    def register_uncertain(self, why: str) -> None:
        self.give(lambda node: node.on_register_uncertain(self.now(), why))

    def process_ended(self, epoch: int) -> None:
        """Gives the passive run the proof that the process which was active in `epoch` has ended."""
        if self.backup is not None and not self.holds_back(lambda: self.process_ended(epoch)):
            self.backup.on_process_ended(self.now(), epoch)
            self.flush_later()

    def turn(self) -> None:
        if self.backup is not None:
            self._turn_backup(self.backup)
        elif self.node is not None:
            self._turn_node(self.node)

    def _turn_backup(self, backup: Backup) -> None:
        backup.flush(self.now())
        if backup.follower is not None:
            self.group.check_journal(self, backup.follower.last)
        outcome = backup.outcome
        if backup.failed is not None:
            self._fail(backup.failed)
        elif isinstance(outcome, TakenOver):
            last = outcome.last
            if last is not NO_INSTANT:  # it was heard by the clock of the passive run
                last = replace(last, seen_ns=last.seen_ns - self.now() + self.clock.monotonic())
            self._end_run(lambda: self._serve(outcome.follower, last, outcome.replay))
            self.backlog.listen()
        elif isinstance(outcome, NotTakenOver):
            self.backlog.clear()  # the ports are bound anew
            self._end_run(self._follow)
        elif isinstance(outcome, MemberIdentity):
            self.node_id = outcome.node_id
            self._end_run(self._follow)
        elif outcome is not None or backup.damage:
            raise AssertionError(f"no disk here damages a journal: {backup.damage}")

    def _turn_node(self, node: Node) -> None:
        if self.clock.stood_still and not self.current():
            # It does not know yet that its lease is over: what it delivers now does not count. A client may have
            # connected while it stood still, when its successor had served for a while.
            self.network.outdate(self, self.succeeded_at)
        node.flush(self.now())
        if self.confirmed is not None:
            self.confirmed.check()
            self.files.check()
        self.lives.note(self.epoch, node)
        if not self.clock.stood_still:  # a successor that heard of it before counts on
            self.lives.show(self.life, self.now(), self.world.now)
        self.send_out()
        replicator = node.replicator
        assert replicator is not None
        if replicator.has_wanted():
            self.give_back()
        if replicator.handed_over and self.gives_back:
            self._end_run(self._follow)
        elif replicator.handed_over:
            self._end_process()
        elif replicator.deposed:
            self.world.note(f"{self.name} serves no more: {replicator.deposed}")
            self.losses += 1
            self._end_run(self._follow)
        elif node.failed is not None:
            self._fail(node.failed)

    # -- the end --------------------------------------------------------------------------------
    def _fail(self, why: str) -> None:
        """Ends the process after an error of its disk; it runs again soon."""
        if not self.disk.failed:
            raise Violation(f"{self.name} gave up on a disk that works: {why}")
        self.world.note(f"{self.name} gives up: {why}")
        self.crash()
        self._again_later()

    def crash(self) -> None:
        """Ends the process at once, or its whole machine: what was not synced is lost."""
        self.end_at_once(self.draw.random() < PROVEN_SHARE)

    def end_at_once(self, proven: bool) -> None:
        """Ends the process. `proven`: its machine runs on, and the guard has seen it."""
        super().crash()
        self._forget_process(proven)

    def lose_started(self, after_ns: int) -> None:
        """Ends the process that was started, not the broker: the guard ends that `after_ns` later, and has seen it."""
        guard = self.guard
        self.is_doomed = True
        self.world.note(f"{self.name} has lost the process that was started")
        self.world.at(after_ns, lambda: self.end_at_once(True) if self.up and self.guard is guard else None)

    def lose_disk(self) -> None:
        """Ends the machine at once, and loses every file."""
        if self.up:
            self.end_at_once(False)
        self.world.note(f"{self.name} has lost its disk")
        self._new_folder()

    def stop(self) -> None:
        """Stops in good order: an active node hands over first."""
        if self.node is None or self.node.failed is not None or self.paused:
            self.crash()
            self._again_later()
            return
        self.world.note(f"{self.name} stops")
        self._stop_node(self.node)

    def give_back(self) -> None:
        """Hands the service over, and goes on as a follower in the same process."""
        if self.node is not None and self.node.failed is None and not self.paused and not self.node.stopped:
            self.world.note(f"{self.name} gives back")
            self.gives_back = True
            self._stop_node(self.node)

    def _stop_node(self, node: Node) -> None:
        """Stops the node in good order: everything is confirmed, then another machine gets the service."""
        self.stops.append(self.world.now)
        node.stop(self.now())
        self.flush_later()
        self._hand_over(self.life, self.world.now + HAND_OVER_NS)

    def _hand_over(self, life: int, until: int) -> None:
        """Hands over once everything is confirmed. After a time the process ends without a successor."""
        if self.life != life or self.node is None:
            return
        if self.world.now >= until:
            self._end_process()
            return

        def hand_over(node: Node) -> None:
            assert node.replicator is not None
            node.replicator.hand_over(self.now())

        self.give(hand_over)
        self.world.at(LOOK_NS, lambda: self._hand_over(life, until))

    def _end_process(self) -> None:
        """Ends the process in good order: what it has sent arrives, what it has written stays."""
        self.world.note(f"{self.name} has stopped")
        self.ending()
        self.freeze()
        self.network.leave(self)
        self.disk.crash()
        self.large.crash()
        self._forget_process(True)
        self._again_later()

    def _forget_process(self, proven: bool) -> None:
        """Forgets what the process had in memory. `proven`: its guard lives, and says so."""
        if self.guard is not None:
            if proven:
                self.guard.prove()
            else:
                self.guard.lose()
            self.guard = None
        self.gives_back = False
        self.is_doomed = False
        self.backup = None
        self.confirmed = None
        self.backlog.clear()
        self.forget()
