"""A machine of a simulated group: a process with a disk of its own, which follows the active node or is it.

The rules are those of the product: `Backup` while the machine is passive, a `Node` with a `Replicator` while it is
active. This shell does what app/replicated_runs.py does around them: it begins the next run when one has ended, and
lets no output to clients leave while the node may not send. The machine's clock has a rate of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from atalanta.cluster.replication.active_search import Candidate
from atalanta.cluster.replication.backup import Backup
from atalanta.cluster.replication.backup_config import (
    BackupConfig,
    BackupPorts,
    Identity,
    TakenOver,
)
from atalanta.cluster.replication.member_handshake import member_key
from atalanta.cluster.replication.seat import ReplicationSeat
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.register import Register
from atalanta.ha.replication import Follower
from atalanta.kernel.ports import Wire
from atalanta.node.node import Node
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.host import HostLarge, MakeNode, SimIds, SimLinks, SimTimers, SimWire
from atalanta.sim.nodes import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    Shape,
    group_id,
    journal_config,
    machines_of,
)
from atalanta.sim.replicas.checks import ConfirmedBlocks, ConfirmedFiles
from atalanta.sim.replicas.members import GroupMember, Members
from atalanta.sim.replicas.register import SimRegisterPort
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import SimLargeFiles
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import EPOCH, SECOND, World
from atalanta.wire.core.transport import TransportConfiguration

KEY: Final = member_key(CLUSTER_USER, CLUSTER_PASSWORD)
DRIFT_PPM: Final = 50_000
SKEWS_NS: Final = (0, 0, -5 * SECOND, 3 * SECOND)
MILLION: Final = 1_000_000
PATIENCE_NS: Final = 2 * SECOND  # with an active node that reads its journal
LOOK_NS: Final = SECOND // 100
HAND_OVER_NS: Final = 2 * SECOND  # at most, in a stop in good order
RESTART_NS: Final = (SECOND // 100, SECOND)  # until a process that has failed runs again


class GatedWire(SimWire):
    """The wire of a node of a group: output waits while the node may not send, but for its followers."""

    def __init__(self, machine: ReplicaMachine) -> None:
        super().__init__(machine)
        self.machine = machine
        self.network = machine.network
        self.exempted: dict[int, bool] = {}

    def exempt(self, conn: int) -> None:
        self.exempted[conn] = True

    def write(self, conn: int, data: bytes) -> None:
        if conn in self.exempted:
            super().write(conn, data)
        else:
            output = bytes(data)
            self.machine.hold(lambda: self.network.send(conn, output))

    def close(self, conn: int, why: str) -> None:
        if conn in self.exempted:
            super().close(conn, why)
        else:
            self.machine.hold(lambda: self.network.close(conn, why))


class ReplicaMachine(GroupMember):
    """A machine. `node` is None while it is passive or down; `member` is the name of its data folder."""

    paired = True

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        port: int,
        make_node: MakeNode,
        group: Members,
        terms: LeaseTerms,
        primary: bool,
        shape: Shape,
        asynchronous: bool,
    ) -> None:
        super().__init__(world, network, name, name, port, make_node)
        self.group = group
        self.terms = terms
        self.primary = primary
        self.asynchronous = asynchronous
        self.ordered = False  # an operator wants it to serve
        self.shape = shape
        self.draw = world.random(f"replica/{name}")
        self.rate_ppm = MILLION + self.draw.randint(-DRIFT_PPM, DRIFT_PPM)
        self.skew_ns = self.draw.choice(SKEWS_NS)
        self.folders = 0
        self.member = ""
        self._new_folder()
        self.backup: Backup | None = None
        self.epoch = 0  # of the node
        self.confirmed: ConfirmedBlocks | None = None
        self.files: ConfirmedFiles
        self.outbox: list[Callable[[], None]] = []
        self.paused = False
        self.on_died: Callable[[ReplicaMachine], None] = ignore_death
        self.takeovers = 0
        self.losses = 0
        self.handovers = 0
        self._pauses = 0
        self._at_resume: list[Callable[[], None]] = []

    def _new_folder(self) -> None:
        """Gives the machine an empty data folder, which is a new member."""
        self.folders += 1
        known = self.primary or self.group.coordinated
        self.node_id = group_id(self.shape.group) if known else None
        self.settings = b""
        self.member = f"{self.name}-{self.draw.randbytes(4).hex()}"
        slow, longest = self.disk.slow, self.disk.job_max_ns
        where = f"{self.name}/{self.folders}"
        self.disk = SimDisk(self._disk_later, self.world.random(f"disk/{where}"))
        self.disk.slow, self.disk.job_max_ns = slow, longest
        self.large = SimLargeFiles(self._disk_later, self.world.random(f"large/{where}"))
        self.large.attach(HostLarge(self))

    # -- time -----------------------------------------------------------------------------------
    def now(self) -> int:
        return EPOCH + self.skew_ns + (self.world.now - EPOCH) * self.rate_ppm // MILLION

    def world_ns(self, own_ns: int) -> int:
        return -(-own_ns * MILLION // self.rate_ppm)

    # -- runs -----------------------------------------------------------------------------------
    def start(self) -> None:
        """Starts the process, which is passive at first."""
        self.life += 1
        self.up = True
        self._follow()

    def _follow(self) -> None:
        """Begins a passive run on the disk."""
        self.world.note(f"{self.name} follows as {self.member}, life {self.life}")
        self.backup = self._make_backup()
        self.disk.attach(self._committed, self._disk_failed, self._no_room)
        self.backup.recover(self.now())
        self.backup.start(self.now())
        self.flush_later()

    def _make_backup(self) -> Backup:
        names = machines_of(self.shape.group, self.shape)
        own = TransportConfiguration.tcp(self.name, self.address, self.port)
        config = BackupConfig(
            member=self.member,
            node_id=self.node_id,
            group=self.group.name,
            candidates=[Candidate(name, name, self.port, False) for name in names if name != self.name],
            terms=self.terms,
            primary=self.primary,
            journal=journal_config(self.shape.group, self.shape),
            key=KEY,
            connectors={"sim": own},
            patience_ns=PATIENCE_NS,
            asynchronous=self.asynchronous,
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
        )
        return Backup(config, ports)

    def _store_settings(self, data: bytes) -> None:
        self.settings = data

    def _serve(self, follower: Follower, clock_floor_ns: int) -> None:
        """Begins an active run: the follower has taken over."""
        if self.asynchronous and not self.ordered:
            raise Violation(f"{self.name} is asynchronous, and serves without an order")
        self.outbox = []
        self.takeovers += 1
        # At a cold start nobody was heard: then the clocks of the machines were set meanwhile.
        floor_ns = clock_floor_ns or max(each.now() for each in self.group.machines)
        self.skew_ns += max(0, floor_ns + 1 - self.now())
        known = follower.view.known
        assert known is not None
        self.epoch = known.epoch
        for other in self.group.machines:
            if other is not self:
                self.network.outdate(other)
                other.end_order()
        self.world.note(f"{self.name} serves epoch {self.epoch}")
        self._serve_node(follower)

    def _end_run(self, then: Callable[[], None]) -> None:
        """Ends the run in good order: its connections end, and its files are written. Then the next one begins."""
        self.node = None
        self.backup = None
        self.confirmed = None
        self.outbox = []
        self.life += 1
        life = self.life
        self.network.leave(self)

        def begin() -> None:
            if self.life != life:
                return
            if self.disk.busy() or self.large.busy() or self.paused:
                self.world.at(LOOK_NS, begin)
            else:
                self.life += 1
                then()

        self.world.at(0, begin)

    def _serve_node(self, follower: Follower) -> None:
        """Runs the node of the epoch."""
        ports = self.ports()
        ports.replication = ReplicationSeat(
            follower, SimRegisterPort(self.group.register, self), self.group.name, KEY, self.terms.length_ns + SECOND
        )
        self.node = self.make_node(ports)
        self.disk.attach(self._committed, self._disk_failed, self._no_room)
        self.node.recover(self.now())
        journal, replicator = self.node.journal, self.node.replicator
        assert replicator is not None
        self.group.check_journal(self, journal.durable)
        self.confirmed = ConfirmedBlocks(self.group, self, journal)
        self.files = ConfirmedFiles(self.group, self, journal, replicator.changes)
        for port in self.listeners:
            self.network.listen(self, self.address, port)
        self.node.start(self.now())
        for call in self.on_started:
            call(self)
        self.flush_later()

    def standby(self) -> bool:
        """Returns True if another machine serves."""
        return self.node is None and self.group.serving().node is not None

    def current(self) -> bool:
        value = self.group.register.value()
        return value is not None and (value.epoch, value.active) == (self.epoch, self.member)

    def wire(self) -> Wire:
        return GatedWire(self)

    # -- inputs ---------------------------------------------------------------------------------
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

    def _flush_now(self, life: int) -> None:
        if self.life == life and self.holds_back(lambda: self._flush_now(life)):
            return
        self._flush_due = False
        if self.life != life:
            return
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
            self._end_run(lambda: self._serve(outcome.follower, outcome.clock_floor_ns))
        elif isinstance(outcome, Identity):
            self.node_id = outcome.node_id
            self._end_run(self._follow)

    def _turn_node(self, node: Node) -> None:
        node.flush(self.now())
        if self.confirmed is not None:
            self.confirmed.check()
            self.files.check()
        store = node.broker.store
        self.group.count_ids(self.epoch, store.next_message_id)
        self.send_out()
        if node.replicator is not None and node.replicator.has_wanted() and not node.broker.stopping:
            self.stop()
        elif node.handed_over:
            self._end_process()
        elif node.deposed:
            self.world.note(f"{self.name} serves no more: {node.deposed}")
            self.losses += 1
            self._end_run(self._follow)
        elif node.failed is not None:
            self._fail(node.failed)

    def hold(self, call: Callable[[], None]) -> None:
        """Holds output to clients until `send_out`."""
        self.outbox.append(call)

    def send_out(self) -> None:
        """Sends what the node has written to clients, if it may."""
        if self.outbox and self.may_send():
            self.group.check_alone(self)
            outbox, self.outbox = self.outbox, []
            for call in outbox:
                call()

    def may_send(self) -> bool:
        """Tells whether output to clients may leave now."""
        return self.node is not None and self.node.failed is None and self.node.may_send(self.now())

    # -- the end --------------------------------------------------------------------------------
    def _fail(self, why: str) -> None:
        """Ends the process after an error of its disk; it runs again soon."""
        if not self.disk.failed:
            raise Violation(f"{self.name} gave up on a disk that works: {why}")
        self.world.note(f"{self.name} gives up: {why}")
        self.crash()
        self._again_later()

    def _again_later(self) -> None:
        life = self.life

        def again() -> None:
            if self.life == life and not self.up:
                self.start()

        self.world.at(self.draw.randint(*RESTART_NS), again)

    def crash(self) -> None:
        """Ends the process and its machine at once: what was not synced is lost."""
        super().crash()
        self._forget()

    def lose_disk(self) -> None:
        """Ends the process at once, and loses every file."""
        if self.up:
            self.crash()
        self.world.note(f"{self.name} has lost its disk")
        self._new_folder()

    def stop(self) -> None:
        """Stops in good order: an active node hands over first."""
        if self.node is None or self.node.failed is not None or self.paused:
            self.crash()
            self.on_died(self)
            return
        self.world.note(f"{self.name} stops")
        self.stops.append(self.world.now)
        self.node.stop(self.now())
        self.flush_later()
        self._hand_over(self.life, self.world.now + HAND_OVER_NS)

    def order(self) -> None:
        """Gives a passive member an operator's order to serve, by which nothing is lost."""
        backup = self.backup
        if backup is not None and not self.paused:
            self.world.note(f"{self.name} is promoted")
            self.ordered = True
            backup.promote(self.now(), lossy=False)
            self.flush_later()

    def end_order(self) -> None:
        self.ordered = False

    def _hand_over(self, life: int, until: int) -> None:
        """Hands over once everything is confirmed. Then, or after a time, the process ends."""
        if self.life != life or self.node is None:
            return
        if self.world.now < until:
            self.give(lambda node: self._try_to_hand_over(node))
            self.world.at(LOOK_NS, lambda: self._hand_over(life, until))
        else:
            self._end_process()

    def _try_to_hand_over(self, node: Node) -> None:
        if node.hand_over(self.now()):
            self.handovers += 1

    def _end_process(self) -> None:
        """Ends the process in good order: what it has sent arrives, what it has written stays."""
        self.world.note(f"{self.name} has stopped")
        self.ending()
        self.freeze()
        self.network.leave(self)
        self.disk.crash()
        self.large.crash()
        self._forget()
        self.on_died(self)

    def _forget(self) -> None:
        """Forgets what the process had in memory."""
        self.backup = None
        self.confirmed = None
        self.outbox = []
        self._at_resume = []
        self._flush_due = False
        self.resume()

    # -- pauses ---------------------------------------------------------------------------------
    def pause(self, length_ns: int) -> None:
        """Stops the process for a time. Its clock runs on, and writes in progress end."""
        if self.paused or not self.up:
            return
        self.world.note(f"{self.name} is paused for {length_ns} ns")
        self.paused = True
        self.network.stall(self.name)
        self._pauses += 1
        number = self._pauses
        self.world.at(length_ns, lambda: self.resume() if self._pauses == number else None)

    def resume(self) -> None:
        """Lets the process handle everything that has come meanwhile."""
        if not self.paused:
            return
        self.paused = False
        self.network.read_again(self.name)
        waiting, self._at_resume = self._at_resume, []
        for call in waiting:
            call()

    def holds_back(self, call: Callable[[], None]) -> bool:
        if self.paused:
            self._at_resume.append(call)
        return self.paused


def ignore_death(machine: ReplicaMachine) -> None:
    """Does nothing when a machine has stopped."""
