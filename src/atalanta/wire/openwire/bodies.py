"""Bodies of messages: text, bytes, map and stream, also compressed. The body of an ObjectMessage stays bytes.

Sources: ActiveMQTextMessage and its neighbours of activemq-client. All are compressed with zlib; of a BytesMessage an
int32 with the true length is before that.
"""

from __future__ import annotations

import zlib
from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.encoding.java_utf8 import decode_java_utf8
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.encoding.modified_utf8 import encode_modified_utf8
from atalanta.wire.openwire.encoding.primitives import (
    VALUES_MAX,
    PrimitiveReader,
    PrimitiveWriter,
    decode_map,
    encode_map,
)

INFLATED_BYTES_MAX: Final = 100 << 20
CONTENT: Final = "OpenWireMessage.content"


def properties_of(message: OpenWireMessage) -> dict[str, object]:
    """Returns the application's properties, decoded at each call. DecodeError: not readable."""
    data = message.marshalled_properties
    return {} if data is None else decode_map(data, "OpenWireMessage.marshalled_properties")


def content_of(message: OpenWireMessage, bytes_max: int = INFLATED_BYTES_MAX) -> bytes | None:
    """Returns the body without compression, None without a body. DecodeError: damaged, or more than `bytes_max`."""
    content = message.content
    if content is None or not message.compressed:
        return content
    if message.code() == codes.BYTES_MESSAGE:
        return _inflated_bytes(content, bytes_max)
    inflater = zlib.decompressobj()
    found = _inflated(inflater, content, bytes_max + 1)
    if len(found) > bytes_max:
        raise DecodeError(CONTENT, 0, f"more than {bytes_max} bytes when inflated")
    if not inflater.eof:
        raise DecodeError(CONTENT, len(content), "the compressed bytes end too early")
    return found


def _inflated_bytes(content: bytes, bytes_max: int) -> bytes:
    """Returns the body of an ActiveMQBytesMessage. Java compresses its whole buffer, so more than the body follows."""
    if not content:
        return content
    size = Reader(content).int32(CONTENT)
    if size < 0 or size > bytes_max:
        raise DecodeError(CONTENT, 0, f"{size} bytes when inflated: at most {bytes_max}")
    found = _inflated(zlib.decompressobj(), content[4:], size) if size else b""
    if len(found) != size:
        raise DecodeError(CONTENT, 0, f"{len(found)} bytes inflated, {size} announced")
    return found


def _inflated(inflater: zlib._Decompress, data: bytes, bytes_max: int) -> bytes:
    """Returns at most `bytes_max` bytes, which is above 0."""
    try:
        return inflater.decompress(data, bytes_max)
    except zlib.error as error:
        raise DecodeError(CONTENT, 0, f"not compressed with zlib: {error}") from None


def compressed(code: int, content: bytes) -> bytes:
    """Returns a body in the form that messages of type `code` with `compressed` have."""
    deflated = zlib.compress(content)
    return len(content).to_bytes(4, "big") + deflated if code == codes.BYTES_MESSAGE else deflated


def text_of(content: bytes | None) -> str | None:
    """Returns the text of an ActiveMQTextMessage's body: int32 length and modified UTF-8. Length -1 is null."""
    if content is None:
        return None
    reader = Reader(content)
    size = reader.int32("text")
    if size == -1:
        return None
    text = decode_java_utf8(reader.take(size, "text"))
    if text is None:
        raise DecodeError("text", 4, "not Java's UTF-8")
    return text


def text_content(text: str) -> bytes:
    """Returns the body of an ActiveMQTextMessage."""
    writer = Writer()
    writer.blob(encode_modified_utf8(text))
    return writer.getvalue()


def map_of(content: bytes | None) -> dict[str, object]:
    """Returns the entries of an ActiveMQMapMessage's body."""
    return {} if content is None else decode_map(content, "map")


def map_content(values: dict[str, object]) -> bytes:
    """Returns the body of an ActiveMQMapMessage."""
    return encode_map("map", values)


def stream_of(content: bytes | None) -> list[object]:
    """Returns the values of an ActiveMQStreamMessage's body, one behind the other to its end."""
    found: list[object] = []
    if content is None:
        return found
    reader = PrimitiveReader(content)
    while reader.left():
        if len(found) >= VALUES_MAX:
            raise DecodeError("stream", int(reader.reader.position), "too many values")
        found.append(reader.value("stream"))
    return found


def stream_content(values: list[object]) -> bytes:
    """Returns the body of an ActiveMQStreamMessage."""
    writer = PrimitiveWriter()
    for value in values:
        writer.value("stream", value)
    return writer.getvalue()
