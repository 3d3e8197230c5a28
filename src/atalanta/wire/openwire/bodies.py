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
# A body may inflate to so many bytes, a map or stream (whose values cost more) to fewer, and in any case to a multiple
# of what was sent.
SMALL_BYTES_MAX: Final = 16 << 20
SMALL_VALUES_BYTES_MAX: Final = 1 << 20
RATIO_MAX: Final = 32
STEP_BYTES: Final = 1 << 20
CONTENT: Final = "OpenWireMessage.content"


class InflatedTooLarge(DecodeError):
    """A compressed body that becomes larger than allowed."""


def properties_of(message: OpenWireMessage) -> dict[str, object]:
    """Returns the application's properties, decoded at each call. DecodeError: not readable."""
    data = message.marshalled_properties
    return {} if data is None else decode_map(data, "OpenWireMessage.marshalled_properties")


def content_of(message: OpenWireMessage, bytes_max: int = INFLATED_BYTES_MAX) -> bytes | None:
    """Returns the body without compression, None without a body. DecodeError: damaged, or more than `bytes_max`."""
    content = message.content
    if content is None or not message.compressed:
        return content
    inflater = BodyInflater(message.code(), content, bytes_max)
    while not inflater.step(STEP_BYTES):
        pass
    return inflater.content()


def inflated_bytes_max(code: int, size: int, bytes_max: int) -> int:
    """Returns how many bytes a compressed body of `size` bytes may have, at most `bytes_max`."""
    small = SMALL_VALUES_BYTES_MAX if code == codes.MAP_MESSAGE or code == codes.STREAM_MESSAGE else SMALL_BYTES_MAX
    return min(max(small, RATIO_MAX * size), bytes_max)


class BodyInflater:
    """A compressed body that is inflated in steps. `size` counts the bytes so far.

    Java compresses the whole buffer of an ActiveMQBytesMessage, so more than the body follows it.
    """

    def __init__(self, code: int, content: bytes, bytes_max: int) -> None:
        """DecodeError if the announced size is damaged or too large."""
        self.size: int = 0
        self._bytes_max = bytes_max
        self._announced: int = -1  # of a BytesMessage
        self._rest: bytes = content
        self._pieces: list[bytes] = []
        self._inflater = zlib.decompressobj()
        if code == codes.BYTES_MESSAGE:
            self._announced = 0
            if content:
                self._announced = Reader(content).int32(CONTENT)
                self._rest = content[4:]
            if self._announced < 0:
                raise DecodeError(CONTENT, 0, f"{self._announced} bytes when inflated")
            if self._announced > bytes_max:
                raise InflatedTooLarge(CONTENT, 0, f"{self._announced} bytes when inflated: at most {bytes_max}")

    def step(self, bytes_max: int) -> bool:
        """Inflates at most so many bytes more. Returns True at the end. DecodeError: damaged, or too large."""
        announced = self._announced
        if announced == self.size:
            return True
        left = (self._bytes_max + 1 if announced < 0 else announced) - self.size
        try:
            piece = self._inflater.decompress(self._rest, min(left, bytes_max))
        except zlib.error as error:
            raise DecodeError(CONTENT, 0, f"not compressed with zlib: {error}") from None
        self._pieces.append(piece)
        self.size += len(piece)
        self._rest = self._inflater.unconsumed_tail
        if announced < 0 and self.size > self._bytes_max:
            raise InflatedTooLarge(CONTENT, 0, f"more than {self._bytes_max} bytes when inflated")
        if announced == self.size or (announced < 0 and self._inflater.eof):
            return True
        if self._inflater.eof or not piece:
            why = "the compressed bytes end too early"
            if announced >= 0:
                why = f"{self.size} bytes inflated, {announced} announced"
            raise DecodeError(CONTENT, len(self._rest), why)
        return False

    def drop(self) -> None:
        """Frees what is inflated."""
        self._pieces.clear()
        self._rest = b""

    def content(self) -> bytes:
        """Returns the whole body."""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]


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
