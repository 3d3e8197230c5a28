"""Messages to bytes and back: types, headers, bodies, and what cannot travel."""

from __future__ import annotations

import uuid
import zlib

import pytest

from atalanta.client import Byte, Char, ClientError, Float, Int, Message, MessageTooLarge, Short
from atalanta.client.message import INFLATED_BYTES_MAX, Property, ReceivedMessage, inflate
from atalanta.client.producer import Encoder, outgoing
from atalanta.message.codec import decode_header
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import Message as BrokerMessage


def travelled(
    message: Message, address: str = "flights", routing: str | None = None, automatic: bool = False
) -> ReceivedMessage:
    """Returns the message as a consumer gets it."""
    head = Encoder(address, routing, automatic).head(message)
    received = decode_header(Reader(bytes(8) + head))
    received.body = message.body
    # The kernel's own encoder writes the very same bytes.
    again = received.copy(0)
    again.properties.changed = True
    assert again.head == head
    return ReceivedMessage(received, "queue")


def test_everything_arrives_as_it_was_sent() -> None:
    properties: dict[str, Property] = {
        "yes": True,
        "no": False,
        "long": -(1 << 63),
        "int": Int(-7),
        "short": Short(300),
        "byte": Byte(-128),
        "double": 0.1,
        "float": Float(0.5),
        "char": Char("ß"),
        "text": "naïve \U0001f680",
        "bytes": b"\x00\xff",
        "null": None,
        "": 1,
    }
    del properties[""]
    user_id = uuid.uuid4()
    sent = Message(
        text="ä\U0001f680",
        properties=properties,
        durable=False,
        priority=9,
        expires_at_ms=5,
        timestamp_ms=7,
        user_id=user_id,
        group_id="g",
        correlation_id=b"c",
        reply_to="queue://r",
        duplicate_id="d",
    )
    got = travelled(sent, "ad\u00e9", "anycast")
    assert got.properties == properties
    assert [type(value) for value in got.properties.values()] == [
        type(value) for value in properties.values()
    ]
    assert got.text == sent.text == "ä\U0001f680" and got.type == 3
    assert (got.address, got.routing_type, got.durable, got.priority) == (
        "ad\u00e9", "anycast", False, 9,
    )  # fmt: skip
    assert (got.expires_at_ms, got.timestamp_ms, got.user_id) == (5, 7, user_id)
    assert (got.group_id, got.correlation_id, got.reply_to) == ("g", b"c", "queue://r")
    assert got.duplicate_id == "d"
    copy = got.copy()
    assert travelled(copy, "ad\u00e9", "anycast").properties == properties
    assert copy.text == sent.text and copy.duplicate_id == "d"


def test_bodies() -> None:
    assert (travelled(Message(b"\x00\x01")).body, travelled(Message(b"x")).type) == (b"\x00\x01", 4)
    assert travelled(Message()).type == 0 and travelled(Message()).body == b""
    entries: dict[str, Property] = {"a": 1, "b": "c"}
    assert travelled(Message(map=entries)).map == entries
    assert travelled(Message(map={})).map == {}
    assert travelled(Message(b"x")).text is None and travelled(Message(text="")).text == ""
    with pytest.raises(ValueError, match="one of body, text and map"):
        Message(b"x", text="y")


def test_a_message_without_properties_has_none() -> None:
    got = travelled(Message(b"x"))
    assert got.properties == {} and got.duplicate_id is None and got.routing_type is None
    assert got.timestamp_ms > 1_700_000_000_000


def test_automatic_duplicate_ids_differ_and_give_way_to_given_ones() -> None:
    encoder = Encoder("a", None, True)
    ids = [decode_header(Reader(bytes(8) + encoder.head(Message()))).duplicate_id for _ in range(3)]
    assert len(set(ids)) == 3 and all(found is not None and len(found) == 24 for found in ids)
    assert travelled(Message(duplicate_id="mine"), automatic=True).duplicate_id == "mine"


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"n": 1 << 63}, "property n: 9223372036854775808"),
        ({"n": Int(1 << 31)}, "property n"),
        ({"n": Byte(200)}, "property n"),
        ({"f": Float(1e300)}, "property f: 1e\\+300: is too large"),
        ({"c": Char("ab")}, "property c"),
        ({"": 1}, "name is empty"),
    ],
)
def test_values_that_do_not_fit_are_named(properties: dict[str, Property], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Encoder("a", None, False).head(Message(properties=properties))


def test_other_types_and_headers_out_of_range_are_refused() -> None:
    encoder = Encoder("a", None, False)
    with pytest.raises(TypeError, match="property l: a list"):
        encoder.head(Message(properties={"l": []}))  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="priority 10"):
        encoder.head(Message(priority=10))
    with pytest.raises(ValueError, match="timestamp_ms"):
        encoder.head(Message(timestamp_ms=1 << 70))


def test_compressed_bodies_are_read_within_a_limit() -> None:
    message = BrokerMessage.create("a", zlib.compress(b"x" * 1000), 4)
    message.put_property("_AMQ_LARGE_COMPRESSED", True)
    assert ReceivedMessage(message, "q").body == b"x" * 1000
    with pytest.raises(ClientError, match="cannot be read"):
        inflate(b"nonsense")
    assert INFLATED_BYTES_MAX == 256 << 20 and issubclass(MessageTooLarge, ClientError)


def test_a_log_views_message_is_not_acknowledged_alone() -> None:
    with pytest.raises(ClientError, match="ack_through"):
        travelled(Message()).acknowledge()


def test_a_body_is_bytes_or_text() -> None:
    assert Message("hällo").text == Message(text="hällo").text == "hällo"
    assert Message("").text == ""
    assert Message(b"raw").body == Message(bytearray(b"raw")).body == Message(memoryview(b"raw")).body
    for wrong in (5, ["x"], {"a": 1}, object()):
        with pytest.raises(TypeError, match="bytes or str"):
            Message(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one of"):
        Message("a", text="b")
    with pytest.raises(ValueError, match="one of"):
        Message("a", map={})
    with pytest.raises(ValueError, match="one of"):
        Message("a", stream=b"b")


@pytest.mark.parametrize(
    ("found", "module"),
    [(BrokerMessage.create("flights", b"", 4, True, 0, 4), "atalanta.message.message.Message"), ("hello", "'str'")],
)
def test_what_is_no_message_of_the_client_is_named_with_its_module(found: object, module: str) -> None:
    with pytest.raises(TypeError, match=r"must be an atalanta\.client\.Message.*make one with") as refused:
        outgoing(found)
    assert module in str(refused.value)
