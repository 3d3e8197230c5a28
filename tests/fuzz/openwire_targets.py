"""Decoders of OpenWire: a connection in any version and encoding, and the bodies of messages."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire import bodies
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    KeepAliveInfo,
    RemoveInfo,
    ShutdownInfo,
)
from atalanta.wire.openwire.commands.consumers import (
    ConsumerControl,
    ConsumerInfo,
    MessagePull,
    RemoveSubscriptionInfo,
)
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMessage,
    ActiveMQTextMessage,
)
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.transactions import (
    LocalTransactionId,
    TransactionInfo,
    XATransactionId,
)
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.encoding.structure import Command, EncodeError
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of, options_of
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.protocol_error import ProtocolError
from tests.fuzz.mutator import Mutator
from tests.fuzz.target import Target
from tests.kernel.broker_rig import SECOND
from tests.wire.openwire.samples import conversations, lines
from tests.wire.openwire.server.openwire_rig import (
    BEGIN,
    COMMIT,
    COMMIT_ONE_PHASE,
    DELIVERED,
    END,
    INDIVIDUAL,
    POISON,
    PREPARE,
    RECOVER,
    ROLLBACK,
    STANDARD,
    OpenWireClient,
    OpenWireServer,
)

WORDS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x7f\xff", b"\xff\xff", b"\xc0\x80", b"\x01\x7b\x01\x00\x01a")
INFLATED_BYTES_MAX = 64 << 10


def repeated_frames(head: int) -> bytes:
    """Messages and acknowledgements that differ in numbers and content only, in the form of OpenWireTarget."""
    form = WireFormat(WireFormatOptions(version=head & 15, tight=bool(head & 16), cache=bool(head & 32)))
    producer, queue, found = ProducerId("ID:x", 1, 1), ActiveMQQueue("q"), b""
    for number in range(1, 9):
        message_id = MessageId(None, producer, number)
        found += form.encode(
            ActiveMQTextMessage(
                producer, queue, message_id=message_id, timestamp=1 << 41, content=bodies.text_content("x" * number)
            )
        )
        found += form.encode(MessageAck(queue, None, ConsumerId("ID:x", 1, 1), STANDARD, message_id, message_id, 1))
    return found


class OpenWireTarget(Target):
    """u8: version in four bits, then tight, cache, stack traces, logged in · frames behind the negotiation."""

    name = "openwire"
    refusals = (DecodeError, ProtocolError)
    # The smallest structures have 1 byte, and a few hundred as objects.
    bytes_per_byte = 512
    words = WORDS

    def seeds(self) -> list[bytes]:
        found = []
        for given in conversations():
            options = given.options
            if not given.prefix_bytes or options.version not in (1, 5, 12):
                continue
            head = options.version | options.tight << 4 | options.cache << 5 | options.stack_traces << 6 | 0x80
            frames = given.frames[:48]
            found += [bytes((head,)) + b"".join(frames[at : at + 6]) for at in range(0, len(frames), 6)]
        return found + [bytes((mode,)) + repeated_frames(mode) for mode in (0xBC, 0x9C, 0xAC, 0x8C, 0xB1)]

    def run(self, data: bytes) -> None:
        if not data:
            return
        head = data[0]
        options = WireFormatOptions(
            version=max(head & 15, 1),
            tight=bool(head & 0x10),
            cache=bool(head & 0x20),
            stack_traces=bool(head & 0x40),
        )
        decoder, comparing = FrameDecoder(options), FrameDecoder(options)
        comparing.compare_frames()
        for each in (decoder, comparing):
            each.feed(WireFormat(HANDSHAKE).encode(info_of(options)))
            each.next()
            if head & 0x80:
                each.open()
            each.feed(data[1:])
        there, back = WireFormat(decoder.format.options), WireFormat(decoder.format.options)
        while (command := decoder.next()) is not None:
            repeated = comparing.next()
            assert repr(command) == repr(repeated), command
            try:
                frame = there.encode(command)
            except EncodeError:
                continue
            assert back.decode(frame, 4) == command, command


class OpenWireHelloTarget(Target):
    """The first bytes of a connection."""

    name = "openwire hello"
    refusals = (DecodeError, ProtocolError)
    words = WORDS

    def seeds(self) -> list[bytes]:
        options = (WireFormatOptions(host="h"), WireFormatOptions(version=1, tight=False), HANDSHAKE)
        return [WireFormat(HANDSHAKE).encode(info_of(each)) for each in options]

    def run(self, data: bytes) -> None:
        decoder = FrameDecoder(WireFormatOptions())
        for at in range(0, len(data), 50):
            decoder.feed(data[at : at + 50])
            while decoder.next() is not None:
                assert decoder.theirs is not None
                assert options_of(info_of(decoder.theirs)) == decoder.theirs


class OpenWireBodyTarget(Target):
    """u8: kind, compressed · the body."""

    name = "openwire bodies"
    refusals = (DecodeError,)
    base_bytes = 8 << 20
    words = WORDS

    def seeds(self) -> list[bytes]:
        kinds = {"text": 0, "bytes": 1, "map": 2, "stream": 3}
        found = []
        for entry in lines("bodies"):
            content = bytes.fromhex(str(entry["content"]))
            found.append(bytes((kinds[str(entry["kind"])] | bool(entry["compressed"]) << 2,)) + content)
        return found

    def run(self, data: bytes) -> None:
        if not data:
            return
        kind = data[0] & 3
        made = (ActiveMQTextMessage, ActiveMQBytesMessage, ActiveMQMessage, ActiveMQMessage)[kind]
        content = bodies.content_of(made(content=data[1:], compressed=bool(data[0] & 4)), INFLATED_BYTES_MAX)
        if kind == 0:
            text = bodies.text_of(content)
            assert text is None or bodies.text_of(bodies.text_content(text)) == text
        elif kind == 1 and content is not None:
            bodies.compressed(codes.BYTES_MESSAGE, content)
        elif kind == 2:
            values = bodies.map_of(content)
            assert repr(bodies.map_of(bodies.map_content(values))) == repr(values)
        elif kind == 3:
            stream = bodies.stream_of(content)
            assert repr(bodies.stream_of(bodies.stream_content(stream))) == repr(stream)


INPUTS_OF_A_SERVER = 50
PROPERTIES: dict[str, object] = {
    "s": "x", "m": {"l": [1, b"\xff"]}, "AMQ_SCHEDULED_PERIOD": 10, "AMQ_SCHEDULED_CRON": "* * 1 1 1",
}  # fmt: skip
PLAIN = WireFormatOptions(tight=False, cache=False)


def commands_of_a_client() -> list[Command]:
    """The commands that a client may send after its login, with ids that fit each other."""
    connection, producer = ConnectionId("ID:x"), ProducerId("ID:x", 1, 1)
    queue, topic = ActiveMQQueue("a"), ActiveMQTopic("t.>")
    temporary = ActiveMQTempQueue("ID:x:1")
    local, xid = LocalTransactionId(1, connection), XATransactionId(7, b"g", b"b")
    found: list[Command] = [
        SessionInfo(SessionId("ID:x", 1)),
        ProducerInfo(producer, queue, window_size=1000),
        DestinationInfo(connection, temporary, 0),
        ConsumerInfo(ConsumerId("ID:x", 1, 1), False, queue, 2),
        ConsumerInfo(ConsumerId("ID:x", 1, 2), False, topic, 10, selector="n > 1", no_local=True),
        ConsumerInfo(ConsumerId("ID:x", 1, 3), True, queue, 1),
        ConsumerInfo(ConsumerId("ID:x", 1, 4), False, ActiveMQQueue("a,b,topic://c"), 0),
        ConsumerInfo(ConsumerId("ID:x", 1, 5), False, ActiveMQTopic("d"), 10, subscription_name="sub"),
        ConsumerInfo(ConsumerId("ID:x", -1, 1), False, ActiveMQTopic("ActiveMQ.Advisory.TempQueue"), 1000),
        ConsumerInfo(ConsumerId("ID:x", 1, 6), False, temporary, 5),
        TransactionInfo(connection, local, BEGIN),
        TransactionInfo(connection, xid, BEGIN),
    ]
    for number, (destination, transaction) in enumerate(
        ((queue, None), (ActiveMQQueue("a,b"), None), (temporary, None), (queue, local), (queue, xid)), 1
    ):
        text = ActiveMQTextMessage(
            producer, destination, transaction, message_id=MessageId(None, producer, number), persistent=True,
            content=bodies.text_content("text"), marshalled_properties=encode_map("p", PROPERTIES | {"n": number}),
            reply_to=temporary, group_id="g" if number == 2 else None,
        )  # fmt: skip
        found.append(text)
    for kind in (DELIVERED, STANDARD, INDIVIDUAL, POISON):
        message_id = MessageId(None, producer, 1, kind)
        found.append(MessageAck(queue, None, ConsumerId("ID:x", 1, 1), kind, None, message_id, 1))
    found.append(MessageAck(queue, local, ConsumerId("ID:x", 1, 1), STANDARD, None, MessageId(None, producer, 1, 1), 1))
    found += [TransactionInfo(connection, local, step) for step in (ROLLBACK, BEGIN, COMMIT_ONE_PHASE)]
    found += [TransactionInfo(connection, xid, step) for step in (END, PREPARE, RECOVER, COMMIT)]
    found += [
        MessagePull(ConsumerId("ID:x", 1, 4), timeout=-1),
        MessagePull(ConsumerId("ID:x", 1, 4), timeout=10),
        ConsumerControl(queue, False, ConsumerId("ID:x", 1, 1), 5),
        KeepAliveInfo(),
        ConnectionControl(fault_tolerant=True),
        RemoveInfo(ConsumerId("ID:x", 1, 1), 1),
        RemoveInfo(ConsumerId("ID:x", 1, 5), -1),
        RemoveSubscriptionInfo(connection, "sub", "c"),
        RemoveInfo(SessionId("ID:x", 1), -2),
        RemoveInfo(connection, -1),
        ShutdownInfo(),
    ]
    for number, command in enumerate(found):
        command.command_id = number
        command.response_required = number % 3 > 0
    return found


class OpenWireServerTarget(Target):
    """u8 flags · u8 pieces · what a client sends. The broker lives on; its books must agree after every input.

    Flag 1: behind a login, else behind the negotiation only.
    """

    name = "openwire server"
    base_bytes = 4 << 20
    bytes_per_byte = 1024
    words = (*WORDS, b"ActiveMQ.Advisory.", b"Consumer.A.VirtualTopic.b", b"a,b", b"queue://", b"::", b".>")

    def __init__(self) -> None:
        self.inputs = 0
        self.server = OpenWireServer()

    def mutator(self) -> Mutator:
        return Mutator(self.size_max, self.words)

    def seeds(self) -> list[bytes]:
        client = OpenWireClient(self.server, "x", PLAIN)
        login = client.login_info("c", "admin", "admin")
        form = WireFormat(PLAIN)
        frames = [form.encode(each) for each in commands_of_a_client()]
        stream = b"".join(frames)
        cuts = [b"\x01\x00" + b"".join(frames[at:]) for at in range(0, len(frames), 8)]
        return [b"\x01\x03" + stream, b"\x00\x02" + form.encode(login) + stream, b"\x00\x00" + frames[0], *cuts]

    def fresh(self) -> None:
        self.inputs = 0
        self.server = OpenWireServer()

    def stale(self) -> bool:
        return self.inputs >= INPUTS_OF_A_SERVER

    def run(self, data: bytes) -> None:
        self.inputs += 1
        server = self.server
        flags, pieces = (data[0], data[1]) if len(data) > 1 else (0, 0)
        stream = data[2:]
        client = OpenWireClient(server, "x", PLAIN)
        client.greet()
        if flags & 1:
            client.succeeds(client.login_info("c", "admin", "admin"))
        step = max(1, len(stream) // (pieces % 8 + 1))
        for at in range(0, len(stream), step):
            client.feed(stream[at : at + step])
            if pieces & 128:
                server.settle()
        if server.passwords.waiting:
            server.verify()
        server.settle()
        server.now += SECOND
        server.beat()
        client.output()
        if client.conn in server.connections:
            server.lost(client.conn)
        server.settle()
        validate(server.broker)
