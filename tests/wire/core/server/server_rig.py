"""Clients of a server without sockets: frames in, frames out, a journal that is durable when told to."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.ports import BrokerPorts, Passwords, Process, Wire
from atalanta.kernel.security.password import StoredPassword
from atalanta.kernel.security.security import PERMISSIONS, Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.management.management import ManagementService
from atalanta.management.resources.registry import ResourceRegistry
from atalanta.management.status import NodeStatus
from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.world.large_files import LargeInputs, SimLargeFiles
from atalanta.wire.connection import ClientConnection, TransportConnection
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2, SessionStart
from atalanta.wire.core.server.connection import CoreConnection
from atalanta.wire.core.server.protocol import CoreProtocol
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.protocol import Peer
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.server import WireServer
from atalanta.wire.sniffer import Sniffer
from tests.kernel.broker_rig import Bench, notifications_of

VERSION = 136
FORCED = "_hornetq.forced.delivery.seq"
P = TypeVar("P", bound=Packet)


class RecordingWire(Wire):
    """Records what was written to each connection, and why some were closed."""

    def __init__(self) -> None:
        self.written: dict[int, list[bytes]] = {}
        self.closed: dict[int, str] = {}

    def write(self, conn: int, data: bytes) -> None:
        assert conn not in self.closed
        self.written.setdefault(conn, []).append(data)

    def close(self, conn: int, why: str) -> None:
        self.closed[conn] = why


class PatientPasswords(Passwords):
    """Comparisons that are answered when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, StoredPassword, str]] = []

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        self.waiting.append((token, stored, password))


class ServerLarge(LargeInputs):
    """Passes on what the folder of large messages answers, as node.py takes it."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def large_written(self, file: int, size: int) -> None:
        self.server.broker.large.on_written(self.server.now, file, size)
        self.server.resume()

    def large_synced(self, file: int) -> None:
        self.server.broker.large.on_synced(self.server.now, file)
        self.server.resume()

    def large_failed(self, file: int, why: str) -> None:
        self.server.broker.large.on_failed(self.server.now, file, why)
        self.server.resume()

    def large_read(self, token: int, data: bytes) -> None:
        self.server.broker.large.on_read(self.server.now, token, data)


class Server(Bench):
    """One broker with CORE connections, driven as node.py does it.

    Users without `security`: admin (role admin, may everything), guest (role guest, may nothing until a rule says so),
    and the cluster user.
    """

    def __init__(
        self,
        config: BrokerConfig | None = None,
        settings: AddressSettingsRepository | None = None,
        acceptor: AcceptorConfig | None = None,
        security: Security | None = None,
    ) -> None:
        if security is None:
            security = Security(True, "cluster", "secret")
            security.add_user("admin", "admin", ["admin"])
            security.add_user("guest", "guest", ["guest"])
            security.add_rule("#", {permission: ["admin"] for permission in PERMISSIONS})
        self.security = security
        self.acceptor = acceptor
        self.file_jobs: list[Callable[[], None]] = []
        self.large = SimLargeFiles(lambda _, call: self.file_jobs.append(call), random.Random(1))
        self.large.attach(ServerLarge(self))
        super().__init__(config, settings)
        self.wire = RecordingWire()
        self._host()
        self.last_conn = 0

    def _host(self) -> None:
        notifications = notifications_of(self.broker)
        self.broker.add_observer(notifications)
        self.passwords = PatientPasswords()
        self.management = ManagementService(
            self.broker, notifications, ResourceRegistry(), NodeStatus("test"), Process()
        )
        self.connections: dict[int, TransportConnection] = {}
        self.host = WireServer(self.broker, self.wire, self.connections, self.passwords)
        self.protocol = CoreProtocol(self.host)
        self.host.protocols.append(self.protocol)

    def _broker(self) -> Broker:
        ports = BrokerPorts(
            self.journal, self.timers, self.ids, self.trace, large=self.large
        )
        return Broker(self.config, self.settings, self.security, ports, "node-a")

    def connect(self) -> Client:
        """A connection that has said nothing yet."""
        self.last_conn += 1
        self.connections[self.last_conn] = Sniffer(
            self.host, self.last_conn, Peer("1.2.3.4:5"), self.now, self.acceptor
        )
        return Client(self, self.last_conn)

    def connection(self, conn: int) -> ClientConnection:
        """The connection of a client, of whatever protocol."""
        found = self.connections[conn]
        assert isinstance(found, ClientConnection)
        return found

    def core(self, conn: int) -> CoreConnection:
        """The connection of a CORE client."""
        found = self.connections[conn]
        assert isinstance(found, CoreConnection)
        return found

    def cores(self) -> list[CoreConnection]:
        """All CORE connections."""
        return [each for each in self.connections.values() if isinstance(each, CoreConnection)]

    def greeted(self) -> Client:
        """A connection whose handshake has come."""
        client = self.connect()
        client.feed(HANDSHAKE)
        return client

    def login(
        self,
        user: str = "admin",
        password: str | None = None,
        transacted: bool = False,
        window: int = -1,
        pre_acknowledge: bool = False,
        start: bool = True,
    ) -> Client:
        """A connection with one session, on channel 10, started."""
        client = self.greeted()
        answer = client.open_session(
            10, user, password or user, transacted, window, pre_acknowledge, start=start
        )
        assert not isinstance(answer, ExceptionResponse), answer
        return client

    def data(self, conn: int, data: bytes) -> None:
        """Only these two errors may come out of a connection: they close it and nothing else."""
        connection = self.connections.get(conn)
        if connection is None:
            return
        try:
            connection.feed(self.now, data)
        except (ProtocolError, DecodeError) as error:
            self.close(conn, str(error))

    def verify(self, count: int = -1) -> None:
        """Works off the first `count` comparisons of passwords, or all, as node.py does."""
        waiting = self.passwords.waiting
        for _ in range(len(waiting) if count < 0 else count):
            token, stored, password = waiting.pop(0)
            verdict = self.host.logins.finished(self.now, token, stored.verify(password))
            for waiter in verdict.waiters:
                try:
                    waiter.login_done(self.now, verdict.identity)
                except ProtocolError as error:
                    self.close(waiter.conn, str(error))
        self.turn()

    def close(self, conn: int, why: str) -> None:
        connection = self.connections.pop(conn, None)
        if connection is not None:
            connection.flush(self.now)
            connection.closed(self.now, why)
        self.wire.close(conn, why)

    def lost(self, conn: int) -> None:
        """The client's machine is gone."""
        self.connections.pop(conn).lost(self.now, "reset by peer")
        self.turn()

    def turn(self) -> None:
        """The end of a loop turn: deliveries and writes, but nothing becomes durable."""
        self.resume()
        self.broker.flush(self.now)
        if self.host.unsent:
            self.host.settle_unsent(self.now)
        for conn in self.host.take_dirty():
            connection = self.connections.get(conn)
            if connection is not None:
                connection.flush(self.now)
        for conn, why in self.host.take_closing():
            self.close(conn, why)

    def settle(self) -> None:
        super().settle()
        self.turn()
        while self.file_jobs:
            self.work_files(1)
            super().settle()
            self.turn()

    def work_files(self, count: int) -> None:
        """The next jobs of the folder of large messages; each ends a turn, and nothing becomes durable."""
        for _ in range(count):
            if self.file_jobs:
                self.file_jobs.pop(0)()
                self.turn()

    def resume(self) -> None:
        while self.host.resumed:
            for conn in self.host.take_resumed():
                connection = self.connections.get(conn)
                if connection is not None:
                    try:
                        connection.resume(self.now)
                    except (ProtocolError, DecodeError) as error:
                        self.close(conn, str(error))

    def check_alive(self) -> None:
        self.protocol.resumable.check(self.now)
        for conn in list(self.connections):
            if not self.connections[conn].check_alive(self.now):
                self.close(conn, "silent")
        self.turn()

    def restart(self) -> None:
        super().restart()
        self._host()


class Client:
    """One connection, seen from its other end."""

    def __init__(self, server: Server, conn: int) -> None:
        self.server = server
        self.conn = conn
        self.framer = Framer(False)
        self.seen: list[tuple[int, Packet]] = []
        self.correlation = -5
        self.version = VERSION

    # -- raw ------------------------------------------------------------------------------------
    def feed(self, data: bytes) -> None:
        self.server.data(self.conn, data)

    def send(self, packet: Packet, channel: int = 10) -> None:
        self.feed(codec.encode(packet, channel, self.version))

    @property
    def closed(self) -> str | None:
        """Why the server closed this connection, if it did."""
        return self.server.wire.closed.get(self.conn)

    def receive(self) -> list[tuple[int, Packet]]:
        """Returns what came since the last call, as (channel, packet); ends the turn first."""
        self.server.turn()
        data = b"".join(self.server.wire.written.pop(self.conn, []))
        found = [
            (frame.channel, codec.decode(frame.type, frame.payload, self.version))
            for frame in self.framer.feed(data)
        ]
        self.seen.extend(found)
        return found

    def packets(self, kind: type[P]) -> list[P]:
        """Those of one kind among what came since the last call."""
        return [packet for _, packet in self.receive() if isinstance(packet, kind)]

    # -- requests -------------------------------------------------------------------------------
    def call(self, packet: Packet, channel: int = 10) -> Packet:
        """The one answer to a request, which may need the disk."""
        self.receive()
        self.send(packet, channel)
        self.server.settle()
        answers = [
            answer
            for where, answer in self.receive()
            if where == channel and not isinstance(answer, ReceiveMessage)
        ]
        assert len(answers) == 1, f"{packet} was answered by {answers}"
        return answers[0]

    def fails(self, packet: Packet, channel: int = 10) -> tuple[int, str]:
        """(code, text) of the refusal."""
        answer = self.call(packet, channel)
        assert isinstance(answer, ExceptionResponse), f"{packet} was answered by {answer}"
        return answer.code, answer.message or ""

    def succeeds(self, packet: Packet, channel: int = 10) -> None:
        answer = self.call(packet, channel)
        assert isinstance(answer, NullResponse), f"{packet} was answered by {answer}"

    def open_session(
        self,
        channel: int,
        user: str | None,
        password: str | None,
        transacted: bool = False,
        window: int = -1,
        pre_acknowledge: bool = False,
        version: int = VERSION,
        start: bool = True,
        xa: bool = False,
    ) -> Packet:
        """CREATESESSION_V2, and its answer."""
        request = CreateSessionV2(
            name=f"session-{self.conn}-{channel}",
            session_channel=channel,
            version=version,
            user=user,
            password=password,
            xa=xa,
            auto_commit_sends=not transacted,
            auto_commit_acks=not transacted,
            confirmation_window=window,
            pre_acknowledge=pre_acknowledge,
        )
        assert isinstance(request, CreateSession)
        self.receive()
        self.send(request, 1)
        answers = self.receive()
        assert len(answers) == 1
        if start and not isinstance(answers[0][1], ExceptionResponse):
            self.send(SessionStart(), channel)
        return answers[0][1]

    # -- the usual ------------------------------------------------------------------------------
    def create_queue(
        self, name: str, address: str | None = None, routing_type: int = 1, **more: object
    ) -> None:
        self.succeeds(queue_request(name, address, routing_type, **more))

    def publish(
        self,
        address: str,
        body: str = "",
        channel: int = 10,
        wait: bool = True,
        durable: bool = True,
        routing_type: int | None = None,
        **properties: object,
    ) -> int:
        """SESS_SEND; returns its correlation id. Nothing is made durable here."""
        self.correlation -= 1
        message = text_message(address, body, durable, routing_type, **properties)
        self.send(
            SendMessage(message, requires_response=wait, correlation=self.correlation, sender_id=0),
            channel,
        )
        return self.correlation

    def consume(
        self,
        queue: str,
        consumer_id: int = 0,
        selector: str | None = None,
        browse: bool = False,
        credits: int | None = -1,
        channel: int = 10,
        priority: int = 4,
    ) -> Packet:
        """A consumer with credits; its queue's description, or the refusal."""
        request = CreateConsumer(
            consumer_id=consumer_id,
            queue=queue,
            filter=selector,
            browse_only=browse,
            priority=priority,
        )
        answer = self.call(request, channel)
        if credits is not None and not isinstance(answer, ExceptionResponse):
            self.send(FlowToken(consumer_id, credits), channel)
        return answer

    def bodies(self, channel: int = 10) -> list[str]:
        """Texts of the messages that came since the last call (markers of forced deliveries left out)."""
        return [packet.message.text() or "" for packet in self.deliveries(channel)]

    def deliveries(self, channel: int = 10) -> list[ReceiveMessage]:
        return [
            packet
            for where, packet in self.receive()
            if where == channel
            and isinstance(packet, ReceiveMessage)
            and not packet.message.has_property(FORCED)
        ]


def queue_request(
    name: str, address: str | None = None, routing_type: int = 1, **more: object
) -> CreateQueueV2:
    request = CreateQueueV2(address=address or name, queue=name, routing_type=routing_type)
    for key, value in more.items():
        getattr(request, key)
        setattr(request, key, value)
    return request


def text_message(
    address: str,
    body: str = "",
    durable: bool = True,
    routing_type: int | None = None,
    **properties: object,
) -> Message:
    message = Message.create(address, text_body(body), 3, durable, 1_700_000_000_000, 4)
    if routing_type is not None:
        message.put_property("_AMQ_ROUTING_TYPE", Byte(routing_type))
    for name, value in properties.items():
        message.put_property(name, value)  # type: ignore[arg-type]
    return message
