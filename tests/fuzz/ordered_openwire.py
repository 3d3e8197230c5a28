"""Sessions of OpenWire in a valid order, with hostile values."""

from __future__ import annotations

from dataclasses import replace

from atalanta.wire.openwire.bodies import compressed, text_content
from atalanta.wire.openwire.commands.brokers import NetworkBridgeFilter
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    ConnectionInfo,
    ControlCommand,
    FlushCommand,
    KeepAliveInfo,
    RemoveInfo,
)
from atalanta.wire.openwire.commands.consumers import (
    ConsumerControl,
    ConsumerInfo,
    MessagePull,
    RemoveSubscriptionInfo,
)
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQObjectMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
    OpenWireMessage,
)
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.commands.transactions import (
    LocalTransactionId,
    TransactionId,
    TransactionInfo,
    XATransactionId,
)
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.encoding.structure import Command, EncodeError, Identifier
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.fuzz.ordered_victims import (
    CLOSED,
    FAILOVER_CONNECTION,
    SHARED,
    VICTIM_CONNECTION,
    openwire_xid,
)
from tests.fuzz.ordered_world import Choices, OrderedWorld

PROPERTIES = (
    "n", "JMSXGroupID", "AMQ_SCHEDULED_DELAY", "_AMQ_SCHED_DELIVERY", "_AMQ_ROUTING_TYPE", "JMSReplyTo",
    "JMSXDeliveryCount", "_AMQ_GROUP_ID", "é",
)  # fmt: skip
DUPLICATE_IDS = ("_AMQ_DUPL_ID", "_AMQ_BRIDGE_DUP")
PATHS = (64, 65, 999, 1_000, 1_001, 1_500)  # lengths at the edges
LONG_TEXTS = ("x" * 1_025, "x" * 32_766, "x" * 32_767, "x" * 65_535, "é" * 20_000)
MESSAGES = (
    ActiveMQTextMessage, ActiveMQBytesMessage, ActiveMQMessage, ActiveMQMapMessage, ActiveMQStreamMessage,
    ActiveMQObjectMessage,
)  # fmt: skip


class OpenWireSessions:
    """One connection of a user, in loose form: it carries longer texts than others can be told.

    What ends a connection is rare: a session is to reach what its user may not have.
    """

    VERSIONS: tuple[int, ...] = (12, 12, 12, 12, 11, 9, 1)

    def __init__(self, world: OrderedWorld, choices: Choices) -> None:
        self.world = world
        self.choices = choices
        self.server = world.server
        self.conn = world.server.connect().conn
        self.id = FAILOVER_CONNECTION if choices.below(6) == 0 else f"ID:x-{self.conn}:1"
        options = WireFormatOptions(
            version=choices.of(self.VERSIONS), tight=choices.below(3) == 0, cache=False,
            stack_traces=choices.flag(),
        )  # fmt: skip
        self.form = WireFormat(replace(options, stack_traces=False))  # as the server announces it
        self.commands = 0
        self.sent = 0
        self.server.data(self.conn, WireFormat(HANDSHAKE).encode(info_of(options)))
        self._introduce()
        client_id = f"c{self.conn}"
        if choices.below(10) == 0:
            client_id = choices.of(("victim", "failover", "NC_far_outbound", choices.text()))
        login = ConnectionInfo(
            ConnectionId(self.id), client_id, world.user, world.user, fault_tolerant=choices.flag(),
            manageable=choices.flag(), failover_reconnect=choices.flag(),
        )  # fmt: skip
        self._send(login)
        world.turn()
        self._send(SessionInfo(SessionId(self.id, 1)))
        self._send(ProducerInfo(ProducerId(self.id, 1, 1)))

    def _introduce(self) -> None:
        """Sends what comes before the login."""

    def _send(self, command: Command) -> None:
        self.commands += 1
        command.command_id = self.commands
        command.response_required = self.choices.below(4) > 0
        try:
            frame = self.form.encode(command)
        except EncodeError:
            return  # such a client cannot send it
        self.server.data(self.conn, frame)

    def step(self) -> None:
        """Sends one command."""
        wanted = self.choices.below(12)
        if wanted < 4:
            self._send(self._message())
        elif wanted < 6:
            self._send(self._consumer())
        elif wanted < 8:
            self._send(self._acknowledgement())
        elif wanted < 9:
            self._send(TransactionInfo(ConnectionId(self.id), self._transaction(), self.choices.below(8)))
        else:
            self._send(self._other())

    # -- values ---------------------------------------------------------------------------------
    def _connection(self) -> str:
        choices = self.choices
        if choices.below(6) == 0:
            return choices.of((VICTIM_CONNECTION, FAILOVER_CONNECTION, choices.text(), choices.of(LONG_TEXTS)))
        return self.id

    def _text(self) -> str | None:
        choices = self.choices
        return choices.of((None, choices.text(), choices.of(LONG_TEXTS)))

    def _destination(self) -> ActiveMQDestination:
        choices = self.choices
        kind = choices.of((ActiveMQQueue, ActiveMQQueue, ActiveMQTopic, ActiveMQTempQueue, ActiveMQTempTopic))
        if kind in (ActiveMQTempQueue, ActiveMQTempTopic):
            return kind(choices.of((f"{self.id}:{choices.below(3)}", f"{VICTIM_CONNECTION}:1", choices.name())))
        return kind(choices.name() if choices.below(12) else choices.of(LONG_TEXTS))

    def _consumer_id(self) -> ConsumerId:
        choices = self.choices
        number = choices.below(4) if choices.below(8) else choices.number()
        return ConsumerId(self._connection(), choices.of((1, 1, -1, choices.number())), number)

    def _producer_id(self) -> ProducerId:
        return ProducerId(self.id, 1, 1)

    def _path(self) -> list[BrokerId] | None:
        choices = self.choices
        return self._long_path() if choices.below(12) == 0 else None

    def _long_path(self) -> list[BrokerId]:
        choices = self.choices
        if choices.below(8) == 0:
            return [BrokerId(f"b{number}") for number in range(choices.of(PATHS))]
        values = ("b", "", None, "ID:far", choices.of(LONG_TEXTS))
        return [BrokerId(choices.of(values)) for _ in range(choices.below(3))]

    def _transaction(self) -> TransactionId | None:
        choices = self.choices
        local = LocalTransactionId(choices.of((1, 1, choices.number())), ConnectionId(self._connection()))
        both = choices.of((b"g", b"", b"x" * 64, b"x" * 70, None)), choices.of((b"b", None))
        xid = XATransactionId(choices.number(32), *both)
        victims = self.world.victims.xids()
        if victims and choices.flag():
            xid = openwire_xid(choices.of(victims))
        return choices.of((None, local, xid))

    def _message_id(self) -> MessageId:
        choices = self.choices
        number = choices.of((self.sent, max(self.sent - 1, 0), choices.number()))
        text = self._text() if choices.below(8) == 0 else None
        return MessageId(text, self._producer_id(), number, choices.of((0, 1, 2, choices.number())))

    # -- commands -------------------------------------------------------------------------------
    def _message(self) -> OpenWireMessage:
        choices = self.choices
        self.sent += 1
        made = choices.of(MESSAGES)()
        made.producer_id = self._producer_id()
        made.destination = self._destination()
        made.message_id = MessageId(None, made.producer_id, self.sent)
        if choices.below(5) == 0:
            made.message_id = choices.of(self.world.victims.message_ids())
            made.destination = ActiveMQQueue(choices.of((SHARED, SHARED, CLOSED)))
            made.producer_id = choices.of((made.producer_id, made.message_id.producer_id))
        made.persistent = choices.flag()
        made.transaction_id = self._transaction() if choices.below(4) == 0 else None
        made.priority = choices.number(8)
        made.expiration = choices.of((0, 0, choices.number()))
        made.timestamp = choices.number()
        made.group_sequence = choices.number(32)
        made.redelivery_counter = choices.number(32)
        made.broker_path = self._path()
        if choices.below(3) == 0:
            made.reply_to = self._destination()
            made.correlation_id = self._text()
            made.jms_type = self._text()
            made.group_id = self._text()
            made.user_id = self._text()
        content = text_content("text") if isinstance(made, ActiveMQTextMessage) else b"\x00\x00\x00\x00"
        made.content = choices.of((None, content, content, content))
        if choices.below(5) == 0:
            made.compressed, made.content = True, compressed(made.code(), content)
        if choices.below(16) == 0:
            made.content = choices.of((b"x" * 5_000, b"\x7f\xff\xff\xff"))
        if choices.below(3) == 0:
            value = choices.of((choices.number(), choices.text(), True, 1.5))
            made.marshalled_properties = encode_map("properties", {choices.of(PROPERTIES): value})
        elif choices.below(8) == 0:
            named: dict[str, object] = {choices.of(DUPLICATE_IDS): choices.of(self.world.victims.ids())}
            made.marshalled_properties = encode_map("properties", named)
            made.destination = ActiveMQQueue(choices.of((SHARED, SHARED, CLOSED)))
        return made

    def _consumer(self) -> ConsumerInfo:
        choices = self.choices
        info = ConsumerInfo(self._consumer_id(), choices.below(8) == 0, self._destination())
        info.prefetch_size = choices.of((10, 1_000, 0, choices.number(32)))
        info.maximum_pending_message_limit = choices.number(32)
        info.selector = choices.selector()
        info.priority = choices.number(8)
        info.no_local = choices.flag()
        info.exclusive = choices.below(4) == 0
        info.retroactive = choices.below(8) == 0
        if choices.below(4) == 0:
            info.subscription_name = self._text()
            info.client_id = self._text()
        if choices.below(6) == 0:
            info.broker_path = self._path()
            info.network_subscription = choices.flag()
            info.network_consumer_path = [self._consumer_id() for _ in range(choices.below(3))]
            broker = BrokerId(choices.of(("b", "a%_!'", "a,b", None, choices.of(LONG_TEXTS))))
            info.additional_predicate = NetworkBridgeFilter(self._hops(), broker, self._hops(), self._hops())
        return info

    def _operation(self) -> int:
        """What is done to a destination: it is made or removed, or what no broker knows."""
        return self.choices.of((0, 0, 0, 1)) if self.choices.below(10) else self.choices.number(8)

    def _hops(self) -> int:
        """A time to live in brokers."""
        return self.choices.of((-1, 0, 1, 60, self.choices.number(32)))

    def _acknowledgement(self) -> MessageAck:
        choices = self.choices
        first = None if choices.flag() else self._message_id()
        return MessageAck(
            self._destination(), self._transaction() if choices.below(4) == 0 else None, self._consumer_id(),
            choices.of((2, 2, 0, 1, 3, 4, 5, 6, choices.number(8))), first, self._message_id(),
            choices.of((1, 1, choices.number(32))),
        )  # fmt: skip

    def _other(self) -> Command:
        choices = self.choices
        consumer, producer = self._consumer_id(), ProducerId(self._connection(), choices.below(3), 1)
        removed: tuple[Identifier, ...] = (
            consumer, consumer, producer, SessionId(self._connection(), 1), ConnectionId(VICTIM_CONNECTION),
        )  # fmt: skip
        found: list[Command] = [
            SessionInfo(SessionId(self._connection(), choices.number())),
            ProducerInfo(producer, self._destination(), self._path(), window_size=choices.number(32)),
            DestinationInfo(
                ConnectionId(self._connection()), self._destination(), self._operation(), choices.number(), self._path()
            ),
            MessagePull(consumer, self._destination(), choices.of((-1, 0, 1, choices.number())), self._text()),
            ConsumerControl(self._destination(), choices.below(4) == 0, consumer, choices.number(32)),
            RemoveInfo(choices.of(removed), choices.number()),
            RemoveSubscriptionInfo(ConnectionId(self.id), self._text(), self._text()),
            KeepAliveInfo(),
            FlushCommand(),
            ConnectionControl(fault_tolerant=choices.flag(), reconnect_to=self._text()),
            ControlCommand(self._text()),
            Response(choices.number(32)),
            ExceptionResponse(None, choices.number(32)),
        ]  # fmt: skip
        return choices.of(found)
