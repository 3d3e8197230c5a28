"""The broker's message: what was received stays as it is until somebody changes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.codec import (
    decode_header,
    decode_message,
    encode_header,
    encode_message,
    text_body,
)
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import NO_ROUTING_TYPE, TEXT, Message
from atalanta.message.properties import Byte, Int, PropertyValue
from tests.message.property_strategies import PROPERTIES


def sample() -> Message:
    message = Message.create("orders", text_body("hello"), TEXT, True, 1_700_000_000_000, 9)
    message.id = 4711
    message.expiration = 1_700_000_060_000
    message.user_id = bytes(range(16))
    message.put_property("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
    message.put_property("amount", Int(3))
    return message


def received() -> Message:
    return decode_message(Reader(encode_message(sample(), 4711)))


def test_all_headers_come_back() -> None:
    message = received()
    assert (message.id, message.address, message.kind) == (4711, "orders", TEXT)
    assert (message.durable, message.priority) == (True, 9)
    assert (message.timestamp, message.expiration) == (1_700_000_000_000, 1_700_000_060_000)
    assert message.user_id == bytes(range(16))
    assert message.text() == "hello"
    assert message.properties.items() == [("_AMQ_ROUTING_TYPE", 1), ("amount", 3)]


def test_the_same_bytes_go_out_under_another_id() -> None:
    encoded = encode_message(sample(), 4711)
    again = encode_message(received(), 99)
    assert again.replace((99).to_bytes(8, "big"), (4711).to_bytes(8, "big")) == encoded


def test_an_unusual_encoding_is_kept_until_a_change() -> None:
    """0xFF for a durable flag of 1: what Python clients of ours send."""
    head = sample().head
    odd = bytearray(encode_header(sample()))
    position = 8 + 1 + 4 + 12 + 1 + 16 + 1
    assert odd[position] == 1
    odd[position] = 0xFF
    message = decode_header(Reader(bytes(odd)))
    assert message.durable
    assert encode_header(message) == bytes(odd)
    assert encode_header(message.copy(4711)) == bytes(odd)
    message.priority = 9
    assert message.head == head


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("address", "elsewhere"),
        ("kind", 4),
        ("durable", False),
        ("expiration", 0),
        ("timestamp", 5),
        ("priority", 0),
        ("user_id", None),
    ],
)
def test_a_changed_header_travels_and_the_rest_stays(name: str, value: object) -> None:
    message = received()
    setattr(message, name, value)
    again = decode_message(Reader(encode_message(message, 4711)))
    for header in ("address", "kind", "durable", "expiration", "timestamp", "priority", "user_id"):
        expected = value if header == name else getattr(sample(), header)
        assert getattr(again, header) == expected
    assert again.properties == sample().properties


def test_changed_properties_travel() -> None:
    message = received()
    message.properties.put("amount", 4)
    message.remove_property("_AMQ_ROUTING_TYPE")
    message.put_property("more", "x")
    again = decode_message(Reader(encode_message(message, 1)))
    assert again.properties.items() == [("amount", 4), ("more", "x")]
    message.properties.entries.clear()
    message.properties_changed()
    assert decode_message(Reader(encode_message(message, 1))).properties.items() == []


def test_a_copy_is_on_its_own() -> None:
    original = received()
    original.put_property("late", 1)
    original.lsn = 8
    twin = original.copy(12)
    twin.address = "elsewhere"
    twin.put_property("amount", 9)
    assert (twin.id, twin.lsn, twin.references) == (12, -1, [])
    assert twin.properties.get("late") == 1
    assert (original.address, original.properties.get("amount")) == ("orders", 3)


@pytest.mark.parametrize("name, special", [("name", False), ("_AMQ_GROUP_ID", True)])
def test_a_settled_message_is_like_a_received_one(name: str, special: bool) -> None:
    message = sample()
    message.put_property(name, "x")
    message.settle()
    assert message.special == special and message.routing_type == ANYCAST and message.user_id == bytes(range(16))
    decoded = decode_message(Reader(encode_message(message, 4711)))
    assert decoded.special == special
    assert list(decoded.properties.items()) == list(message.properties.items())
    assert message.properties.get(name) == "x"


def test_size_covers_body_and_head() -> None:
    small = sample().size
    message = sample()
    message.body = message.body + bytes(1000)
    assert message.size == small + 1000
    message.put_property("long", "x" * 500)
    assert message.size > small + 2000
    assert received().size == small


def test_headers_are_read_without_decoding_properties() -> None:
    message = received()
    assert message.routing_type == ANYCAST
    assert message.has_property("amount")
    assert not message.has_property("missing")
    assert message.property_value("amount") == 3
    assert message.property_value("missing") is None
    assert not message.remove_property("missing")
    assert message._properties is None


@pytest.mark.parametrize("decode_first", [False, True])
@pytest.mark.parametrize(
    ("value", "duplicate_id"),
    [(b"\x00id", b"\x00id"), ("id", b"i\x00d\x00"), (5, None), (None, None)],
)
def test_duplicate_ids(
    value: PropertyValue, duplicate_id: bytes | None, decode_first: bool
) -> None:
    message = sample()
    message.put_property("_AMQ_DUPL_ID", value)
    message = decode_message(Reader(encode_message(message, 1)))
    if decode_first:
        assert "amount" in message.properties
    assert message.duplicate_id == duplicate_id


@pytest.mark.parametrize("decode_first", [False, True])
def test_what_nobody_said(decode_first: bool) -> None:
    message = decode_message(Reader(encode_message(Message.create("a"), 1)))
    if decode_first:
        assert len(message.properties) == 0
    assert message.routing_type == NO_ROUTING_TYPE
    assert message.duplicate_id is None
    assert message.group_id is None
    assert message.user_id is None


def test_group_id() -> None:
    message = sample()
    message.put_property("_AMQ_GROUP_ID", "g")
    assert message.group_id == "g"
    assert decode_message(Reader(encode_message(message, 1))).group_id == "g"


def test_text_bodies() -> None:
    message = Message.create("a", text_body(None), TEXT)
    assert message.text() is None
    for body in (b"", bytes(4)):
        message.body = body
        assert message.text() is None
        assert decode_message(Reader(encode_message(message, 1))).body == body
    message.body = b"\x01\x00\x00"
    with pytest.raises(DecodeError, match="text body"):
        message.text()


def test_a_user_id_is_a_uuid() -> None:
    with pytest.raises(ValueError, match="user_id has 3 bytes"):
        sample().user_id = b"abc"


def test_a_body_shorter_than_its_length_is_refused() -> None:
    with pytest.raises(DecodeError, match="body at byte 4: negative length -13"):
        decode_message(Reader(bytes(40)))
    with pytest.raises(DecodeError, match="body at byte 4: needs"):
        decode_message(Reader(bytes.fromhex("7fffffff") + bytes(40)))


@given(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.text(max_size=20),
    st.binary(max_size=60),
    st.integers(-128, 127),
    st.booleans(),
    st.integers(-128, 127),
    st.none() | st.binary(min_size=16, max_size=16),
    PROPERTIES,
)
def test_any_message_comes_back(
    message_id: int,
    address: str,
    body: bytes,
    kind: int,
    durable: bool,
    priority: int,
    user_id: bytes | None,
    properties: dict[str, PropertyValue],
) -> None:
    message = Message.create(address, body, kind, durable, -1, priority)
    message.user_id = user_id
    for name, value in properties.items():
        message.put_property(name, value)
    encoded = encode_message(message, message_id)
    reader = Reader(encoded)
    again = decode_message(reader)
    assert reader.left() == 0
    assert encode_message(again, message_id) == encoded
    assert (again.id, again.address, again.body) == (message_id, address, body)
    assert (again.kind, again.durable, again.priority) == (kind, durable, priority)
    assert (again.timestamp, again.user_id) == (-1, user_id)
    assert again.properties == message.properties
    again.properties_changed()
    assert encode_message(again, message_id) == encoded
    for size in range(0, len(encoded), 7):
        with pytest.raises(DecodeError):
            decode_message(Reader(encoded, 0, size))
