"""Sessions of CORE in a valid order, with hostile values."""

from __future__ import annotations

from dataclasses import fields

from atalanta.kernel.transactions.branch_right import USER_KEY, USER_MARK
from atalanta.message.message import Message
from atalanta.message.properties import BYTE, INT, LONG, SHORT
from atalanta.wire.core.packets import codec, consumer, producer, query, queue, session, transaction
from atalanta.wire.core.packets.base import (
    BOOL,
    INT8,
    INT8S,
    INT32,
    INT64,
    NULLABLE_BOOL,
    NULLABLE_INT32,
    NULLABLE_INT64,
    NULLABLE_SIMPLE_STRING,
    NULLABLE_STRING,
    REST,
    SIMPLE_STRING,
    SIMPLE_STRINGS,
    STRING,
    XID,
    Packet,
)
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.packets.topology import SubscribeTopologyV2
from atalanta.wire.core.packets.transaction import Xid
from tests.fuzz.ordered_victims import CLOSED, SHARED
from tests.fuzz.ordered_world import Choices, OrderedWorld
from tests.wire.core.server.server_rig import Client, text_message

CHANNEL = 10
# What a client sends: usual commands first, and more often.
USUAL: tuple[type[Packet], ...] = (
    consumer.CreateConsumer, consumer.FlowToken, consumer.Acknowledge, consumer.IndividualAcknowledge,
    consumer.ConsumerClose, queue.CreateQueueV2, queue.CreateSharedQueueV2, queue.CreateAddress,
)  # fmt: skip
RARE: tuple[type[Packet], ...] = (
    consumer.ForceConsumerDelivery, consumer.Expired, consumer.Settle, queue.CreateQueue, queue.CreateSharedQueue,
    queue.DeleteQueue, producer.CreateProducer, producer.RemoveProducer, producer.RequestProducerCredits,
    query.QueueQuery, query.BindingQuery, session.SessionStart, session.SessionStop, session.AddMetadata,
    session.AddMetadataV2, session.UniqueAddMetadata, transaction.Commit, transaction.Rollback, transaction.XaStart,
    transaction.XaEnd, transaction.XaPrepare, transaction.XaCommit, transaction.XaRollback, transaction.XaJoin,
    transaction.XaResume, transaction.XaSuspend, transaction.XaForget, transaction.XaFailed, transaction.XaInDoubt,
    transaction.XaSetTimeout, transaction.XaGetTimeout,
)  # fmt: skip
# Headers that the broker understands, each with a number or text of any type.
HEADERS = (
    "_AMQ_ROUTING_TYPE", "_AMQ_SCHED_DELIVERY", "_AMQ_GROUP_ID", "_AMQ_GROUP_SEQUENCE", "_AMQ_LVQ_NAME",
    "_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ROUTE_TO", "_AMQ_LARGE_SIZE", "_AMQ_INGRESS_TIMESTAMP",
    "_AMQ_VALIDATED_USER", "JMSReplyTo", "JMSCorrelationID", "AMQ_SCHEDULED_DELAY", "_AMQ_NotifType", "n", "_AMQ_",
    "_AMQ_ResourceName", "_AMQ_OperationName", "_AMQ_Attribute", "__AMQ_CID", "_AMQ_RedeliveryDelay",
)  # fmt: skip
DUPLICATE_IDS = ("_AMQ_DUPL_ID", "_AMQ_BRIDGE_DUP")


class CoreSessions:
    """One connection of a user."""

    def __init__(self, world: OrderedWorld, choices: Choices) -> None:
        self.world = world
        self.choices = choices
        server = world.server
        self.client: Client = server.greeted()
        self.conn = self.client.conn
        login = session.CreateSessionV2(
            name=f"s{self.conn}", session_channel=CHANNEL, version=136, user=world.user, password=world.user,
            auto_commit_sends=choices.flag(), auto_commit_acks=choices.flag(), xa=choices.flag(),
            pre_acknowledge=choices.below(8) == 0, confirmation_window=choices.of((-1, 500)),
            client_id=choices.of((None, "c", "victim", "failover")),
        )  # fmt: skip
        self.client.send(login, 1)
        world.turn()
        self.client.send(session.SessionStart(), CHANNEL)
        self.large = False  # pieces of a large message may follow

    def step(self) -> None:
        """Sends one command."""
        wanted = self.choices.below(10)
        if wanted < 3:
            packet: Packet = self._message()
        elif wanted < 6:
            packet = self._of_kind(self.choices.of(USUAL))
        elif wanted < 9:
            packet = self._of_kind(self.choices.of(RARE))
        else:
            packet = self._other()
        channel = 0 if isinstance(packet, (Ping, SubscribeTopologyV2)) else CHANNEL
        self.client.feed(codec.encode(packet, channel, 136))

    def _other(self) -> Packet:
        choices = self.choices
        head = self._spoiled(text_message(choices.name()))
        piece = SendContinuation(
            b"x" * 99, continues=choices.flag(), body_size=choices.number(), requires_response=True,
            correlation=choices.number(), sender_id=choices.number(32),
        )  # fmt: skip
        if choices.flag():
            self.large = not self.large
            return SendLargeMessage(head) if self.large else piece
        found: list[Packet] = [
            Ping(choices.number()),
            SubscribeTopologyV2(choices.flag(), choices.number(32)),
        ]  # fmt: skip
        return choices.of(found)

    def _message(self) -> SendMessage:
        choices = self.choices
        repeats = choices.below(5) == 0
        address = choices.of((SHARED, SHARED, CLOSED)) if repeats else choices.name()
        message = self._spoiled(text_message(address, choices.of(("", "text", "x" * 5_000)), choices.flag()))
        if repeats:
            message.put_property(choices.of(DUPLICATE_IDS), choices.of(self.world.victims.ids()))
        return SendMessage(
            message, requires_response=choices.flag(), correlation=choices.number(), sender_id=choices.number(32)
        )

    def _spoiled(self, message: Message) -> Message:
        choices = self.choices
        for _ in range(choices.below(3)):
            name = choices.of(HEADERS)
            if choices.flag():
                code, bits = choices.of(((BYTE, 8), (SHORT, 16), (INT, 32), (LONG, 64)))
                message.properties.put_typed(name, code, choices.number(bits))
            else:
                message.properties.put(name, choices.text())
        message.priority = choices.number(8)
        message.kind = choices.of((0, 2, 3, 4, 5, 6, 7, 100))
        if choices.below(4) == 0:
            message.expiration = choices.number()
        message.timestamp = choices.number()
        return message

    def _of_kind(self, kind: type[Packet]) -> Packet:
        values: dict[str, object] = {}
        for each in fields(kind):  # type: ignore[arg-type]
            values[each.name] = self._value(each.name, each.metadata["encoding"])
        return kind(**values)

    def _value(self, name: str, encoding: int) -> object:
        choices = self.choices
        if encoding in (NULLABLE_BOOL, NULLABLE_INT32, NULLABLE_INT64, NULLABLE_SIMPLE_STRING, NULLABLE_STRING):
            if choices.below(3) > 0:
                return None
        if encoding in (BOOL, NULLABLE_BOOL):
            return choices.flag()
        if encoding == INT8:
            return choices.of((0, 1, -1)) if choices.flag() else choices.number(8)
        if encoding in (INT32, NULLABLE_INT32):
            return choices.number(32)
        if encoding in (INT64, NULLABLE_INT64):
            if name == "message_id":
                live = list(self.world.server.broker.store.messages)
                return choices.of(live) if live and choices.flag() else choices.number()
            return choices.below(3) if name.endswith("_id") else choices.number()
        if encoding in (SIMPLE_STRING, NULLABLE_SIMPLE_STRING, STRING, NULLABLE_STRING):
            if name == "filter":
                return choices.selector()
            if name in ("key", "value") and choices.flag():
                return USER_KEY if name == "key" else f"{USER_MARK}victim"
            return choices.name() if name in ("queue", "address", "name") else choices.text()
        if encoding == XID:
            victims = self.world.victims.xids()
            if victims and choices.flag():
                return choices.of(victims)
            return Xid(choices.number(32), choices.of((b"a", b"", b"x" * 64, b"y" * 300)), choices.of((b"", b"b")))
        if encoding == SIMPLE_STRINGS:
            return [choices.text() for _ in range(choices.below(3))]
        if encoding == INT8S:
            return [choices.number(8) for _ in range(choices.below(3))]
        assert encoding == REST, (name, encoding)
        return b""
