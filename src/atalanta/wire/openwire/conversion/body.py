"""Bodies of messages: from OpenWire's encodings to CORE's and back."""

from __future__ import annotations

import zlib
from typing import Final

from librt.strings import BytesWriter, read_i32_be, write_i32_be
from mypy_extensions import i32, u8

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, decode_utf16, encode_utf16
from atalanta.message.message import (
    BYTES,
    COMPRESSED,
    DEFAULT,
    MAP,
    OBJECT,
    STREAM,
    TEXT,
    TEXT_LENGTHS_BYTES,
    Message,
    text_of_body,
)
from atalanta.message.properties import (
    BYTE,
    CHAR,
    FLOAT,
    INT,
    SHORT,
    STRING,
    Byte,
    Char,
    Float,
    Int,
    PropertyValue,
    Short,
    TypedProperties,
    decode_value,
    encode_value,
    plain_value,
    type_of_value,
)
from atalanta.wire.openwire.bodies import (
    content_of,
    inflated_bytes_max,
    map_content,
    map_of,
    stream_content,
    stream_of,
    text_content,
    text_of,
)
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion.nested_values import NESTED_BODY, NestedValues, nested_values

KINDS: Final = {
    codes.MESSAGE: DEFAULT,
    codes.BYTES_MESSAGE: BYTES,
    codes.MAP_MESSAGE: MAP,
    codes.OBJECT_MESSAGE: OBJECT,
    codes.STREAM_MESSAGE: STREAM,
    codes.TEXT_MESSAGE: TEXT,
}
CODES: Final = {
    DEFAULT: codes.MESSAGE,
    BYTES: codes.BYTES_MESSAGE,
    MAP: codes.MAP_MESSAGE,
    OBJECT: codes.OBJECT_MESSAGE,
    STREAM: codes.STREAM_MESSAGE,
    TEXT: codes.TEXT_MESSAGE,
}
INFLATED_BYTES_MAX: Final = 100 << 20


class Body:
    """A body for an OpenWire client: the type of its message, and the content. `failure`: why it is not converted."""

    def __init__(self, code: int, content: bytes | None, failure: str = "") -> None:
        self.code = code
        self.content = content
        self.failure = failure


def primitive_of(code: int, value: PropertyValue) -> object:
    """Returns a property of CORE, of type `code`, as OpenWire's primitives have it.

    Each class has a return of its own: in a conditional expression beside an int, mypyc makes a plain int of a Byte.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if code == INT:
            return Int(value)
        if code == SHORT:
            return Short(value)
        if code == BYTE:
            return Byte(value)
        return value
    if isinstance(value, float):
        if code == FLOAT:
            return Float(value)
        return value
    if isinstance(value, str) and code == CHAR:
        return Char(value)
    return value


# -- from OpenWire --------------------------------------------------------------------------------
def core_body(source: OpenWireMessage, bytes_max: int, nested: NestedValues) -> tuple[int, bytes]:
    """Returns CORE's kind and body; `nested` gets its maps and lists. DecodeError: damaged. BrokerError: a blob."""
    code = source.code()
    kind = KINDS.get(code)
    if kind is None:
        raise BrokerError(
            ILLEGAL_STATE, "a BlobMessage is not supported: its body is at another server; send a BytesMessage"
        )
    content = content_of(source, bytes_max)
    if kind == TEXT:
        return kind, _core_text(content)
    if kind == BYTES:
        return kind, content or b""
    if kind == MAP:
        return kind, _core_map(map_of(content), nested)
    if kind == STREAM:
        return kind, _core_stream(stream_of(content), nested)
    if kind == OBJECT:
        writer = Writer()
        writer.blob(content or b"")
        return kind, writer.getvalue()
    return kind, b""


def _core_text(content: bytes | None) -> bytes:
    """Returns the text of a text message; most are ASCII, for which the lengths suffice."""
    if content is None or len(content) < 4 or read_i32_be(content, 0) != len(content) - 4:
        return text_body(text_of(content))
    characters = content[4:]
    if not characters.isascii():
        return text_body(text_of(content))
    encoded = encode_utf16(characters.decode("ascii"))
    out = BytesWriter()
    out.append(u8(1))
    write_i32_be(out, i32(len(encoded)))
    out.write(encoded)
    return out.getvalue()


def _core_map(values: dict[str, object], nested: NestedValues) -> bytes:
    properties = TypedProperties()
    for name, value in values.items():
        properties.put(name, nested.flat(name, value))
    writer = Writer()
    properties.encode(writer)
    return writer.getvalue()


def _core_stream(values: list[object], nested: NestedValues) -> bytes:
    writer = Writer()
    for index, each in enumerate(values):
        value = nested.flat(str(index), each)
        code = type_of_value(value)
        if value is None:
            code = STRING  # StreamMessage of CORE writes null as a null text
        writer.int8(code)
        if code == STRING:
            writer.nullable_string(value if isinstance(value, str) else None)
        else:
            encode_value(writer, code, plain_value("a StreamMessage", code, value))
    return writer.getvalue()


# -- to OpenWire ----------------------------------------------------------------------------------
def openwire_body(message: Message, data: bytes) -> Body:
    """Returns the body for an OpenWire client; `data` is the body of the message, also of a large one.

    What cannot be converted becomes a BytesMessage, with the reason.
    """
    code = CODES.get(message.kind)
    if code is None:
        return Body(codes.BYTES_MESSAGE, data, f"kind {message.kind} has no form in OpenWire")
    try:
        if message.special and message.property_value(COMPRESSED) is True:
            data = _inflated(code, data)
        return Body(code, _content(message, data))
    except DecodeError as error:
        return Body(codes.BYTES_MESSAGE, data, str(error))


def _inflated(code: int, data: bytes) -> bytes:
    """Returns a body that a CORE client compressed as a large message."""
    inflater = zlib.decompressobj()
    bytes_max = inflated_bytes_max(code, len(data), INFLATED_BYTES_MAX)
    try:
        plain = inflater.decompress(data, bytes_max)
    except zlib.error as error:
        raise DecodeError("body", 0, f"not compressed with zlib: {error}") from None
    if not inflater.eof:
        raise DecodeError("body", 0, f"the end is missing, or it has more than {bytes_max} bytes")
    return plain


def _content(message: Message, data: bytes) -> bytes | None:
    kind = message.kind
    if kind == TEXT:
        return _text_content(data)
    if kind == MAP:
        return map_content(_map_values(data, nested_values(message.property_value(NESTED_BODY))))
    if kind == STREAM:
        return stream_content(_stream_values(data, nested_values(message.property_value(NESTED_BODY))))
    if kind == OBJECT:
        return Reader(data).blob("object") if data else None
    return data or None


def _text_content(data: bytes) -> bytes | None:
    size = len(data) - TEXT_LENGTHS_BYTES
    if size >= 0 and size % 2 == 0 and data[0] == 1 and read_i32_be(data, 1) == size:
        text = decode_utf16(data[TEXT_LENGTHS_BYTES:])
        if text.isascii() and "\0" not in text:
            encoded = text.encode("ascii")
            out = BytesWriter()
            write_i32_be(out, i32(len(encoded)))
            out.write(encoded)
            return out.getvalue()
    found = text_of_body(data)
    return None if found is None else text_content(found)


def _map_values(data: bytes, nested: NestedValues) -> dict[str, object]:
    found = TypedProperties.decode(Reader(data)) if data else TypedProperties()
    return {
        name: nested.put_back(name, primitive_of(code, value)) for name, (code, value) in found.entries.items()
    }


def _stream_values(data: bytes, nested: NestedValues) -> list[object]:
    reader = Reader(data)
    found: list[object] = []
    while reader.left() > 0:
        code = reader.uint8("stream")
        if code == STRING:
            found.append(nested.put_back(str(len(found)), reader.nullable_string("stream")))
        else:
            found.append(primitive_of(code, decode_value(reader, code, "stream")))
    return found
