"""Bodies of messages as activemq-client writes them, also compressed."""

from __future__ import annotations

from typing import cast

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.properties import Byte, Char, Float, Int, Short
from atalanta.wire.openwire import bodies
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
    OpenWireMessage,
)
from atalanta.wire.openwire.encoding.primitives import encode_map
from tests.wire.openwire.samples import lines

CLASSES = {
    "text": ActiveMQTextMessage, "bytes": ActiveMQBytesMessage, "map": ActiveMQMapMessage,
    "stream": ActiveMQStreamMessage,
}  # fmt: skip
TEXT = "hé 😀 \0" + "x" * 50
MAP = {
    "boolean": True, "byte": Byte(-1), "char": Char("x"), "short": Short(-2), "int": Int(-3), "long": -4,
    "float": Float(1.5), "double": 2.5, "string": "té", "big": "b" * 9000, "bytes": b"\1\2", "null": None,
    "map": {"a": Int(1)}, "list": ["x", 2, None],
}  # fmt: skip
STREAM = [True, Int(5), "text", b"\7\x08", None, "b" * 9000]


def written(kind: str, is_compressed: bool) -> OpenWireMessage:
    """Returns a message with a body that Java wrote."""
    for entry in lines("bodies"):
        if (entry["kind"], entry["compressed"]) == (kind, is_compressed):
            content = bytes.fromhex(cast(str, entry["content"]))
            return CLASSES[kind](content=content, compressed=is_compressed)
    raise AssertionError(kind)


@pytest.mark.parametrize("is_compressed", [False, True])
def test_bodies_of_java(is_compressed: bool) -> None:
    text = bodies.content_of(written("text", is_compressed))
    assert bodies.text_of(text) == TEXT and bodies.text_content(TEXT) == text
    assert bodies.content_of(written("bytes", is_compressed)) == bytes(300)
    entries = bodies.map_of(bodies.content_of(written("map", is_compressed)))
    assert entries == MAP and {n: type(v) for n, v in entries.items()} == {n: type(v) for n, v in MAP.items()}
    stream = bodies.content_of(written("stream", is_compressed))
    values = bodies.stream_of(stream)
    assert values == STREAM and [type(each) for each in values] == [type(each) for each in STREAM]
    assert bodies.stream_content(values) == stream


def test_a_map_is_written_as_it_was_read() -> None:
    content = bodies.content_of(written("map", False))
    assert bodies.map_content(bodies.map_of(content)) == content


@pytest.mark.parametrize("kind", ["text", "bytes", "map", "stream"])
def test_compressed_bodies_are_read_again(kind: str) -> None:
    content = bodies.content_of(written(kind, False))
    assert content is not None
    message = CLASSES[kind]()
    packed = bodies.compressed(message.code(), content)
    again = CLASSES[kind](content=packed, compressed=True)
    assert bodies.content_of(again) == content


def test_messages_without_a_body() -> None:
    assert bodies.content_of(ActiveMQMessage()) is None
    assert bodies.text_of(None) is None and bodies.text_of(b"\xff\xff\xff\xff") is None
    assert bodies.map_of(None) == {} and bodies.stream_of(None) == []
    assert bodies.content_of(ActiveMQBytesMessage(content=b"", compressed=True)) == b""


def test_inflating_has_a_limit() -> None:
    packed = bodies.compressed(28, bytes(1 << 20))
    message = ActiveMQTextMessage(content=packed, compressed=True)
    with pytest.raises(DecodeError, match="more than 1000 bytes when inflated"):
        bodies.content_of(message, 1000)
    large = ActiveMQBytesMessage(content=b"\x7f\xff\xff\xff" + packed, compressed=True)
    with pytest.raises(DecodeError, match="2147483647 bytes when inflated"):
        bodies.content_of(large)


@pytest.mark.parametrize("kind", ["text", "bytes", "map", "stream"])
def test_damaged_compression_is_a_decode_error(kind: str) -> None:
    content = written(kind, True).content
    assert content is not None
    # The body of a BytesMessage is complete before the compressed bytes end.
    for end in range(1, 12 if kind == "bytes" else len(content)):
        with pytest.raises(DecodeError):
            bodies.content_of(CLASSES[kind](content=content[:end], compressed=True))
    with pytest.raises(DecodeError):
        bodies.content_of(CLASSES[kind](content=b"\0\0\0\1" + b"\0" * 20, compressed=True))


def test_properties_are_read_when_asked_for() -> None:
    message = ActiveMQMessage(marshalled_properties=encode_map("properties", {"color": "red"}))
    assert bodies.properties_of(message) == {"color": "red"}
    assert bodies.properties_of(ActiveMQMessage()) == {}
    with pytest.raises(DecodeError, match="marshalled_properties"):
        bodies.properties_of(ActiveMQMessage(marshalled_properties=b"\0\0\0\1"))
