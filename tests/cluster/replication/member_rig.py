"""A member of a group in a small world: virtual time, disks and a register. It serves."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.replication.active.replicator import Replicator
from atalanta.cluster.replication.active.seat import ReplicationSeat
from atalanta.cluster.replication.member_codec import (
    Guard,
)
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.register import CompareAndSet, Register, RegisterView, found
from atalanta.ha.register_port import RegisterPort
from atalanta.ha.replication.copy_replay import CopyReplay
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import Activate
from atalanta.kernel.ports import Links, Timers, Wire
from atalanta.kernel.security.security import PERMISSIONS, Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import LargeInputs, SimLargeFiles
from atalanta.store.config import JournalConfig
from atalanta.store.recovery import read_back
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.session import CreateSessionV2
from atalanta.wire.endpoint import AcceptorConfig
from tests.kernel.broker_rig import START, CountingIds, RecordingTrace
from tests.store.journal_rig import Collector, Schedule

MS = 1_000_000
LEASE = LeaseTerms(2_000 * MS)
DROP_AFTER_NS = 3_000 * MS
KEY = b"key"
JOURNAL_ID = bytes(range(16))
GROUP = "g"
SESSION = CreateSessionV2(name="s", session_channel=10, version=136, user="u", password="p")


class MemoryRegister:
    """A manager. `reachable` False: each request has an uncertain answer; `writes_lost` of the next writes have, too,
    though they succeed."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.version = 0
        self.value: Register | None = None
        self.reachable = True
        self.writes_lost = 0
        self.delay_ns = 2 * MS

    def set(self, request: CompareAndSet) -> bool:
        if request.version != self.version:
            return False
        self.version += 1
        self.value = request.value
        return True


class MemberRegister(RegisterPort):
    """The register as one process reaches it; `inputs` gets the answers."""

    def __init__(self, manager: MemoryRegister, member: Member) -> None:
        self.manager = manager
        self.member = member
        self.life = 0  # of the process at the request

    def read(self) -> None:
        self.life = self.member.life
        self.manager.schedule.at(self.manager.delay_ns, self._read)

    def compare_and_set(self, request: CompareAndSet) -> None:
        self.life = self.member.life
        self.manager.schedule.at(self.manager.delay_ns, lambda: self._set(request))

    def _read(self) -> None:
        manager = self.manager
        if self.member.life != self.life:
            return
        if manager.reachable:
            self.member.input("on_register", manager.version, manager.value)
        else:
            self.member.input("on_register_uncertain", "the manager is away")

    def _set(self, request: CompareAndSet) -> None:
        manager = self.manager
        done = manager.reachable and manager.set(request)
        if self.member.life != self.life:
            return
        if done and manager.writes_lost == 0:
            self.member.input("on_register", manager.version, manager.value)
        else:
            manager.writes_lost = max(0, manager.writes_lost - 1)
            self.member.input("on_register_uncertain", "no answer")


class MemberTimers(Timers):
    def __init__(self, member: Member) -> None:
        self.member = member
        self.due: dict[str, int] = {}

    def set(self, key: str, at_ns: int) -> None:
        self.due[key] = at_ns
        life = self.member.life

        def fire() -> None:
            if self.due.get(key) == at_ns and self.member.life == life:
                del self.due[key]
                self.member.input("on_timer", key)

        self.member.schedule.at(max(0, at_ns - self.member.now), fire)

    def cancel(self, key: str) -> None:
        self.due.pop(key, None)


class GatedWire(Wire):
    """What was written to each connection; that of clients only while the node may send."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.held: dict[int, list[bytes]] = {}
        self.written: dict[int, list[bytes]] = {}
        self.closed: dict[int, str] = {}
        self.exempted: dict[int, bool] = {}
        self.arrivals: dict[int, Callable[[bytes], None]] = {}
        self.ends: dict[int, Callable[[str], None]] = {}
        self.paused: dict[int, list[bytes]] = {}  # what has come meanwhile
        self.resumed: list[int] = []

    def exempt(self, conn: int) -> None:
        self.exempted[conn] = True

    def write(self, conn: int, data: bytes) -> None:
        if conn not in self.closed:
            self.held.setdefault(conn, []).append(bytes(data))

    def close(self, conn: int, why: str) -> None:
        if conn not in self.closed:
            self.closed[conn] = why

    def pause(self, conn: int) -> None:
        self.paused[conn] = []

    def resume(self, conn: int) -> None:
        self.resumed.append(conn)
        data = b"".join(self.paused.pop(conn))
        life = self.member.life

        def read() -> None:
            if self.member.life == life:
                self.member.input("on_data", conn, data)

        self.member.schedule.at(0, read)

    def release(self, may_send: bool) -> None:
        """Sends what may leave; the shell calls it at the end of a batch of inputs."""
        for conn in list(self.held):
            if may_send or conn in self.exempted:
                data = self.held.pop(conn)
                self.written.setdefault(conn, []).extend(data)
                arrival = self.arrivals.get(conn)
                if arrival is not None:
                    for each in data:
                        arrival(each)
        for conn in [each for each in self.ends if each in self.closed and each not in self.held]:
            self.ends.pop(conn)(self.closed[conn])


class MemberLarge(LargeInputs):
    def __init__(self, member: Member) -> None:
        self.member = member
        self.life = member.life

    def _input(self, name: str, *arguments: object) -> None:
        if self.member.life == self.life:
            self.member.input(name, *arguments)

    def large_written(self, file: int, size: int) -> None:
        self._input("on_large_written", file, size)

    def large_synced(self, file: int) -> None:
        self._input("on_large_synced", file)

    def large_failed(self, file: int, why: str) -> None:
        self._input("on_large_failed", file, why)

    def large_read(self, token: int, data: bytes) -> None:
        self._input("on_large_read", token, data)


class Member:
    """A process with its folder, which serves; `start` takes over by the register, `crash` is a power cut."""

    def __init__(
        self,
        schedule: Schedule,
        manager: MemoryRegister,
        name: str = "a",
        journal: JournalConfig | None = None,
        broker: Callable[[], BrokerConfig] = BrokerConfig,
        settings: Callable[[], AddressSettingsRepository] = AddressSettingsRepository,
    ) -> None:
        self.schedule = schedule
        self.manager = manager
        self.name = name
        self.journal = journal or JournalConfig(JOURNAL_ID)
        self.broker_config = broker
        self.settings = settings
        self.life = 0
        self.disk = SimDisk(schedule.at, random.Random(1))
        self.large = SimLargeFiles(schedule.at, random.Random(2))
        self.stored_settings = b""
        self.min_in_sync = 1
        self.drop_after_ns = DROP_AFTER_NS
        self.restores_register = False  # as the active node
        self.node: Node
        self.replay: CopyReplay | None = None  # of a node that was prepared
        self.wire: GatedWire
        self.trace: RecordingTrace
        self._next_conn = 1

    @property
    def inputs(self) -> NodeInputs:
        """What runs."""
        return self.node

    @property
    def replicator(self) -> Replicator:
        assert self.node.replicator is not None
        return self.node.replicator

    def hand_over(self) -> bool:
        """Lets the active node give its service away, if it can now."""
        done = self.replicator.hand_over(self.now)
        self.end_turn()
        return done

    @property
    def now(self) -> int:
        return START + self.schedule.now

    # --- life ---------------------------------------------------------------------------------------------

    def follower(self) -> Follower:
        """Returns the member as it takes over at once, as the only one in sync."""
        state = read_back(self.disk, self.journal, Collector())
        epochs = tuple(state.report.epochs)
        view = RegisterView(self.name.encode().ljust(6) + self.life.to_bytes(2, "big"))
        manager = self.manager
        if manager.value is None:
            assert manager.set(CompareAndSet(0, found(self.name, 0, view.token())))
        assert manager.value is not None
        view.on_read(manager.version, manager.value)
        follower = Follower(self.name, view, LEASE, self.now, epochs, state.report.last)
        [request] = follower.take_over(self.now)
        assert isinstance(request, CompareAndSet)
        assert manager.set(request)
        assert follower.on_register(self.now, manager.version, manager.value) == [
            Activate(manager.value.epoch)
        ]
        return follower

    def process_guard(self, follower: Follower) -> Guard | None:
        """The guard of the process, as its followers are told; None without one."""
        return None

    def make_node(self) -> Node:
        """A new node, which has not taken over yet."""
        security = Security()
        security.add_user("u", "p", ["all"])
        security.add_rule("#", {name: ["all"] for name in PERMISSIONS})
        seat = ReplicationSeat(
            MemberRegister(self.manager, self), GROUP, KEY, self.drop_after_ns, self.min_in_sync,
            settings=lambda: self.stored_settings, restores_register=self.restores_register,
        )  # fmt: skip
        config = NodeConfig(
            JOURNAL_ID.hex(), self.broker_config(), self.settings(), security, self.journal,
            [AcceptorConfig("door", "0.0.0.0", 1)],
        )  # fmt: skip
        ports = Ports(
            self.wire, self.disk, MemberTimers(self), Links(), CountingIds(), self.trace,
            large=self.large, replication=seat,
        )  # fmt: skip
        return Node(config, ports)

    def start(self, follower: Follower | None = None) -> None:
        self.life += 1
        follower = follower or self.follower()
        replay, self.replay = self.replay, None
        if replay is None:
            self.wire = GatedWire(self)
            self.trace = RecordingTrace()
            self.node = self.make_node()
        seat = self.node.ports.replication
        assert seat is not None
        seat.take(follower, self.process_guard(follower), replay)
        self._attach()
        self.node.recover(self.now)
        self.node.start(self.now)
        self.end_turn()

    def _attach(self) -> None:
        """Connects the disks to this life."""
        life = self.life

        def committed(token: int) -> None:
            if self.life == life:
                self.input("on_committed", token)

        def failed(why: str) -> None:
            if self.life == life:
                self.input("on_disk_failed", why)

        self.disk.attach(committed, failed)
        self.large.attach(MemberLarge(self))

    def crash(self) -> None:
        """Cuts the power: nothing of this life goes on."""
        self.life += 1
        self.disk.crash()
        self.large.crash()

    def input(self, name: str, *arguments: object) -> object:
        """Makes one input and ends its turn."""
        answer: object = getattr(self.inputs, name)(self.now, *arguments)
        self.end_turn()
        return answer

    def end_turn(self) -> None:
        self.inputs.flush(self.now)
        self.wire.release(self.inputs.may_send(self.now))

    def events(self, name: str) -> list[dict[str, object]]:
        return [fields for each, fields in self.trace.events if each == name]

    # --- clients --------------------------------------------------------------------------------------------

    def conn(self) -> int:
        self._next_conn += 1
        return self._next_conn

    def login(self, session: CreateSessionV2 = SESSION) -> int:
        """Returns the connection of a new client with a session."""
        conn = self.conn()
        self.input("on_accept", conn, "door", "somewhere")
        self.input("on_data", conn, HANDSHAKE)
        self.send(conn, session, 1)
        self.received(conn)
        return conn

    def send(self, conn: int, packet: Packet, channel: int = 10) -> None:
        self.input("on_data", conn, codec.encode(packet, channel, 136))

    def received(self, conn: int) -> list[Packet]:
        data = b"".join(self.wire.written.pop(conn, []))
        return [codec.decode_frame(frame, 136) for frame in Framer(False).feed(data)]

    def confirmed(self, conn: int) -> list[int]:
        return [
            packet.correlation
            for packet in self.received(conn)
            if isinstance(packet, NullResponse) and packet.correlation != -1
        ]

    def texts(self, queue: str) -> list[str]:
        return [str(reference.message.text()) for reference in self.node.broker.queues[queue].live()]


class GroupTime:
    """The time of a group, and its manager."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.manager = MemoryRegister(self.schedule)

    def run(self, ms: int) -> None:
        """Lets time pass."""
        end = self.schedule.now + ms * MS
        while self.schedule.due() <= end:
            self.schedule.step()
        self.schedule.now = end

    def until(self, true: Callable[[], bool], ms: int = 30_000) -> None:
        """Lets time pass until something is true."""
        end = self.schedule.now + ms * MS
        while not true():
            assert self.schedule.due() <= end, "it did not come true"
            self.schedule.step()

    def in_sync(self) -> list[str]:
        return [] if self.manager.value is None else list(self.manager.value.in_sync)
