"""Messages sent and delivered: bodies, headers, routing types, and what JMS clients see."""

from __future__ import annotations

import json
import zlib

import pytest

from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT
from atalanta.message.properties import Int
from atalanta.wire.stomp.body_text import DECOMPRESSED_BYTES_MAX, Body
from atalanta.wire.stomp.body_text import body_of as delivered_body
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import text_message
from tests.wire.stomp.stomp_rig import StompServer, publish, received


def test_a_text_goes_from_sender_to_subscriber(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    client.send("SEND", "one", destination="/queue/a")
    message = client.one()
    assert message.command == "MESSAGE" and message.body == b"one"
    assert message["destination"] == "/queue/a" and message["subscription"] == "1"
    assert message["content-length"] == "3" and message["persistent"] == "false"
    assert "ack" not in message.headers
    assert server.broker.queues["a"].message_count == 0


def test_frames_byte_by_byte(server: StompServer) -> None:
    client = server.stomp_client()
    assert client.connected.raw.startswith(b"CONNECTED\nversion:1.2\nsession:")
    assert client.connected.raw.endswith(b"\nserver:Atalanta\nheart-beat:0,0")
    for byte in b"SUBSCRIBE\nid:0\ndestination:/queue/a\nack:client\nreceipt:x\\cy\n\n\0\n":
        client.feed(bytes([byte]))
    server.settle()
    assert client.output() == b"RECEIPT\nreceipt-id:x\\cy\n\n\0\n"
    for byte in b"\n\r\nSEND\r\ndestination:/queue/a\r\na\\\\b:1\\n2\r\ncontent-length:3\r\n\r\n\0\n\0\0":
        client.feed(bytes([byte]))
    assert client.output() == (
        b"MESSAGE\ndestination:/queue/a\nmessage-id:1,1700000000000000\nsubscription:0\nack:1,1700000000000000\n"
        b"redelivered:false\npriority:4\npersistent:false\ntimestamp:1700000000000\ndestination-type:ANYCAST\na\\\\b:1\\n2\ncontent-length:3\n\n"
        b"\0\n\0\0\n"
    )


@pytest.mark.parametrize(
    "version, escaped, plain",
    [
        ("1.2", b"\nv:1\\c2\nw:3\n", "1:2"),
        ("1.1", b"\nv:1\\c2\nw:3\n", "1:2"),
        ("1.0", b"\nv:1:2\nw:3\n", "1:2"),
        ("1.2", b"\nv:1\\\\\\c2\nw:3\n", "1\\:2"),
        ("1.0", b"\nv:1\\:2\nw:3\n", "1\\:2"),
        ("1.0", b"\nv:1 2\nw:3\n", "1\n2"),
    ],
)
def test_a_header_has_the_escapes_of_the_version(
    server: StompServer, version: str, escaped: bytes, plain: str
) -> None:
    client = server.stomp_client(version)
    client.subscribe("/queue/a")
    core = server.login()
    message = text_message("a", "x")
    message.put_property("v", plain)
    message.put_property("w", "3")
    publish(core, message)
    assert escaped in client.one().raw + b"\n"


def test_bytes_with_nul_stay_bytes_for_jms(server: StompServer) -> None:
    client = server.stomp_client()
    core = server.login()
    core.create_queue("a")
    core.consume("a")
    client.send("SEND", b"\0\xff\0", destination="/queue/a", content_length="3")
    client.send("SEND", "žluť", destination="/queue/a")
    first, second = received(core)
    assert first.kind == BYTES and first.body == b"\0\xff\0"
    assert second.kind == TEXT and second.text() == "žluť"


def test_the_type_that_a_client_names_is_the_type_of_the_message(server: StompServer) -> None:
    """The header of ActiveMQ Classic (LegacyFrameTranslator); content-length says nothing then."""
    client = server.stomp_client()
    core = server.login()
    core.create_queue("a")
    core.consume("a")
    client.send("SEND", "žluť", destination="/queue/a", content_length="6", amq_msg_type="text")
    client.send("SEND", "plain", destination="/queue/a", amq_msg_type="BYTES")
    client.send("SEND", "other", destination="/queue/a", content_length="5", amq_msg_type="map")
    text, raw, other = received(core)
    assert text.kind == TEXT and text.text() == "žluť"
    assert (raw.kind, raw.body, other.kind) == (BYTES, b"plain", BYTES)
    client.send("SEND", b"\xff", destination="/queue/a", content_length="1", amq_msg_type="text")
    assert b"byte 0 of the body is not UTF-8; bytes need amq-msg-type:bytes" in client.output()


def test_headers_become_what_jms_reads(server: StompServer) -> None:
    client = server.stomp_client()
    core = server.login()
    core.create_queue("a")
    core.consume("a")
    client.send(
        "SEND", "x", destination="/queue/a", persistent="true", priority="7", expires="1700000600000",
        correlation_id="c", type="t", reply_to="/topic/b", color="red", JMSXGroupID="g", receipt="1",
    )  # fmt: skip
    (message,) = received(core)
    assert (message.durable, message.priority, message.expiration) == (True, 7, 1_700_000_600_000)
    properties = dict(message.properties.items())
    assert properties.pop("_AMQ_ROUTING_TYPE") == 1
    assert properties == {
        "JMSCorrelationID": "c", "JMSType": "t", "JMSReplyTo": "topic://b", "color": "red", "_AMQ_GROUP_ID": "g",
    }  # fmt: skip


def test_a_jms_text_arrives_as_text_with_its_properties(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    core = server.login()
    message = text_message("a", "hello", True, 1, JMSReplyTo="queue://answers", JMSCorrelationID="c", n=Int(3), ok=True)
    message.user_id = bytes(range(16))
    publish(core, message)
    got = client.one()
    assert got.body == b"hello" and got["reply-to"] == "/queue/answers" and got["correlation-id"] == "c"
    assert got["n"] == "3" and got["ok"] == "true" and got["persistent"] == "true"
    assert got["JMSMessageID"] == "ID:00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_a_map_arrives_as_json(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    core = server.login()
    message = text_message("a", "", False, 1)
    message.kind = MAP
    message.body = b"\x01\x00\x00\x00\x01" + b"\x00\x00\x00\x02n\x00" + b"\x06\x00\x00\x00\x07"
    publish(core, message)
    got = client.one()
    assert got.body == b'{"n": 7}' and got["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["message-id", "subscription", "destination", "ack", "content-length"])
def test_a_property_cannot_pose_as_a_header_of_the_frame(server: StompServer, name: str) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    core = server.login()
    publish(core, text_message("a", "x", False, 1, **{name: "forged"}))
    assert "forged" not in client.one().headers.values()


def test_a_line_end_in_a_property_adds_no_header(server: StompServer) -> None:
    core = server.login()
    for version in ("1.2", "1.1", "1.0", ""):
        client = server.stomp_client(version)
        client.subscribe("/queue/a")
        publish(core, text_message("a", "x", False, 1, **{"a:b": "1", "v": "x\ny:z\r\0"}))
        got = client.one()
        assert b"\ny:" not in got.raw and b"\0" not in got.raw and got.body == b"x"
        client.receipt("DISCONNECT")


@pytest.mark.parametrize("header", ["AMQ_SCHEDULED_DELAY:5000", "AMQ_SCHEDULED_TIME:1700000005000"])
def test_a_scheduled_message_waits_for_its_time(server: StompServer, header: str) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    client.feed(f"SEND\ndestination:/queue/a\n{header}\n\nlater\0".encode())
    assert client.frames() == []
    assert server.broker.queues["a"].scheduled_count == 1


def test_a_repeated_message(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    client.feed(b"SEND\ndestination:/queue/a\nAMQ_SCHEDULED_PERIOD:1000\nAMQ_SCHEDULED_REPEAT:1\n\nagain\0")
    for _ in range(2):
        server.settle()
        server.now += SECOND
        server.broker.on_timer(server.now, "kernel.scheduled")
        server.settle()
        got = client.one()
        assert got.body == b"again" and "AMQ_SCHEDULED_REPEAT" not in got.headers
    assert server.broker.queues["a"].scheduled_count == 0
    client.feed(b"SEND\ndestination:/queue/a\nAMQ_SCHEDULED_CRON:never\n\nx\0")
    assert client.closed is not None and "five fields" in client.closed


def body_of(kind: int, data: bytes, **properties: object) -> Body:
    message = text_message("a", "", False, 1, **properties)
    message.kind = kind
    message.body = data
    return delivered_body(message)


def test_a_stream_becomes_an_array() -> None:
    writer = Writer()
    writer.uint8(10)
    writer.nullable_string("text")
    writer.uint8(6)
    writer.int32(-1)
    writer.uint8(4)
    writer.blob(b"\xff\x00")
    writer.uint8(9)
    writer.float64(float("nan"))
    writer.uint8(10)
    writer.nullable_string(None)
    found = body_of(STREAM, writer.getvalue())
    assert json.loads(found.data) == ["text", -1, "ff00", "nan", None]
    assert (found.binary, found.content_type) == (False, "application/json")


def test_other_bodies() -> None:
    assert body_of(OBJECT, b"\0\0\0\2ab").data == b"ab"
    assert body_of(DEFAULT, b"").data == b""
    assert body_of(DEFAULT, text_body("written by a CORE client")).data == b"written by a CORE client"
    other = body_of(DEFAULT, b"\xff\0")
    assert other.data == b"\xff\0" and other.binary
    damaged = body_of(MAP, b"\1\0\0\0\x05")
    assert damaged.data == b"\1\0\0\0\x05" and damaged.binary
    compressed = body_of(TEXT, zlib.compress(text_body("x" * 1000)), _AMQ_LARGE_COMPRESSED=True)
    assert compressed.data == b"x" * 1000 and not compressed.encoding
    bomb = body_of(BYTES, zlib.compress(bytes(DECOMPRESSED_BYTES_MAX + 1)), _AMQ_LARGE_COMPRESSED=True)
    assert bomb.encoding == "deflate" and len(bomb.data) < 1 << 20
    assert body_of(TEXT, text_body("a\ud800b")).data == b"a?b"
