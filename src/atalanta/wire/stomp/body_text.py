"""Bodies of CORE messages as a STOMP client can read them: texts in UTF-8, maps and streams in JSON.

Artemis sends the raw encoding of maps and streams. Here a number stays a number, bytes become hexadecimal digits, and a
body that cannot be decoded is sent as it is.
"""

from __future__ import annotations

import json
import zlib
from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import COMPRESSED, DEFAULT, MAP, OBJECT, STREAM, TEXT, Message
from atalanta.message.properties import STRING, PropertyValue, TypedProperties, decode_value

JSON_TYPE: Final = "application/json"
# A compressed body that becomes larger is sent as it is.
DECOMPRESSED_BYTES_MAX: Final = 16 << 20
OBJECT_LENGTH_BYTES: Final = 4


class Body:
    """The body of a MESSAGE frame. `binary`: no text. `content_type` and `encoding` are "" unless they must be said."""

    def __init__(self, data: bytes, binary: bool, content_type: str, encoding: str) -> None:
        self.data = data
        self.binary = binary
        self.content_type = content_type
        self.encoding = encoding


def body_of(message: Message) -> Body:
    """Returns the body of a message that is in memory."""
    data = message.body
    kind = message.kind
    if message.property_value(COMPRESSED) is True:
        plain = decompressed(data)
        if plain is None:
            return Body(data, True, "", "deflate")
        data = plain
    try:
        if kind in (TEXT, DEFAULT):  # what a CORE client has written into one without a type is read as its text
            return Body(_text(data), False, "", "")
        if kind == MAP:
            return Body(_json(_map(data)), False, JSON_TYPE, "")
        if kind == STREAM:
            return Body(_json(_stream(data)), False, JSON_TYPE, "")
    except DecodeError:
        return Body(data, True, "", "")
    if kind == OBJECT and len(data) >= OBJECT_LENGTH_BYTES:
        data = data[OBJECT_LENGTH_BYTES:]
    return Body(data, True, "", "")


def decompressed(data: bytes) -> bytes | None:
    """Returns the data before its sender compressed it; None if it is damaged or too large."""
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(data, DECOMPRESSED_BYTES_MAX)
    except zlib.error:
        return None
    return plain if inflater.eof else None


def property_text(value: PropertyValue) -> str:
    """Returns the value of a property as a header has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return "" if value is None else str(value)


def _text(data: bytes) -> bytes:
    text = Message.create("", data, TEXT).text()
    return b"" if text is None else text.encode("utf-8", "replace")


def _map(data: bytes) -> object:
    reader = Reader(data)
    found = TypedProperties.decode(reader) if data else TypedProperties()
    return {name: _plain(value) for name, value in found.items()}


def _stream(data: bytes) -> object:
    reader = Reader(data)
    found: list[object] = []
    while reader.left() > 0:
        code = reader.uint8("stream")
        if code == STRING:
            found.append(reader.nullable_string("stream"))
        else:
            found.append(_plain(decode_value(reader, code, "stream")))
    return found


def _plain(value: PropertyValue) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)  # JSON has no such numbers
    return value


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
