"""WebSockets: frames of RFC 6455 in any pieces, the handshake, and STOMP inside."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.http_upgrade import UpgradeAnswer
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.connection import StompConnection
from atalanta.wire.web_socket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    FIN,
    PING,
    PONG,
    TEXT,
    WebSocket,
    framed,
)
from tests.kernel.broker_rig import SECOND
from tests.wire.stomp.stomp_rig import StompClient, StompServer, frame, replies
from tests.wire.web_socket_bytes import MASK, REQUEST, sent

STOMP = ("v12.stomp", "v11.stomp", "v10.stomp")
CONNECT = frame("CONNECT", {"login": "admin", "passcode": "admin", "accept-version": "1.2", "heart-beat": "0,500"})


def test_the_examples_of_the_rfc() -> None:
    assert WebSocket().receive(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58") == b"Hello"
    assert framed(b"Hello", TEXT) == b"\x81\x05Hello"
    assert framed(bytes(256)) == b"\x82\x7e\x01\x00" + bytes(256)
    assert framed(bytes(65_536)) == b"\x82\x7f" + (65_536).to_bytes(8, "big") + bytes(65_536)
    answer = UpgradeAnswer(False, STOMP)
    answer.feed(REQUEST)
    assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer.answer and b"v12.stomp" in answer.answer


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100_000])
def test_frames_in_any_pieces_are_one_stream(step: int) -> None:
    body = bytes(range(256)) * 300
    stream = (
        sent(b"") + sent(b"one", TEXT, False) + sent(b"ping", PING) + sent(b"two", CONTINUATION) + sent(body[:200])
        + sent(body)
    )  # fmt: skip
    socket = WebSocket()
    carried = b"".join(socket.receive(stream[at : at + step]) for at in range(0, len(stream), step))
    assert carried == b"onetwo" + body[:200] + body
    assert socket.take_answers() == framed(b"ping", PONG) and socket.take_answers() == b""
    assert socket.receive(sent(b"\x03\xe8bye", CLOSE) + sent(b"late")) == b""
    assert socket.closed and socket.take_answers() == framed(b"\x03\xe8", CLOSE)


@pytest.mark.parametrize(
    "data",
    [
        b"\x82\x01x",  # no mask
        b"\xc2\x80" + MASK,  # a reserved bit
        b"\x83\x80" + MASK,  # no such opcode
        sent(b"x" * 126, PING),
        sent(b"", PING, False),
        sent(b"x", CONTINUATION),
        sent(b"x", TEXT, False) + sent(b"x", TEXT),
        b"\x82\xff" + b"\xff" * 8 + MASK,
    ],
)
def test_what_no_client_sends(data: bytes) -> None:
    with pytest.raises(DecodeError):
        WebSocket().receive(data)


@pytest.mark.parametrize(
    "old, new",
    [
        (b"Version: 13", b"Version: 8"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short"),
        (b"v10.stomp, v12.stomp", b"mqtt"),
        (b"websocket", b"other"),
        (b"GET", b"PUT"),
    ],
)
def test_handshakes_that_are_refused(old: bytes, new: bytes) -> None:
    with pytest.raises(ProtocolError):
        UpgradeAnswer(False, STOMP).feed(REQUEST.replace(old, new))


def upgraded(server: StompServer, step: int = 100_000) -> StompClient:
    """A client whose WebSocket is open, and STOMP in it logged in."""
    client = StompClient(server)
    data = REQUEST + sent(CONNECT, TEXT)
    for at in range(0, len(data), step):
        client.feed(data[at : at + step])
    head, _, rest = client.output().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    assert [each.command for each in replies(payloads(rest))] == ["CONNECTED"]
    return client


def payloads(data: bytes) -> bytes:
    """The content of the binary frames of the broker."""
    found = b""
    while data:
        assert data[0] == FIN | BINARY
        size, head = data[1], 2
        if size == 126:
            size, head = int.from_bytes(data[2:4], "big"), 4
        elif size == 127:
            size, head = int.from_bytes(data[2:10], "big"), 10
        found += data[head : head + size]
        data = data[head + size :]
    return found


@pytest.mark.parametrize("step", [1, 100_000])
def test_stomp_in_a_web_socket(server: StompServer, step: int) -> None:
    client = upgraded(server, step)
    assert isinstance(server.connections[client.conn], StompConnection)
    client.feed(sent(frame("SUBSCRIBE", {"id": "1", "destination": "/queue/a"}), TEXT))
    client.feed(sent(frame("SEND", {"destination": "/queue/a"}, b"x" * 70_000), TEXT))
    server.settle()
    (message,) = replies(payloads(client.output()))
    assert message.body == b"x" * 70_000
    server.now += SECOND
    server.beat()
    assert client.output() == framed(b"\n")
    client.feed(sent(b"p", PING) + sent(b"", CLOSE))
    assert client.output() == framed(b"p", PONG) + framed(b"", CLOSE)
    assert client.closed == "the peer closed its WebSocket"


def test_core_in_a_web_socket_is_refused(server: StompServer) -> None:
    client = StompClient(server)
    client.feed(REQUEST + sent(HANDSHAKE))
    assert client.closed == "CORE in a WebSocket is not served"


def test_an_acceptor_without_stomp_has_no_web_socket() -> None:
    server = StompServer(acceptor=AcceptorConfig("front", "0.0.0.0", 1, protocols=("CORE",)))
    client = StompClient(server)
    client.feed(REQUEST)
    assert client.closed is not None and "add STOMP to the protocols parameter" in client.closed


def test_a_browser_that_asks_for_a_page_is_refused_with_the_remedy(server: StompServer) -> None:
    client = StompClient(server)
    client.feed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.closed is not None and "without 'Upgrade: websocket'" in client.closed
    assert "httpUpgradeEnabled" in client.closed


@pytest.fixture
def server() -> StompServer:
    return StompServer()


@pytest.mark.parametrize(("offered", "name"), [("mqttv3.1", "MQTT"), ("mqtt", "MQTT"), ("amqp", "AMQP")])
@pytest.mark.parametrize("protocols", [(), ("AMQP", "MQTT")])
def test_amqp_and_mqtt_in_a_web_socket_are_named(offered: str, name: str, protocols: tuple[str, ...]) -> None:
    server = StompServer(acceptor=AcceptorConfig("front", "0.0.0.0", 1, protocols=protocols))
    client = StompClient(server)
    client.feed(REQUEST.replace(b"v10.stomp, v12.stomp", offered.encode()))
    assert client.closed is not None
    assert client.closed.startswith(f"the peer speaks {name}, which is not implemented at acceptor front: use a ")
    assert client.output() == b""


def test_amqp_and_mqtt_bytes_in_a_web_socket_are_named() -> None:
    server = StompServer(acceptor=AcceptorConfig("front", "0.0.0.0", 1))
    for name, first in (("MQTT", b"\x10\x10\x00\x04MQTT"), ("AMQP", b"AMQP\x03\x01\x00\x00")):
        client = StompClient(server)
        client.feed(REQUEST + sent(first))
        assert client.closed is not None and f"speaks {name}, which is not implemented" in client.closed
