"""OpenWire clients of a server without sockets, beside its CORE clients: commands in, commands out."""

from __future__ import annotations

from typing import TypeVar

from atalanta.wire.openwire.bodies import properties_of, text_content, text_of
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import (
    ConnectionInfo,
    KeepAliveInfo,
    RemoveInfo,
    WireFormatInfo,
)
from atalanta.wire.openwire.commands.consumers import ConsumerControl, ConsumerInfo, MessagePull
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
)
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage, OpenWireMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.commands.transactions import (
    LocalTransactionId,
    TransactionId,
    TransactionInfo,
)
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.encoding.structure import Command, DataStructure
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.server.protocol import OpenWireProtocol
from atalanta.wire.openwire.server.returned_clients import REPEATS_NS
from atalanta.wire.openwire.wire_format import WireFormat
from tests.wire.core.server.server_rig import Server

DELIVERED, POISON, STANDARD, REDELIVERED, INDIVIDUAL, UNMATCHED, EXPIRED = range(7)
BEGIN, PREPARE, COMMIT_ONE_PHASE, COMMIT, ROLLBACK, RECOVER, FORGET, END = range(8)
OPTIONS = WireFormatOptions()
C = TypeVar("C", bound=Command)


class OpenWireServer(Server):
    """A broker with CORE and OpenWire at one acceptor."""

    def _host(self) -> None:
        super()._host()
        self.openwire = OpenWireProtocol(self.host, self.timers)
        self.host.protocols.append(self.openwire)

    def openwire_client(
        self, client_id: str = "c", user: str = "admin", connection_id: str | None = None, **more: bool
    ) -> OpenWireClient:
        """A client that has logged in, with one session. `connection_id`: of a client that was here before."""
        client = OpenWireClient(self, connection_id or f"{client_id}-{self.last_conn}")
        client.greet()
        client.succeeds(client.login_info(client_id, user, user, **more))
        client.succeeds(SessionInfo(SessionId(client.id, 1)))
        if more.get("failover_reconnect"):
            self.start_returned()
        return client

    def start_returned(self) -> None:
        """Clients that have come back get messages from now on."""
        self.now += REPEATS_NS
        self.beat()

    def beat(self) -> None:
        """The timers of the protocol that are due."""
        for key, due in list(self.timers.due.items()):
            if key.startswith("wire.openwire") and due <= self.now:
                self.timers.cancel(key)
                self.openwire.on_timer(self.now, key)
        self.settle()


class OpenWireClient:
    """One OpenWire connection, seen from its other end. `id` is that of the connection."""

    def __init__(self, server: OpenWireServer, client_id: str, options: WireFormatOptions = OPTIONS) -> None:
        self.server = server
        self.id = f"ID:{client_id}"
        self.conn = server.connect().conn
        self.options = options
        self.decoder = FrameDecoder(options)
        self.decoder.open()
        self.commands = 0
        self.messages_sent = 0
        self.consumers = 0
        self.pending: list[DataStructure] = []
        self.acknowledged: dict[ConsumerId, MessageDispatch] = {}
        self.producers: set[ProducerId | None] = set()  # it has registered

    # -- bytes ----------------------------------------------------------------------------------
    def feed(self, data: bytes) -> None:
        self.server.data(self.conn, data)

    @property
    def closed(self) -> str | None:
        """The reason why the server closed this connection, None if it did not."""
        return self.server.wire.closed.get(self.conn)

    def output(self) -> list[DataStructure]:
        """The commands since the last call, when everything is on disk."""
        self.server.settle()
        self.server.turn()
        found = self.pending
        self.pending = []
        for data in self.server.wire.written.pop(self.conn, []):
            self.decoder.feed(data)
            while (command := self.decoder.next()) is not None:
                found.append(command)
        return found

    # -- commands -------------------------------------------------------------------------------
    def greet(self) -> None:
        """The negotiation of the wire format."""
        self.feed(WireFormat(HANDSHAKE).encode(info_of(self.options)))
        info, broker = self.output()
        assert isinstance(info, WireFormatInfo) and isinstance(broker, BrokerInfo), (info, broker)
        self.broker = broker

    def login_info(self, client_id: str | None, user: str | None, password: str | None, **more: bool) -> ConnectionInfo:
        return ConnectionInfo(ConnectionId(self.id), client_id, password, user, **more)  # type: ignore[arg-type]

    def send(self, command: Command, wanted: bool = False) -> int:
        """Sends a command, `wanted`: with an answer; returns its number. A producer of its own is registered before."""
        if isinstance(command, OpenWireMessage):
            producer = command.producer_id
            if producer is not None and producer.connection_id == self.id and producer not in self.producers:
                self.send(ProducerInfo(producer))
        elif isinstance(command, ProducerInfo):
            self.producers.add(command.producer_id)
        self.commands += 1
        command.command_id = self.commands
        command.response_required = wanted
        self.feed(self.decoder.format.encode(command))
        return self.commands

    def call(self, command: Command) -> Response:
        """The answer to a command; what came with it is seen later."""
        number = self.send(command, True)
        if self.server.passwords.waiting:
            self.server.verify()
        found = self.output()
        answers = [each for each in found if isinstance(each, Response)]
        assert [each.correlation_id for each in answers] == [number], (command, found, self.closed)
        self.pending = [each for each in found if each is not answers[0]]
        return answers[0]

    def succeeds(self, command: Command) -> Response:
        answer = self.call(command)
        assert not isinstance(answer, ExceptionResponse), answer
        return answer

    def fails(self, command: Command) -> tuple[str, str]:
        """The class and text of the exception."""
        answer = self.call(command)
        assert isinstance(answer, ExceptionResponse) and answer.exception is not None, answer
        return answer.exception.class_name or "", answer.exception.message or ""

    def of_kind(self, kind: type[C]) -> list[C]:
        """Commands of a kind since the last call; others stay."""
        found = self.output()
        self.pending = [each for each in found if not isinstance(each, kind)]
        return [each for each in found if isinstance(each, kind)]

    # -- sending --------------------------------------------------------------------------------
    def message(
        self,
        text: str,
        destination: ActiveMQDestination | str,
        properties: dict[str, object] | None = None,
        **more: object,
    ) -> ActiveMQTextMessage:
        """A persistent text message; a plain name is a queue."""
        made = ActiveMQTextMessage()
        self.fill(made, destination, properties, **more)
        made.content = text_content(text)
        return made

    def fill(
        self,
        made: OpenWireMessage,
        destination: ActiveMQDestination | str,
        properties: dict[str, object] | None = None,
        **more: object,
    ) -> None:
        self.messages_sent += 1
        made.destination = ActiveMQQueue(destination) if isinstance(destination, str) else destination
        made.producer_id = ProducerId(self.id, 1, 1)
        made.message_id = MessageId(None, made.producer_id, self.messages_sent)
        made.persistent = True
        made.priority = 4
        if properties is not None:
            made.marshalled_properties = encode_map("properties", properties)
        for name, value in more.items():
            setattr(made, name, value)

    def publish(self, text: str, destination: ActiveMQDestination | str, **more: object) -> None:
        self.succeeds(self.message(text, destination, **more))  # type: ignore[arg-type]

    # -- consuming ------------------------------------------------------------------------------
    def consumer_info(
        self, destination: ActiveMQDestination | str, prefetch: int = 1000, **more: object
    ) -> ConsumerInfo:
        self.consumers += 1
        target = ActiveMQQueue(destination) if isinstance(destination, str) else destination
        info = ConsumerInfo(ConsumerId(self.id, 1, self.consumers), destination=target, prefetch_size=prefetch)
        for name, value in more.items():
            setattr(info, name, value)
        return info

    def consume(self, destination: ActiveMQDestination | str, prefetch: int = 1000, **more: object) -> ConsumerId:
        info = self.consumer_info(destination, prefetch, **more)
        self.succeeds(info)
        assert info.consumer_id is not None
        return info.consumer_id

    def dispatches(self) -> list[MessageDispatch]:
        """The deliveries since the last call, and nothing else."""
        found = self.output()
        assert all(isinstance(each, (MessageDispatch, KeepAliveInfo, ConsumerControl)) for each in found), found
        return [each for each in found if isinstance(each, MessageDispatch)]

    def texts(self) -> list[str | None]:
        return [text(each) for each in self.dispatches()]

    def ack(
        self,
        dispatch: MessageDispatch,
        kind: int = STANDARD,
        first: MessageDispatch | None = None,
        count: int = 1,
        transaction: TransactionId | None = None,
    ) -> None:
        self.succeeds(self.ack_info(dispatch, kind, first, count, transaction))

    def ack_info(
        self,
        dispatch: MessageDispatch,
        kind: int = STANDARD,
        first: MessageDispatch | None = None,
        count: int = 1,
        transaction: TransactionId | None = None,
    ) -> MessageAck:
        return MessageAck(
            dispatch.destination, transaction, dispatch.consumer_id, kind, None if first is None else id_of(first),
            id_of(dispatch), count,
        )  # fmt: skip

    def close(self, consumer: ConsumerId, last_delivered: int = -1) -> None:
        self.succeeds(RemoveInfo(consumer, last_delivered))

    def pull(self, consumer: ConsumerId, timeout: int) -> None:
        self.send(MessagePull(consumer, timeout=timeout))

    # -- the rest -------------------------------------------------------------------------------
    def begin(self, number: int = 1) -> LocalTransactionId:
        transaction = LocalTransactionId(number, ConnectionId(self.id))
        self.succeeds(TransactionInfo(ConnectionId(self.id), transaction, BEGIN))
        return transaction

    def end(self, transaction: TransactionId, kind: int = COMMIT_ONE_PHASE) -> Response:
        return self.succeeds(TransactionInfo(ConnectionId(self.id), transaction, kind))

    def temporary_queue(self, number: int = 1) -> ActiveMQTempQueue:
        made = ActiveMQTempQueue(f"{self.id}:{number}")
        self.succeeds(DestinationInfo(ConnectionId(self.id), made, 0))
        return made

    def producer(self, destination: ActiveMQDestination | None = None, window: int = 0) -> ProducerId:
        producer_id = ProducerId(self.id, 1, 1)
        self.succeeds(ProducerInfo(producer_id, destination, window_size=window))
        return producer_id


def id_of(dispatch: MessageDispatch) -> MessageId:
    assert dispatch.message is not None and dispatch.message.message_id is not None
    return dispatch.message.message_id


def text(dispatch: MessageDispatch) -> str | None:
    """The text of a delivery; None without a message."""
    return None if dispatch.message is None else text_of(dispatch.message.content)


def properties(dispatch: MessageDispatch) -> dict[str, object]:
    assert dispatch.message is not None
    return properties_of(dispatch.message)
