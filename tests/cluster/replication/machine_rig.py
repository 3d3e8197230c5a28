"""The machines of a group in one small world: each runs a Backup or a Node, over a network that breaks."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.replication.passive.active_search import Candidate
from atalanta.cluster.replication.passive.backup import Backup
from atalanta.cluster.replication.passive.backup_config import (
    BackupConfig,
    BackupPorts,
    Damaged,
    MemberIdentity,
    NotTakenOver,
    TakenOver,
)
from atalanta.ha.guard_port import GuardPort
from atalanta.ha.replication.follower import Follower
from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.ports import Ids, Links
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.node import Node
from atalanta.store.config import JournalConfig
from atalanta.store.pages import page_number
from atalanta.store.segment import SEGMENT_HEAD_SIZE
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.replication.member_rig import (
    GROUP,
    JOURNAL_ID,
    KEY,
    LEASE,
    MS,
    GatedWire,
    GroupTime,
    Member,
    MemberRegister,
    MemberTimers,
)
from tests.kernel.broker_rig import RecordingTrace


class RandomIds(Ids):
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def uuid(self) -> bytes:
        return self.draw.randbytes(16)

    def secret(self, size: int) -> bytes:
        return self.draw.randbytes(size)


class Pipe:
    """A connection between two machines: bytes arrive in order, after a time; its end is seen on both sides."""

    def __init__(self, group: Machines, ends: list[tuple[Machine, int, int]]) -> None:
        self.group = group
        self.ends = ends  # machine, its life, its number of the connection
        self.at = [0, 0]
        self.open = True
        for side, (machine, _, conn) in enumerate(ends):
            machine.wire.arrivals[conn] = lambda data, to=1 - side: self._carry(to, data)  # type: ignore[misc]
            machine.wire.ends[conn] = self.close
            machine.pipes.append(self)

    def _later(self, side: int, name: str, *arguments: object) -> None:
        machine, life, conn = self.ends[side]
        schedule = self.group.schedule
        delay = self.group.draw.randint(50_000, 2 * MS)
        self.at[side] = max(self.at[side], schedule.now + delay)

        def arrive() -> None:
            if machine.life != life or not machine.up:
                return
            if name == "on_data" and conn in machine.wire.paused:
                machine.wire.paused[conn] += [bytes(each) for each in arguments if isinstance(each, bytes)]
            else:
                machine.input(name, conn, *arguments)

        schedule.at(self.at[side] - schedule.now, arrive)

    def _carry(self, side: int, data: bytes) -> None:
        if self.open and not self.group.silent:
            self._later(side, "on_data", self.group.on_bytes(self.ends[1 - side][0], data))

    def close(self, why: str = "closed") -> None:
        """Ends the connection."""
        if self.open:
            self.open = False
            for side in (0, 1):
                self._later(side, "on_closed", why)


class MachineLinks(Links):
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.life = machine.life

    def dial(self, key: str, host: str, port: int) -> None:
        schedule = self.machine.schedule
        schedule.at(self.machine.group.draw.randint(50_000, 5 * MS), lambda: self._dial(key, host))

    def _dial(self, key: str, host: str) -> None:
        here = self.machine
        if here.life != self.life or not here.up:
            return
        there = here.group.machines[host]
        if not there.serving() or here.group.silent:
            here.input("on_dial_failed", key, "connection refused")
            return
        ends = [(here, here.life, here.conn()), (there, there.life, there.conn())]
        Pipe(here.group, ends)
        there.input("on_accept", ends[1][2], "door", here.name)
        here.input("on_dialed", ends[0][2], key)


class Machine(Member):
    """A machine: its process follows, takes over, is deposed, crashes and starts again."""

    def __init__(self, group: Machines, name: str, primary: bool) -> None:
        super().__init__(
            group.schedule, group.manager, name, group.journal, BrokerConfig, group.settings
        )
        self.group = group
        self.member_name = name  # changes when its journal is cut because of damage
        self.primary = primary
        self.asynchronous = False
        self.terms = LEASE
        self.granted_ns = 0  # on its disk
        self.up = False
        self.backup: Backup | None = None
        self.pipes: list[Pipe] = []
        self.why: list[str] = []  # of the ends of its runs
        self.past: list[tuple[str, dict[str, object]]] = []  # the events of earlier runs
        self.outcomes: list[MemberIdentity | TakenOver | Damaged | NotTakenOver] = []
        self.listens = False  # clients may wait at its ports, or are served
        self.repair = False
        self.learned = False  # an active node has told the node id
        self.guard: GuardPort | None = None
        self.prepares = True  # its journal is replayed while it is passive
        self.prepared: Node | None = None
        self.node_id: bytes | None = JOURNAL_ID
        self.key = KEY
        self.group_name = GROUP
        self.disk = type(self.disk)(group.schedule.at, random.Random(f"{name} {group.seed}"))
        self.large = type(self.large)(group.schedule.at, random.Random(f"{name}/{group.seed}"))

    @property
    def inputs(self) -> NodeInputs:
        return self.node if self.backup is None else self.backup

    def serving(self) -> bool:
        return self.up and self.backup is None and self.node.failed is None and not self.replicator.handed_over

    def may_serve(self) -> bool:
        """Returns whether output to clients would leave now."""
        return self.serving() and self.node.may_send(self.now)

    def follow(self) -> None:
        """Starts the process as a passive member."""
        self.life += 1
        self.up = True
        self.listens = False
        self._keep_events()
        self.trace = RecordingTrace()
        self.wire = GatedWire(self)
        others = [Candidate(name, name, 1) for name in self.group.machines if name != self.name]
        connector = {"c": TransportConfiguration.tcp(self.name, self.name, 1)}
        config = BackupConfig(
            self.member_name, self.node_id, self.group_name, others, self.terms, self.primary,
            None if self.node_id is None else self.journal, self.key, connector, f"/data/{self.name}",
            repair=self.repair,
            asynchronous=self.asynchronous,
            granted_ns=self.granted_ns,
            learned=self.learned,
        )  # fmt: skip
        ports = BackupPorts(
            self.wire, self.disk, self.large, MemberTimers(self), MachineLinks(self), RandomIds(self.group.draw),
            self.trace, MemberRegister(self.manager, self), self._store_settings, self.guard, self._listen,
            self._prepare,
            self._keep_lease,
        )  # fmt: skip
        self.repair = False
        self.backup = Backup(config, ports)
        self._attach()
        self.backup.recover(self.now)
        self.backup.start(self.now)
        self.end_turn()

    def _keep_lease(self, length_ns: int) -> None:
        self.granted_ns = length_ns

    def _store_settings(self, data: bytes) -> bool:
        changed = data != self.stored_settings
        self.stored_settings = data
        return changed

    def _listen(self) -> None:
        assert not self.listens, "the doors open once in a run"
        self.listens = True

    def _prepare(self) -> Recovery | None:
        """Makes the node that may take over. Its wire is that of the passive run."""
        if not self.prepares:
            return None
        self.prepared = self.make_node()
        seat = self.prepared.ports.replication
        assert seat is not None
        return seat.prepare(Recovery(self.prepared.broker, 2))

    def _keep_events(self) -> None:
        if hasattr(self, "trace"):
            self.past += self.trace.events

    def happened(self, name: str) -> list[dict[str, object]]:
        """Returns the events of that name, of all runs."""
        return [fields for each, fields in [*self.past, *self.trace.events] if each == name]

    def start(self, follower: Follower | None = None) -> None:
        self.backup = None
        if self.replay is None:
            self._keep_events()
        super().start(follower)

    def _take_over(self, outcome: TakenOver) -> None:
        if self.prepared is not None and outcome.replay is not None:
            self.node = self.prepared
            self.replay = outcome.replay
        self.start(outcome.follower)

    def crash(self) -> None:
        self.up = False
        super().crash()
        self.break_pipes()

    def break_pipes(self) -> None:
        """Breaks the connections between this machine and the others."""
        for pipe in self.pipes:
            pipe.close("broken")
        self.pipes.clear()

    def end_turn(self) -> None:
        super().end_turn()
        servers = [each.name for each in self.group.machines.values() if each.may_serve()]
        assert self.group.forced or len(servers) <= 1, f"{servers} serve at the same time"
        backup = self.backup
        if not self.up:
            return
        if backup is not None:
            if backup.failed is not None:
                self.why.append(backup.failed)
                self.crash()
            elif backup.outcome is not None:
                self._on_outcome(backup.outcome)
        elif self.node.failed is not None or self.replicator.handed_over:
            self.why.append(self.replicator.deposed or self.node.failed or "handed over")
            if self.disk.failed:
                self.schedule.at(5 * MS, self._repair)  # what was written leaves before
            else:
                self._next(self.follow)

    def _on_outcome(self, outcome: MemberIdentity | TakenOver | Damaged | NotTakenOver) -> None:
        self.outcomes.append(outcome)
        self.listens = isinstance(outcome, TakenOver)
        if isinstance(outcome, Damaged):
            self.member_name += "'"
            self.repair = True
            self._next(self.follow)
            return
        if isinstance(outcome, TakenOver):
            self._next(lambda: self._take_over(outcome))
        else:
            if isinstance(outcome, MemberIdentity):
                self.node_id = outcome.node_id
            self._next(self.follow)

    def _repair(self) -> None:
        """The process ends, the disk works again, and the process starts."""
        if self.up and self.disk.failed:
            self.crash()
            self.follow()

    def _next(self, begin: Callable[[], None]) -> None:
        """Ends this run, and begins the next one when the disk has nothing to do."""
        self.life += 1
        life = self.life

        def look() -> None:
            if self.life != life:
                return
            if self.disk.busy() or self.large.busy():
                self.schedule.at(MS, look)
                return
            self.break_pipes()
            begin()

        # What was written leaves before the connections end.
        self.up = False
        self.schedule.at(5 * MS, self._restart(life, look))

    def _restart(self, life: int, look: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            if self.life == life:
                self.up = True
                look()

        return call


class Machines(GroupTime):
    """A group of machines; the first one is the primary."""

    def __init__(
        self,
        seed: int = 1,
        names: str = "ab",
        journal: JournalConfig | None = None,
        settings: Callable[[], AddressSettingsRepository] = AddressSettingsRepository,
    ) -> None:
        super().__init__()
        self.seed = seed
        self.draw = random.Random(seed)
        self.journal = journal or JournalConfig(JOURNAL_ID)
        self.settings = settings
        self.silent = False  # the network carries nothing
        self.forced = False  # an operator has promoted a member though another one serves
        self.on_bytes: Callable[[Machine, bytes], bytes] = lambda sender, data: data
        self.machines: dict[str, Machine] = {}
        for name in names:
            self.machines[name] = Machine(self, name, name == names[0])

    def follow(self) -> None:
        for machine in self.machines.values():
            machine.follow()

    def active(self) -> Machine | None:
        """The machine that may send."""
        for machine in self.machines.values():
            if machine.may_serve():
                return machine
        return None

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def settle(self, ms: int = 200) -> None:
        """Lets time pass, until nothing is being written."""
        self.run(ms)
        self.until(lambda: not any(each.disk.busy() or each.large.busy() for each in self.machines.values()))


def different(active: Machine, follower: Machine) -> list[str]:
    """Returns the names of the active node's files that the follower has not got.

    Segments count up to their end, large bodies when they have ended.
    """
    replicator = active.node.replicator
    assert replicator is not None
    ended = {file: True for file, body in replicator.changes.bodies.items() if body.ended}
    ends = {segment.name: segment.end for segment in active.node.journal.segments if segment.end > SEGMENT_HEAD_SIZE}
    mine = {name: bytes(active.disk.files[name][:end]) for name, end in ends.items()}
    other = {name: bytes(follower.disk.files.get(name, b"")[:end]) for name, end in ends.items()}
    for machine, found in ((active, mine), (follower, other)):
        found |= {name: bytes(data) for name, data in machine.disk.files.items() if page_number(name)}
        found |= {str(file): bytes(data) for file, data in machine.large.contents.items() if file in ended}
    return [name for name in mine if other.get(name) != mine[name]]
