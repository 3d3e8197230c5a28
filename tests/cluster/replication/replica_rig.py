"""Members of a group as whole processes in a small world: each is passive at first, and serves when it has taken over."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.cluster.replication.active_search import Candidate
from atalanta.cluster.replication.backup import Backup
from atalanta.cluster.replication.backup_config import BackupConfig, BackupPorts, Identity, TakenOver
from atalanta.ha.replication import Follower
from atalanta.kernel.ports import Ids, Links
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.node import Node
from atalanta.store.config import JournalConfig
from atalanta.store.pages import page_number
from atalanta.store.segment import segment_number
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.replication.group_rig import (
    GROUP,
    JOURNAL_ID,
    KEY,
    LEASE,
    MS,
    GatedWire,
    Group,
    Member,
    MemberLarge,
    MemberRegister,
    MemberTimers,
    MemoryRegister,
)
from tests.kernel.broker_rig import RecordingTrace
from tests.store.journal_rig import Schedule


class DrawnIds(Ids):
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def uuid(self) -> bytes:
        return self.draw.randbytes(16)

    def secret(self, size: int) -> bytes:
        return self.draw.randbytes(size)


class PassiveWire(GatedWire):
    """The wire of a passive member."""

    def __init__(self, member: Member) -> None:
        super().__init__(member)
        self.paused: list[int] = []
        self.resumed: list[int] = []

    def pause(self, conn: int) -> None:
        self.paused.append(conn)

    def resume(self, conn: int) -> None:
        self.resumed.append(conn)


class ReplicaLinks(Links):
    """Dials the other replicas by their names."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.life = replica.life

    def dial_within(self, key: str, host: str, port: int, timeout_ms: int) -> None:
        replica = self.replica
        replica.schedule.at(MS, lambda: replica.world.connect(replica, self.life, key, host))


class Replica(Member):
    """A process: passive, active, or down. `node` is the Backup or the Node."""

    def __init__(self, world: ReplicaWorld, name: str, primary: bool) -> None:
        super().__init__(world.schedule, world.manager, name, world.journal, world.broker, world.address_settings)
        self.world = world
        self.primary = primary
        self.draw = random.Random(f"{world.seed}/{name}")
        self.disk._random = random.Random(f"{world.seed}/{name}/disk")  # each has a disk of its own
        self.group = GROUP
        self.key = KEY
        self.node_id: bytes | None = JOURNAL_ID
        self.candidates: list[str] = []
        self.backup: Backup | None = None
        self.up = False
        self.outcomes: list[object] = []
        self.failure: str = ""
        self.past: list[tuple[str, dict[str, object]]] = []  # events of earlier runs
        self.peers: dict[int, tuple[Replica, int]] = {}  # the other end of each connection
        self.serving = False

    # --- runs ---------------------------------------------------------------------------------------------

    def run_passive(self) -> None:
        """Begins a passive run: a start of the process, or what follows an active run."""
        self.life += 1
        self.up = True
        self.serving = False
        self._keep_events()
        self.wire = wire = PassiveWire(self)
        self.trace = RecordingTrace()
        config = BackupConfig(
            member=self.name,
            node_id=self.node_id,
            group=self.group,
            candidates=[Candidate(name, name, 1) for name in self.candidates],
            terms=LEASE,
            primary=self.primary,
            journal=None if self.node_id is None else self.journal,
            key=self.key,
            connectors={"cluster": TransportConfiguration.tcp("own", self.name, 1)},
            folder=f"/data/{self.name}",
        )
        ports = BackupPorts(
            wire, self.disk, self.large, MemberTimers(self), ReplicaLinks(self), DrawnIds(self.draw), self.trace,
            MemberRegister(self.manager, self), self._store_settings,
        )  # fmt: skip
        self.backup = Backup(config, ports)
        self.node = self.backup  # type: ignore[assignment]  # it has the same inputs
        self._attach()
        self.backup.recover(self.now)
        self.backup.start(self.now)
        self.end_turn()

    def _keep_events(self) -> None:
        if hasattr(self, "trace"):
            self.past += self.trace.events

    def _store_settings(self, data: bytes) -> None:
        self.stored_settings = data

    def _attach(self) -> None:
        life = self.life

        def give(name: str) -> Callable[..., None]:
            return lambda *arguments: self.input(name, *arguments) if self.life == life else None  # type: ignore[return-value]

        self.disk.attach(
            give("on_committed"), give("on_disk_failed"), lambda name: give("on_room")(False, name)
        )
        self.large.attach(MemberLarge(self))

    def start(self, follower: Follower | None = None) -> None:
        assert follower is not None
        self._keep_events()
        self.backup = None
        super().start(follower)
        self.serving = True

    def _begin_next(self, begin: Callable[[], None]) -> None:
        """Begins the next run when nothing is written any more."""
        self.leave("the run ends")
        self.life += 1
        self.serving = False
        life = self.life

        def wait() -> None:
            if self.life != life:
                return
            if self.disk.busy() or self.large.busy():
                self.schedule.at(MS, wait)
            else:
                begin()

        self.schedule.at(0, wait)

    def input(self, name: str, *arguments: object) -> object:
        return super().input(name, *arguments) if self.up else None

    def end_turn(self) -> None:
        super().end_turn()
        backup, node = self.backup, self.node
        if backup is not None:
            if backup.failed is not None:
                self.failure = backup.failed
                self.crash()
            elif backup.outcome is not None:
                self._on_outcome(backup.outcome)
        elif node.deposed:
            self.backup = None
            self._begin_next(self.run_passive)
        elif node.failed is not None:
            self.failure = node.failed
            self.crash()

    def _on_outcome(self, outcome: Identity | TakenOver) -> None:
        self.outcomes.append(outcome)
        if isinstance(outcome, TakenOver):
            self._begin_next(lambda: self.start(outcome.follower))
        else:
            self.node_id = outcome.node_id
            self.leave("the run ends")
            self.up = False

    # --- ends ---------------------------------------------------------------------------------------------

    def leave(self, why: str) -> None:
        """Ends all connections, as their other ends will learn."""
        for conn in list(self.peers):
            self.world.cut(self, conn, why)

    def crash(self) -> None:
        """Cuts the power."""
        self.leave("reset")
        self.up = False
        self.serving = False
        super().crash()

    def stop(self) -> None:
        """Stops an active node in good order: it hands over."""
        assert isinstance(self.node, Node)
        self.input("stop")
        self.world.until(lambda: bool(self.input("hand_over")), 2_000)
        self.world.run(5)
        self.crash()

    # --- what a test looks at -----------------------------------------------------------------------------

    def happened(self, name: str) -> list[dict[str, object]]:
        return [fields for each, fields in [*self.past, *self.trace.events] if each == name]

    def files(self) -> dict[str, bytes]:
        """The segments up to the end of their blocks, the page files, the large bodies."""
        found = {name: bytes(data) for name, data in self.disk.files.items() if page_number(name)}
        found |= {str(file): bytes(data) for file, data in self.large.contents.items()}
        for name, data in self.disk.files.items():
            if segment_number(name):
                found[name] = bytes(data).rstrip(b"\0")
        return found


class ReplicaWorld(Group):
    """Replicas "a" (the primary), "b", … none of which runs yet."""

    def __init__(
        self,
        count: int = 2,
        seed: int = 1,
        journal: JournalConfig | None = None,
        broker: Callable[[], BrokerConfig] = BrokerConfig,
        settings: Callable[[], AddressSettingsRepository] = AddressSettingsRepository,
    ) -> None:
        self.schedule = Schedule()
        self.manager = MemoryRegister(self.schedule)
        self.seed = seed
        self.journal = journal or JournalConfig(JOURNAL_ID)
        self.broker = broker
        self.address_settings = settings
        self.replicas = {name: Replica(self, name, name == "a") for name in "abc"[:count]}
        for replica in self.replicas.values():
            replica.candidates = [name for name in self.replicas if name != replica.name]
        self.on_bytes: Callable[[Replica, bytes], bytes] = lambda sender, data: data

    def __getitem__(self, name: str) -> Replica:
        return self.replicas[name]

    @property
    def active(self) -> Replica:  # type: ignore[override]
        [found] = [replica for replica in self.replicas.values() if replica.serving]
        return found

    def serves(self, name: str) -> bool:
        """Tells whether the replica is the active node, and may send to clients."""
        replica = self.replicas[name]
        return replica.serving and replica.node.may_send(replica.now)

    def begin(self) -> None:
        """Starts all replicas, and waits until all are in sync behind "a"."""
        self["a"].run_passive()
        self.until(lambda: self.serves("a"))
        for name, replica in self.replicas.items():
            if name != "a":
                replica.run_passive()
        self.until(lambda: self.in_sync() == list(self.replicas))

    def settle(self, ms: int = 200) -> None:
        """Lets time pass until nothing is being written."""
        self.run(ms)
        self.until(lambda: not any(each.disk.busy() or each.large.busy() for each in self.replicas.values()))

    # --- connections --------------------------------------------------------------------------------------

    def connect(self, dialer: Replica, life: int, key: str, host: str) -> None:
        if dialer.life != life or not dialer.up:
            return
        peer = self.replicas.get(host)
        if peer is None or not peer.serving:
            dialer.input("on_dial_failed", key, "connection refused")
            return
        own, other = dialer.conn(), peer.conn()
        self._join(dialer, own, peer, other)
        self._join(peer, other, dialer, own)
        peer.input("on_accept", other, "door", f"machine-{dialer.name}")
        dialer.input("on_dialed", own, key)

    def _join(self, one: Replica, conn: int, other: Replica, far: int) -> None:
        one.peers[conn] = (other, far)

        def arrive(data: bytes) -> None:
            self.schedule.at(MS, lambda: other.input("on_data", far, self.on_bytes(one, data)) if far in other.peers else None)

        one.wire.arrivals[conn] = arrive
        one.wire.ends[conn] = lambda why: self.cut(one, conn, why)

    def cut(self, one: Replica, conn: int, why: str) -> None:
        """Ends a connection: what was sent before arrives, and both ends learn it."""
        found = one.peers.pop(conn, None)
        if found is None:
            return
        other, far = found

        def end() -> None:
            if other.peers.pop(far, None) is not None:
                other.input("on_closed", far, why)

        self.schedule.at(2 * MS, end)
        life = one.life
        self.schedule.at(0, lambda: one.input("on_closed", conn, why) if one.life == life else None)
