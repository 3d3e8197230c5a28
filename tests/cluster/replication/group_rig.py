"""The active node of a group in a small world: virtual time, disks, a register, and followers that a test scripts."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.replication.active.replicator import Replicator
from atalanta.cluster.replication.active.seat import ReplicationSeat
from atalanta.cluster.replication.member_codec import (
    FromActive,
    FromFollower,
    Guard,
    JournalBlock,
    MemberFramer,
    StoredFiles,
    decode_from_active,
    encode_message,
)
from atalanta.cluster.replication.member_handshake import FollowerHandshake, Hello, Welcome
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.register import CompareAndSet, Register, RegisterView, found
from atalanta.ha.register_port import RegisterPort
from atalanta.ha.replication.copy_replay import CopyReplay
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import Activate, Answer, Heartbeat, Offer
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
from atalanta.store.segment import SEGMENT_VERSION
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.packets.session import CreateSessionV2
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import AcceptorConfig
from tests.kernel.broker_rig import START, CountingIds, RecordingTrace
from tests.store.journal_rig import Collector, Schedule
from tests.wire.core.server.server_rig import queue_request, text_message

MS = 1_000_000
LEASE = LeaseTerms(2_000 * MS)
DROP_AFTER_NS = 3_000 * MS
KEY = b"key"
JOURNAL_ID = bytes(range(16))
GROUP = "g"


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

    def login(self) -> int:
        """Returns the connection of a new client with a session."""
        conn = self.conn()
        self.input("on_accept", conn, "door", "somewhere")
        self.input("on_data", conn, HANDSHAKE)
        session = CreateSessionV2(name="s", session_channel=10, version=136, user="u", password="p")
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


class Scripted:
    """A follower without a disk: it keeps what it gets, and answers what a test says."""

    def __init__(
        self,
        active: Member,
        name: str = "b",
        key: bytes = KEY,
        group: str = GROUP,
        connectors: dict[str, TransportConfiguration] | None = None,
    ) -> None:
        self.active = active
        self.name = name
        self.framer = MemberFramer()
        self.messages: list[FromActive] = []
        self.welcome: Welcome | None = None
        self.answers = True  # heartbeats and blocks at once
        self.last = 0
        self.durable = 0
        self.epoch = 0
        self.conn = active.conn()
        hello = Hello(name, JOURNAL_ID, group, SEGMENT_VERSION, connectors or {})
        self.handshake = FollowerHandshake(key, name.encode().ljust(32), hello)
        self.files = StoredFiles((), ())
        active.input("on_accept", self.conn, "door", f"machine-{name}")
        active.wire.arrivals[self.conn] = self.arrive
        active.input("on_data", self.conn, self.handshake.begin())

    def arrive(self, data: bytes) -> None:
        """Takes bytes of the active node a moment after they were sent."""
        self.active.schedule.at(MS, lambda: self._take(data))

    def _take(self, data: bytes) -> None:
        if self.welcome is None:
            output = self.handshake.feed(data)
            if output:
                self.active.input("on_data", self.conn, output)
            self.welcome = self.handshake.welcome
            if self.welcome is None:
                return
            data = self.handshake.rest()
        self.framer.feed(data)
        while frame := self.framer.next():
            message = decode_from_active(frame)
            self.messages.append(message)
            self._on_message(message)

    def _on_message(self, message: FromActive) -> None:
        if isinstance(message, Offer):
            self.epoch = message.epoch
            if self.answers:
                self.say(self.files)
                self.answer()
        elif isinstance(message, JournalBlock):
            self.last = message.block.last
            if self.answers:
                self.durable = self.last
                self.answer()
        elif isinstance(message, Heartbeat) and self.answers:
            self.answer(message.sent_ns)

    def say(self, message: FromFollower) -> None:
        if self.conn not in self.active.wire.closed:
            self.active.input("on_data", self.conn, encode_message(message))

    def answer(self, sent_ns: int = -1) -> None:
        self.say(Answer(self.epoch, self.last, self.durable, sent_ns))

    def leave(self) -> None:
        """Breaks the connection."""
        self.active.wire.arrivals.pop(self.conn, None)
        self.active.input("on_closed", self.conn, "broken")

    def of(self, kind: type) -> list[FromActive]:
        return [message for message in self.messages if isinstance(message, kind)]


class Group:
    """A manager and the first member, which serves."""

    def __init__(
        self,
        journal: JournalConfig | None = None,
        broker: Callable[[], BrokerConfig] = BrokerConfig,
        settings: Callable[[], AddressSettingsRepository] = AddressSettingsRepository,
        min_in_sync: int = 1,
    ) -> None:
        self.schedule = Schedule()
        self.manager = MemoryRegister(self.schedule)
        self.active = Member(self.schedule, self.manager, "a", journal, broker, settings)
        self.active.min_in_sync = min_in_sync
        self.active.start()

    def run(self, ms: int) -> None:
        """Lets time pass."""
        end = self.schedule.now + ms * MS
        while self.schedule.due() <= end:
            self.schedule.step()
        self.schedule.now = end

    def until(self, true: Callable[[], bool], ms: int = 10_000) -> None:
        """Lets time pass until something is true."""
        end = self.schedule.now + ms * MS
        while not true():
            assert self.schedule.due() <= end, "it did not come true"
            self.schedule.step()

    def in_sync(self) -> list[str]:
        assert self.manager.value is not None
        return list(self.manager.value.in_sync)


def publish(active: Member, conn: int, text: str, correlation: int, queue: str = "orders") -> None:
    message = text_message(queue, text)
    active.send(conn, SendMessage(message, requires_response=True, correlation=correlation, sender_id=0))


def client(group: Group, queue: str = "orders") -> int:
    """A client of the active node, whose queue exists."""
    conn = group.active.login()
    group.active.send(conn, queue_request(queue))
    group.run(100)
    group.active.received(conn)
    return conn


def joined(group: Group, name: str = "b") -> Scripted:
    """A follower that is in sync."""
    follower = Scripted(group.active, name)
    group.until(lambda: name in group.in_sync())
    group.run(10)
    return follower


def begin_large(active: Member, conn: int, durable: bool = True, queue: str = "orders") -> None:
    """Begins a large message."""
    active.send(conn, SendLargeMessage(text_message(queue, "", durable, None)))


def send_piece(active: Member, conn: int, piece: bytes, size: int, correlation: int = 0) -> None:
    """Sends a piece of a large message of `size` bytes; with a correlation the last one."""
    active.send(
        conn,
        SendContinuation(
            piece, continues=not correlation, body_size=size, requires_response=correlation != 0,
            correlation=correlation or -1, sender_id=0,
        ),
    )  # fmt: skip
