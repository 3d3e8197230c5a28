"""Messages of an AMQP client that a real node forwards: types 7 and 8 of CORE, as its bridge sends them."""

from __future__ import annotations

import pytest

from atalanta.client.encoding import decode_map
from atalanta.message.message import (
    BYTES,
    EMBEDDED,
    LARGE_EMBEDDED,
    MAP,
    OBJECT,
    STREAM,
    TEXT,
    Message,
)
from atalanta.wire.amqp.large_embedded_message import GATHERED_BYTES_MAX
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    SendContinuation,
    SendLargeMessage,
    SendMessage,
)
from tests.wire.amqp.samples import (
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    NULL,
    PROPERTIES,
    TRUE,
    VALUE,
    binary,
    captured,
    embedded,
    large_embedded,
    listed,
    mapped,
    mapped_by,
    section,
    symbol,
    text,
    wrapped,
)
from tests.wire.core.server.large_rig import PIECE, files
from tests.wire.core.server.server_rig import Client, Server

LINK = b"the link 16 byte"
HELLO = section(VALUE, text("hello"))
JAVA = "application/x-java-serialized-object"


class Peer:
    """A node with the queues `orders` and `others` of one address, a bridge's session, and a consumer of `orders`."""

    def __init__(self, user: str = "cluster", password: str = "secret") -> None:
        self.server = Server()
        admin = self.server.login()
        for name in ("orders", "others"):
            admin.create_queue(name, "orders")
        self.bridge = self.server.login(user, password)
        self.consumer = self.server.login()
        self.consumer.consume("orders")
        self.number = 0

    def route(self, queue: str = "orders") -> bytes:
        return self.server.broker.queues[queue].id.to_bytes(8, "big")

    def link_id(self, number: int) -> bytes:
        return LINK + number.to_bytes(8, "big")

    def send(self, message: Message) -> None:
        """Sends it, and sees it confirmed."""
        self.bridge.receive()
        self.bridge.send(SendMessage(message, True, 5, 0))
        self._confirmed()

    def send_large(self, message: Message, body: bytes) -> None:
        """Sends it in pieces, and sees it confirmed."""
        self.bridge.receive()
        self.bridge.send(SendLargeMessage(message))
        for start in range(0, len(body), PIECE):
            last = start + PIECE >= len(body)
            piece = body[start : start + PIECE]
            self.bridge.send(
                SendContinuation(piece, not last, len(body), last, 5 if last else -1, 0)
            )
        self._confirmed()

    def _confirmed(self) -> None:
        self.server.settle()
        assert [packet.correlation for packet in self.bridge.packets(NullResponse)] == [5]

    def got(self) -> list[Message]:
        """Small messages that came to the consumer."""
        self.server.settle()
        return [packet.message for packet in self.consumer.deliveries()]

    def got_large(self) -> tuple[Message, bytes]:
        """The one large message that came to the consumer, and its body."""
        self.server.settle()
        body = b""
        messages = []
        for _, packet in self.consumer.receive():
            if isinstance(packet, ReceiveLargeMessage):
                messages.append(packet.message)
            elif isinstance(packet, ReceiveContinuation):
                body += packet.body
        (message,) = messages
        return message, body

    def counts(self) -> tuple[int, int]:
        """Messages in `orders` and in `others`."""
        queues = self.server.broker.queues
        return queues["orders"].message_count, queues["others"].message_count

    def told(self) -> list[dict[str, object]]:
        """Fields of the events that tell of unreadable messages."""
        events = self.server.trace.events
        return [fields for name, fields in events if name == "embedded_message_unreadable"]


@pytest.fixture
def peer() -> Peer:
    return Peer()


def test_it_goes_where_the_peer_says_and_comes_as_a_text(peer: Peer) -> None:
    for queue in ("orders", "others", "orders"):
        peer.send(embedded(HELLO, _AMQ_ROUTE_TO=peer.route(queue)))
    assert peer.counts() == (2, 1)
    messages = peer.got()
    assert [(message.kind, message.text()) for message in messages] == [(TEXT, "hello")] * 2
    assert messages[0].address == "orders" and messages[0].durable
    assert not any(name.startswith("_AMQ_ROUTE_TO") for name in messages[0].properties.names())


def test_a_repeat_of_the_link_is_dropped_and_confirmed(peer: Peer) -> None:
    for number in (1, 2, 1, 2, 3):
        message = embedded(
            section(VALUE, text(str(number))),
            _AMQ_ROUTE_TO=peer.route(),
            _AMQ_BRIDGE_DUP=peer.link_id(number),
        )
        peer.send(message)
    assert [message.text() for message in peer.got()] == ["1", "2", "3"]


def test_a_repeat_of_the_sender_is_dropped(peer: Peer) -> None:
    amqp = section(APPLICATION_PROPERTIES, mapped(_AMQ_DUPL_ID=text("once"))) + HELLO
    for _ in range(2):
        peer.send(embedded(amqp, _AMQ_ROUTE_TO=peer.route()))
    assert len(peer.got()) == 1


@pytest.mark.parametrize("persister", [2, 3, 5])
def test_every_form_of_the_wrapper(peer: Peer, persister: int) -> None:
    message = Message.create("orders", wrapped(HELLO, None, persister=persister), EMBEDDED, False)
    message.put_property("_AMQ_ROUTE_TO", peer.route())
    peer.send(message)
    (got,) = peer.got()
    assert (got.text(), got.durable, got.address) == ("hello", False, "orders")


def test_what_an_amqp_client_says_of_links_does_not_count(peer: Peer) -> None:
    said = {
        "_AMQ_ROUTE_TO": binary(peer.route("others")),
        "_AMQ_BRIDGE_DUP": binary(peer.link_id(1)),
        "_AMQ_ACK_ROUTE_TO": binary(peer.route()),
        "_AMQ_SCALEDOWN_TO": binary(peer.route("others")),
    }
    amqp = section(APPLICATION_PROPERTIES, mapped(**said)) + HELLO
    for number in (1, 2):
        peer.send(embedded(amqp, _AMQ_ROUTE_TO=peer.route(), _AMQ_BRIDGE_DUP=peer.link_id(number)))
    assert peer.counts() == (2, 0)


def test_from_an_ordinary_client_it_is_converted_and_chooses_no_queue() -> None:
    """Such as the core bridge of a real broker, which logs in as a user: its own ids count, routes do not."""
    peer = Peer("admin", "admin")
    for _ in range(2):
        message = embedded(
            HELLO, _AMQ_ROUTE_TO=peer.route("others"), _AMQ_BRIDGE_DUP=peer.link_id(1)
        )
        peer.send(message)
    peer.send(embedded(HELLO, _AMQ_ROUTE_TO=peer.route("others"), _AMQ_BRIDGE_DUP=peer.link_id(2)))
    assert peer.counts() == (2, 0)  # the queue with a consumer
    assert [message.text() for message in peer.got()] == ["hello"] * 2


def test_type_7_without_the_signature_stays_what_it_is(peer: Peer) -> None:
    message = Message.create("orders", b"EM", EMBEDDED, True)
    message.put_property("_AMQ_ROUTE_TO", peer.route())
    peer.send(message)
    (got,) = peer.got()
    assert (got.kind, got.body) == (EMBEDDED, b"EM") and peer.told() == []


@pytest.mark.parametrize(
    ("amqp", "field"),
    [(HELLO[:-1], "amqp-value"), (section(HEADER, TRUE), "header"), (b"\x99", "section")],
)
def test_one_that_cannot_be_read_is_told_and_kept_where_the_peer_says(
    peer: Peer, amqp: bytes, field: str
) -> None:
    for _ in range(2):
        peer.send(embedded(amqp, _AMQ_ROUTE_TO=peer.route(), _AMQ_BRIDGE_DUP=peer.link_id(1)))
    assert peer.counts() == (1, 0)
    (got,) = peer.got()
    assert got.kind == EMBEDDED and amqp in got.body
    event = peer.told()[0]
    assert (event["address"], event["packet"], event["field"]) == ("orders", "SESS_SEND", field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"EMB", "persister id"),
        (b"EMB\x01" + bytes(30), "persister id"),
        (wrapped(HELLO)[:-1], "expiration"),
        (wrapped(HELLO) + b"x", "wrapper"),
        (wrapped(HELLO, persister=2)[:-5], "AMQP message"),
    ],
)
def test_an_unreadable_wrapper_is_told_and_the_message_kept(peer: Peer, body: bytes, field: str) -> None:
    peer.send(Message.create("orders", body, EMBEDDED, True))
    assert sum(peer.counts()) == 1
    assert [event["field"] for event in peer.told()] == [field]
    assert peer.bridge.closed is None


@pytest.mark.parametrize("kind", ["text", "map", "stream", "object", "bytes"])
def test_what_a_real_broker_sent(peer: Peer, kind: str) -> None:
    message = Message.create("q", captured()[kind], EMBEDDED, True)
    message.put_property("_AMQ_ROUTE_TO", peer.route())  # its own is of another broker
    peer.send(message)
    (got,) = peer.got()
    kinds = {"text": TEXT, "map": MAP, "stream": STREAM, "object": OBJECT, "bytes": BYTES}
    assert got.kind == kinds[kind]
    assert (got.address, got.durable, got.priority, got.routing_type) == ("q", True, 7, 1)
    assert got.expiration - got.timestamp == 3_600_000
    assert (
        dict(got.properties.items()).items()
        >= {
            "JMSType": f"type of {kind}",
            "JMSCorrelationID": "correlated 1",
            "JMSReplyTo": "queue://answers",
            "_AMQ_GROUP_ID": "group",
            "number": 1,
            "boolean": True,
            "string": "säge",
            "byte": -1,
            "short": -2,
            "int": -3,
            "long": -4,
            "float": 0.5,
            "double": 0.1,
        }.items()
    )
    if kind == "text":
        assert got.text() == "säge € 𝄞 " * 3
    elif kind == "map":
        assert decode_map(got.body)["bytes"] == bytes(range(20))
    elif kind == "bytes":
        assert got.body == bytes(range(20))


# -- in pieces ----------------------------------------------------------------------------------------
BIG = bytes(range(251)) * 3_000
BEFORE = {
    HEADER: section(HEADER, listed(TRUE, bytes([0x50, 7]))),
    APPLICATION_PROPERTIES: section(APPLICATION_PROPERTIES, mapped(colour=text("red"))),
}


def large(
    peer: Peer, body: bytes, content_type: str = "", number: int = 1
) -> tuple[Message, bytes]:
    """The header and the pieces of a message of type 8; the sections in front of the body have changed since."""
    before = dict(BEFORE)
    if content_type:
        before[PROPERTIES] = section(PROPERTIES, listed(*[NULL] * 6, symbol(content_type)))
    old = section(HEADER, listed(TRUE)) + section(
        APPLICATION_PROPERTIES, mapped(colour=text("old"))
    )
    header = large_embedded(
        before, len(old), _AMQ_ROUTE_TO=peer.route(), _AMQ_BRIDGE_DUP=peer.link_id(number)
    )
    return header, old + body


def test_large_bytes(peer: Peer) -> None:
    body = section(DATA, binary(BIG)) + section(DATA, binary(b"more"))
    footer = section(FOOTER, mapped_by({symbol("sum"): b"\x54\x05"}))
    for _ in range(2):
        peer.send_large(*large(peer, body + footer))
    assert peer.counts() == (1, 0) and files(peer.server) == 1
    message, got = peer.got_large()
    assert (message.kind, message.priority, got) == (BYTES, 7, BIG + b"more")
    assert message.properties.get("colour") == "red"
    assert message.properties.get("JMS_AMQP_FT_sum") == 5
    assert not any("EMBED" in name or "ROUTE" in name for name in message.properties.names())


def test_a_large_object(peer: Peer) -> None:
    peer.send_large(*large(peer, section(DATA, binary(BIG)), JAVA))
    message, got = peer.got_large()
    assert (message.kind, got) == (OBJECT, len(BIG).to_bytes(4, "big") + BIG)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (section(VALUE, text("säge" * 50_000)), ""),
        (section(DATA, binary("säge".encode() * 50_000)), "text/plain"),
    ],
)
def test_a_large_text(peer: Peer, body: bytes, content_type: str) -> None:
    peer.send_large(*large(peer, body, content_type))
    message, got = peer.got_large()
    encoded = ("säge" * 50_000).encode("utf-16-le")
    assert (message.kind, got) == (TEXT, b"\1" + len(encoded).to_bytes(4, "big") + encoded)


def test_a_large_map(peer: Peer) -> None:
    peer.send_large(*large(peer, section(VALUE, mapped(a=binary(BIG), b=TRUE))))
    message, got = peer.got_large()
    assert message.kind == MAP and decode_map(got) == {"a": BIG, "b": True}


def test_type_7_in_pieces(peer: Peer) -> None:
    """A bridge sends as large what is longer with its wrapper than its min-large-message-size."""
    amqp = section(DATA, binary(BIG))
    for _ in range(2):
        outer = embedded(amqp, _AMQ_ROUTE_TO=peer.route(), _AMQ_BRIDGE_DUP=peer.link_id(1))
        body, outer.body = outer.body, b""
        peer.send_large(outer, body)
    assert peer.counts() == (1, 0)
    message, got = peer.got_large()
    assert (message.kind, got) == (BYTES, BIG)


def test_the_wrapper_of_a_real_large_message(peer: Peer) -> None:
    message = Message.create("q", b"", LARGE_EMBEDDED, True)
    message.put_property("_AMQP_EMBED_LARGE", captured()["large wrapper"])
    message.put_property("_AMQ_ROUTE_TO", peer.route())
    peer.send_large(message, bytes(0x13A) + section(VALUE, text("x" * 200_000)))
    got, body = peer.got_large()
    assert (got.kind, len(body), got.group_id) == (TEXT, 400_005, "group")
    assert peer.told() == []


def test_a_large_one_that_cannot_be_read_is_told_and_kept_as_it_came(peer: Peer) -> None:
    header, body = large(peer, section(VALUE, text("x" * 200_000))[:-1])
    for _ in range(2):
        peer.send_large(large(peer, b"")[0], body)
    assert peer.counts() == (1, 0)
    message, got = peer.got_large()
    assert (message.kind, got) == (LARGE_EMBEDDED, body)
    assert message.properties.get("_AMQP_EMBED_LARGE") == header.properties.get("_AMQP_EMBED_LARGE")
    event = peer.told()[0]
    assert (event["packet"], event["field"]) == ("SESS_SEND_LARGE", "amqp-value")


def test_data_that_ends_too_early_is_told(peer: Peer) -> None:
    header, body = large(peer, section(DATA, binary(BIG))[:-10])
    peer.send_large(header, body)
    message, got = peer.got_large()
    assert (message.kind, got) == (BYTES, BIG[:-10])
    assert [event["field"] for event in peer.told()] == ["data"]


def test_a_footer_that_cannot_be_read_is_told_and_left_out(peer: Peer) -> None:
    footer = section(FOOTER, mapped_by({listed(): TRUE}))
    peer.send_large(*large(peer, section(DATA, binary(BIG)) + section(DATA, binary(b"!")) + footer))
    message, got = peer.got_large()
    assert (message.kind, got) == (BYTES, BIG + b"!")
    assert [event["field"] for event in peer.told()] == ["annotation key"]


@pytest.mark.parametrize(
    ("wrapper", "field"),
    [
        (b"\x04" + bytes(5), "message id"),
        (
            large_embedded(
                {APPLICATION_PROPERTIES: section(APPLICATION_PROPERTIES, mapped_by({NULL: TRUE}))}, 0
            ).properties.get("_AMQP_EMBED_LARGE"),
            "application-properties key",
        ),
    ],
)
def test_a_large_wrapper_that_cannot_be_read_is_told_and_the_message_kept(
    peer: Peer, wrapper: bytes, field: str
) -> None:
    header, body = large(peer, section(DATA, binary(BIG)))
    header.put_property("_AMQP_EMBED_LARGE", wrapper)
    peer.send_large(header, body)
    assert sum(peer.counts()) == 1
    assert [event["field"] for event in peer.told()] == [field]


def test_a_body_that_would_fill_memory_is_told_and_kept_as_it_came(peer: Peer) -> None:
    header, body = large(peer, section(VALUE, text("x" * (GATHERED_BYTES_MAX + 1))))
    peer.send_large(header, body)
    assert peer.counts() == (1, 0)
    (file,) = peer.server.large.contents.values()
    assert bytes(file) == body
    assert [event["field"] for event in peer.told()] == ["body"]


def test_a_large_one_survives_the_node(peer: Peer) -> None:
    peer.send_large(*large(peer, section(DATA, binary(BIG))))
    peer.server.settle()
    peer.server.restart()
    client: Client = peer.server.login()
    client.consume("orders")
    peer.consumer = client
    assert peer.got_large()[1] == BIG
