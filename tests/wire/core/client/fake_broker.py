"""A little broker for client tests: queues in memory, one session's worth of CORE, no I/O.

`FakeBroker` is what survives connections; each `FakeConnection` takes the client's bytes and
collects the answers in `out`. Switches make it hold back confirmations or credits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from atalanta.message.message import Message
from atalanta.wire.core import packet_types
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    DisconnectV3,
    ExceptionResponse,
    NullResponse,
    Ping,
)
from atalanta.wire.core.packets.consumer import (
    Acknowledge,
    ConsumerClose,
    CreateConsumer,
    FlowToken,
    ForceConsumerDelivery,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.message import (
    ReceiveMessage,
    SendContinuation,
    SendLargeMessage,
    SendMessage,
)
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.query import (
    BindingQuery,
    BindingQueryResponseV5,
    QueueQuery,
    QueueQueryResponseV3,
)
from atalanta.wire.core.packets.queue import CreateAddress, CreateQueueV2, DeleteQueue
from atalanta.wire.core.packets.session import (
    CreateSession,
    CreateSessionResponse,
    SessionClose,
    SessionStart,
    SessionStop,
)
from atalanta.wire.core.packets.topology import (
    ClusterTopologyV3,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from atalanta.wire.core.packets.transaction import Commit, Rollback
from atalanta.wire.core.transport import TransportConfiguration

PASSWORD = "secret"
# The first versions whose brokers can read these.
SINCE = {
    packet_types.CREATESESSION_V2: 131,
    packet_types.CREATE_PRODUCER: 134,
    packet_types.REMOVE_PRODUCER: 134,
}


@dataclass
class FakeBroker:
    """Everything a node would have on disk, and the switches."""

    queues: dict[str, deque[Message]] = field(default_factory=dict)
    duplicate_ids: set[bytes] = field(default_factory=set)
    messages: int = 0
    confirm: bool = True  # answer sends
    grant: bool = True  # answer requests for credits
    refuse_sends: int = 0  # exception code for sends, 0 none
    refuse_sessions: int = 0  # and for sessions
    host: str = "127.0.0.1"
    port: int = 61616
    backup_port: int = 0  # of the node's backup, as the topology names it; 0 none
    event_id: int = 1
    node_id: str = "node-1"
    members: dict[str, int] = field(default_factory=dict)  # others that the topology names: node id -> port
    version: int = 136  # of the protocol
    connections: list[FakeConnection] = field(default_factory=list)

    def accept(self) -> FakeConnection:
        connection = FakeConnection(self)
        self.connections.append(connection)
        return connection

    def publish(self, message: Message) -> None:
        duplicate_id = message.duplicate_id
        if duplicate_id is not None:
            if duplicate_id in self.duplicate_ids:
                return
            self.duplicate_ids.add(duplicate_id)
        queue = self.queues.get(message.address)
        if queue is not None:
            self.messages += 1
            message.id = self.messages
            queue.append(message)

    def dispatch(self) -> None:
        for connection in self.connections:
            if not connection.gone:
                connection.deliver()


@dataclass
class FakeConsumer:
    """A consumer as the broker sees it."""

    channel: int
    packet: CreateConsumer
    credits: int = 0
    unacknowledged: dict[int, Message] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)
    browsed: int = 0


class FakeConnection:
    """One TCP connection: `feed` in, `out` out, `seen` every packet with its channel."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.out: list[bytes] = []
        self.seen: list[tuple[int, Packet]] = []
        self.frames: list[bytes] = []
        self.consumers: dict[tuple[int, int], FakeConsumer] = {}
        self.sessions: dict[int, CreateSession] = {}
        self.started: set[int] = set()
        self.transactions: dict[int, list[Message]] = {}
        self.held: list[tuple[int, Packet]] = []
        self.gone = False
        self.version = broker.version
        self._framer = Framer(True)
        self._large: dict[int, tuple[Message, list[bytes]]] = {}

    def packets(self, kind: type[Packet]) -> list[Packet]:
        return [packet for _, packet in self.seen if isinstance(packet, kind)]

    def send(self, channel: int, packet: Packet) -> None:
        self.out.append(codec.encode(packet, channel, self.version))

    def close(self) -> None:
        """The transport is gone: what was not acknowledged goes back to the front."""
        if self.gone:
            return
        self.gone = True
        for key in list(self.consumers):
            self._remove_consumer(key)

    def feed(self, data: bytes) -> None:
        for frame in self._framer.feed(data):
            since = SINCE.get(frame.type, 0)
            assert self.version >= since, f"packet type {frame.type} at a broker of version {self.version}"
            packet = codec.decode_frame(frame, self.version)
            self.seen.append((frame.channel, packet))
            self.frames.append(frame.data[frame.start - 13 : frame.end])
            if frame.channel < 10:
                self._control(frame.channel, packet)
            else:
                self._session(frame.channel, packet)
        self.broker.dispatch()

    def _control(self, channel: int, packet: Packet) -> None:
        if isinstance(packet, Ping):
            self.send(0, packet)
        elif isinstance(packet, SubscribeTopologyV2):
            broker = self.broker
            here = TransportConfiguration.tcp("here", broker.host, broker.port)
            backup = None
            if broker.backup_port:
                backup = TransportConfiguration.tcp("backup", broker.host, broker.backup_port)
            kind = ClusterTopologyV4 if self.version >= 131 else ClusterTopologyV3
            member = kind(exit=False, node_id=broker.node_id, event_id=broker.event_id, primary=here, backup=backup)
            member.last = not broker.members
            member.server_version = self.version
            self.send(0, member)
            for node_id, port in broker.members.items():
                primary = TransportConfiguration.tcp(node_id, broker.host, port)
                other = kind(exit=False, node_id=node_id, event_id=1, primary=primary, backup=None)
                other.last = node_id == list(broker.members)[-1]
                other.server_version = self.version
                self.send(0, other)
        elif isinstance(packet, CreateSession):
            if packet.version > self.version:
                self.send(1, ExceptionResponse(108, "versions incompatible"))
                return
            if self.broker.refuse_sessions:
                self.send(1, ExceptionResponse(self.broker.refuse_sessions, "not now"))
                return
            if packet.password != PASSWORD:
                self.send(1, ExceptionResponse(105, "wrong password"))
                return
            self.sessions[packet.session_channel] = packet
            self.send(1, CreateSessionResponse(self.version))

    def _session(self, channel: int, packet: Packet) -> None:
        if isinstance(packet, SendMessage):
            self._sent(channel, packet.message, packet.requires_response, packet.correlation)
        elif isinstance(packet, SendLargeMessage):
            self._large[channel] = (packet.message, [])
        elif isinstance(packet, SendContinuation):
            message, chunks = self._large[channel]
            chunks.append(packet.body)
            if not packet.continues:
                message.body = b"".join(chunks)
                assert packet.body_size == len(message.body)
                self._sent(channel, message, packet.requires_response, packet.correlation)
        elif isinstance(packet, RequestProducerCredits):
            self._answer(channel, ProducerCredits(packet.credits, packet.address), "grant")
        elif isinstance(packet, SessionStart):
            self.started.add(channel)
        elif isinstance(packet, SessionStop):
            self.started.discard(channel)
            self.send(channel, NullResponse())
        elif isinstance(packet, SessionClose):
            for key in [key for key in self.consumers if key[0] == channel]:
                self._remove_consumer(key)
            self.send(channel, NullResponse())
        elif isinstance(packet, (Commit, Rollback)):
            self._end_transaction(channel, packet)
        elif not self._queue_packet(channel, packet):
            self._consumer_packet(channel, packet)

    def _answer(self, channel: int, packet: Packet, switch: str) -> None:
        if getattr(self.broker, switch):
            self.send(channel, packet)
        else:
            self.held.append((channel, packet))

    def release(self) -> None:
        """Send what was held back."""
        held, self.held = self.held, []
        for channel, packet in held:
            self.send(channel, packet)

    def _sent(self, channel: int, message: Message, wanted: bool, correlation: int) -> None:
        if self.broker.refuse_sends:
            code = self.broker.refuse_sends
            self.send(channel, ExceptionResponse(code, "refused", correlation))
            return
        if self.sessions[channel].auto_commit_sends:
            self.broker.publish(message)
        else:
            self.transactions.setdefault(channel, []).append(message)
        if wanted:
            self._answer(channel, NullResponse(correlation), "confirm")

    def _end_transaction(self, channel: int, packet: Commit | Rollback) -> None:
        messages = self.transactions.pop(channel, [])
        if isinstance(packet, Commit):
            for message in messages:
                self.broker.publish(message)
            for key, consumer in self.consumers.items():
                if key[0] == channel:
                    for message_id in consumer.acknowledged:
                        consumer.unacknowledged.pop(message_id, None)
                    consumer.acknowledged.clear()
            self._answer(channel, NullResponse(packet.correlation), "confirm")
            return
        for key, consumer in self.consumers.items():
            if key[0] == channel:
                self._give_back(consumer)
        self.send(channel, NullResponse())

    def _queue_packet(self, channel: int, packet: Packet) -> bool:
        queues = self.broker.queues
        if isinstance(packet, QueueQuery):
            self.send(channel, self.query(packet.queue))
        elif isinstance(packet, BindingQuery):
            exists = packet.address in queues
            names = [packet.address] if exists else []
            self.send(
                channel,
                BindingQueryResponseV5(
                    exists=exists,
                    queue_names=names,
                    auto_create_queues=True,
                    auto_create_addresses=True,
                    supports_multicast=True,
                    supports_anycast=True,
                ),
            )
        elif isinstance(packet, CreateQueueV2):
            if packet.queue in queues:
                self.send(channel, ExceptionResponse(101, f"queue {packet.queue} exists"))
            else:
                queues[packet.queue] = deque()
                self.send(channel, NullResponse())
        elif isinstance(packet, DeleteQueue):
            if queues.pop(packet.queue, None) is None:
                self.send(channel, ExceptionResponse(100, f"no queue {packet.queue}"))
            else:
                self.send(channel, NullResponse())
        elif isinstance(packet, CreateAddress):
            self.send(channel, NullResponse())
        else:
            return False
        return True

    def query(self, name: str) -> QueueQueryResponseV3:
        """The answer to a question about the queue."""
        queue = self.broker.queues.get(name)
        if queue is None:
            return QueueQueryResponseV3(exists=False, name=name, auto_create_queues=True)
        return QueueQueryResponseV3(
            exists=True,
            durable=True,
            routing_type=1,
            message_count=len(queue),
            address=name,
            name=name,
            auto_create_queues=True,
        )

    def _consumer_packet(self, channel: int, packet: Packet) -> None:
        if isinstance(packet, CreateConsumer):
            if packet.queue not in self.broker.queues:
                self.send(channel, ExceptionResponse(100, f"no queue {packet.queue}"))
                return
            self.consumers[channel, packet.consumer_id] = FakeConsumer(channel, packet)
            self.send(channel, self.query(packet.queue))
        elif isinstance(packet, FlowToken):
            consumer = self.consumers[channel, packet.consumer_id]
            if packet.credits <= 0:
                consumer.credits = 1 << 40 if packet.credits else 0
            consumer.credits += packet.credits
        elif isinstance(packet, ConsumerClose):
            self._remove_consumer((channel, packet.consumer_id))
            self.send(channel, NullResponse())
        elif isinstance(packet, ForceConsumerDelivery):
            self.deliver()
            marker = Message.create("", b"")
            marker.put_property("_hornetq.forced.delivery.seq", packet.sequence)
            self.send(channel, ReceiveMessage(marker, packet.consumer_id, 0))
        elif isinstance(packet, (Acknowledge, IndividualAcknowledge)):
            self._acknowledge(channel, packet)

    def _acknowledge(self, channel: int, packet: Acknowledge | IndividualAcknowledge) -> None:
        consumer = self.consumers[channel, packet.consumer_id]
        done = [packet.message_id]
        if isinstance(packet, Acknowledge):
            through = list(consumer.unacknowledged)
            done = through[: through.index(packet.message_id) + 1]
        if not self.sessions[channel].auto_commit_acks:
            consumer.acknowledged += done  # until the commit
            done = []
        for message_id in done:
            del consumer.unacknowledged[message_id]
        if packet.requires_response:
            self.send(channel, NullResponse())

    def _remove_consumer(self, key: tuple[int, int]) -> None:
        self._give_back(self.consumers.pop(key))

    def _give_back(self, consumer: FakeConsumer) -> None:
        queue = self.broker.queues.get(consumer.packet.queue)
        if queue is not None:
            queue.extendleft(reversed(consumer.unacknowledged.values()))
        consumer.unacknowledged.clear()
        consumer.acknowledged.clear()

    def deliver(self) -> None:
        for consumer in self.consumers.values():
            queue = self.broker.queues.get(consumer.packet.queue)
            if queue is None or consumer.channel not in self.started:
                continue
            while consumer.credits > 0:
                if consumer.packet.browse_only:
                    if consumer.browsed >= len(queue):
                        break
                    message = queue[consumer.browsed]
                    consumer.browsed += 1
                elif queue:
                    message = queue.popleft()
                    consumer.unacknowledged[int(message.id)] = message
                else:
                    break
                packet = ReceiveMessage(message, consumer.packet.consumer_id, 1)
                frame = codec.encode(packet, consumer.channel, self.version)
                consumer.credits -= len(frame)
                self.out.append(frame)

    def good_bye(self) -> None:
        """The broker stops in good order."""
        self.send(0, DisconnectV3(node_id="node-1"))


__all__ = ["PASSWORD", "FakeBroker", "FakeConnection"]
