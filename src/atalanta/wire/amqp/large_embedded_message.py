"""AMQP messages that come in pieces: large messages of type 8, and those of type 7 that a bridge sends as large.

The header of type 8 has the record of AMQPLargeMessagePersister in `_AMQP_EMBED_LARGE`: int8 4 · int64 message id ·
bool durable · int64 message format · ss? address · int32 size, 0 or typed properties · int32 position and int32 size
of the header, the header · int32 position and int32 size of the delivery annotations · int32 position of the message
annotations, the annotations · int32 position of the properties, the properties · int32 position of the application
properties, int32 position of the body, the application properties · int64 expiration · bool re-encoded. The pieces
are the AMQP message. Only the body and the footer count: the sections before may have changed.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.ports import Trace
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.message.message import BYTES, EMBEDDED, LARGE_EMBEDDED, OBJECT, Message
from atalanta.wire.amqp.content_type import is_utf8_text
from atalanta.wire.amqp.conversion import ENCODED_DATA, JAVA_OBJECT, core_headers, core_message
from atalanta.wire.amqp.decoder import Decoder
from atalanta.wire.amqp.embedded_message import (
    LARGE_PROPERTY,
    Wrapper,
    put_wrapper,
    report_unreadable,
    unwrap,
    wrapper_properties,
)
from atalanta.wire.amqp.sections import DATA, Sections, decode_sections, read_section

LARGE_PERSISTER: Final = 4
NULL: Final = 0x40
PACKET: Final = "SESS_SEND_LARGE"
# Bodies other than data sections are converted in memory up to this size; a larger one stays as it came.
GATHERED_BYTES_MAX: Final = 32 << 20
# Sections behind the data: the footer.
TAIL_BYTES_MAX: Final = 1 << 20
# A data section as brokers and clients write it: its descriptor, and the constructors of a binary.
DATA_BEGIN: Final = b"\x00\x53\x75"
BINARY8, BINARY32 = 0xA0, 0xB0
DATA_HEADER_BYTES: Final = 8  # with an int32 length


def pieces_of(outer: Message, trace: Trace) -> EmbeddedPieces | None:
    """Returns the receiver of the pieces of a large message with this header; None if the message is not embedded.

    A message of type 8 whose wrapper cannot be read is reported and stays as it comes.
    """
    if outer.kind == EMBEDDED:
        return EmbeddedPieces(outer, trace)
    encoded = outer.property_value(LARGE_PROPERTY) if outer.kind == LARGE_EMBEDDED else None
    if not isinstance(encoded, bytes):
        return None
    try:
        return _large_pieces(outer, trace, encoded)
    except DecodeError as error:
        report_unreadable(trace, outer, PACKET, error)
        return None


def _large_pieces(outer: Message, trace: Trace, encoded: bytes) -> LargePieces:
    decoder = Decoder(encoded)
    reader = decoder.reader
    persister = reader.int8("persister id")
    if persister != LARGE_PERSISTER:
        raise DecodeError("persister id", 0, f"unknown id {persister}")
    reader.int64("message id")
    reader.boolean("durable")
    reader.int64("message format")
    address = reader.nullable_simple_string("address") or ""
    properties = wrapper_properties(reader)
    sections = Sections()
    _position_and_size(reader, "header")
    _section(decoder, sections)
    _position_and_size(reader, "delivery-annotations")
    reader.int32("message-annotations position")
    _section(decoder, sections)
    reader.int32("properties position")
    _section(decoder, sections)
    reader.int32("application-properties position")
    body_offset = reader.int32("body position")
    _section(decoder, sections)
    expiration = reader.int64("expiration") if reader.left() >= 8 else 0
    if not 0 <= body_offset <= GATHERED_BYTES_MAX:
        raise DecodeError("body position", int(reader.position), f"{body_offset}")
    wrapper = Wrapper(address, properties, max(0, expiration))
    return LargePieces(outer, trace, wrapper, sections, body_offset)


def _position_and_size(reader: Reader, name: str) -> None:
    reader.int32(f"{name} position")
    reader.int32(f"{name} size")


def _section(decoder: Decoder, sections: Sections) -> None:
    """Reads a section into `sections`, or the null of a missing one."""
    reader = decoder.reader
    if reader.left() and reader.data[reader.position] == NULL:
        reader.uint8()
    else:
        read_section(decoder, sections)


class EmbeddedPieces:
    """The pieces of a message of type 7. `add` and `finish` return the bytes for the file of the body."""

    def __init__(self, outer: Message, trace: Trace) -> None:
        self.outer = outer
        self.trace = trace
        self._gathered: bytearray | None = bytearray()  # None: the pieces are passed on

    def add(self, piece: bytes) -> bytes:
        """Takes the next piece."""
        gathered = self._gathered
        if gathered is None:
            return piece
        gathered += piece
        if len(gathered) <= GATHERED_BYTES_MAX:
            return b""
        self._tell(DecodeError("body", 0, f"more than {GATHERED_BYTES_MAX} bytes that are not data"))
        self._gathered = None
        return bytes(gathered)

    def finish(self, now: int) -> tuple[Message, bytes]:
        """Returns the message, and the rest of its body. `now` is in nanoseconds since the epoch."""
        gathered = self._gathered
        if gathered is None:
            return self.outer, b""
        self.outer.body = bytes(gathered)
        message = unwrap(self.outer, now, self.trace, PACKET)
        body = message.body
        message.body = b""
        return message, body

    def _tell(self, error: DecodeError) -> None:
        report_unreadable(self.trace, self.outer, PACKET, error)


class LargePieces(EmbeddedPieces):
    """The pieces of a message of type 8. Data sections are passed on as they come; any other body is converted."""

    def __init__(
        self, outer: Message, trace: Trace, wrapper: Wrapper, sections: Sections, body_offset: int
    ) -> None:
        super().__init__(outer, trace)
        self.wrapper = wrapper
        self.sections = sections
        self.body_offset = body_offset
        self.address = wrapper.address or outer.address
        content_type = None if sections.properties is None else sections.properties.content_type
        self._is_object = content_type == JAVA_OBJECT
        self._begins = content_type is None or not is_utf8_text(content_type)
        self._data: DataSections | None = None
        self._headers(0)  # DecodeError before any of the body has come

    def add(self, piece: bytes) -> bytes:
        """Takes the next piece."""
        if self._data is not None:
            return self._data.add(piece)
        found = super().add(piece)
        gathered = self._gathered
        if gathered is None or not self._begins:
            return found
        if len(gathered) < self.body_offset + DATA_HEADER_BYTES:
            return found
        self._begins = False
        header = data_header(gathered, self.body_offset)
        if header is None:
            return found
        self._data = DataSections()
        self._gathered = None
        first = self._data.add(bytes(gathered[self.body_offset :]))
        return (header[1].to_bytes(4, "big") if self._is_object else b"") + first

    def finish(self, now: int) -> tuple[Message, bytes]:
        """Returns the message, and the rest of its body. `now` is in nanoseconds since the epoch."""
        if self._data is not None:
            message, body = self._finish_data(self._data, now)
        else:
            message, body = self._finish_gathered(now)
        put_wrapper(message, self.outer, self.wrapper)
        return message, body

    def _finish_data(self, data: DataSections, now: int) -> tuple[Message, bytes]:
        """Ends a message with data sections. The data is complete, or passed on as far as it came if the rest is
        unreadable.
        """
        rest = Sections()
        try:
            rest = data.rest()
            self.sections.footer = rest.footer
            message = self._headers(now)
        except DecodeError as error:
            self._tell(error)
            self.sections.footer = None
            message = self._headers(now)
        return message, b"".join(rest.data)

    def _headers(self, now: int) -> Message:
        return core_headers(
            self.sections,
            OBJECT if self._is_object else BYTES,
            ENCODED_DATA,
            self.address,
            self.outer.durable,
            self.wrapper.expiration_ms,
            now,
        )

    def _finish_gathered(self, now: int) -> tuple[Message, bytes]:
        gathered = self._gathered
        if gathered is None:
            return self.outer, b""
        raw = bytes(gathered)
        try:
            if len(raw) < self.body_offset:
                raise DecodeError("body", len(raw), f"it should begin at byte {self.body_offset}")
            self.sections.take_body(decode_sections(raw, self.body_offset))
            message = core_message(
                self.sections, self.address, self.outer.durable, self.wrapper.expiration_ms, now
            )
        except DecodeError as error:
            self._tell(error)
            return self.outer, raw
        body = message.body
        message.body = b""
        return message, body


def data_header(data: bytes | bytearray, offset: int) -> tuple[int, int] | None:
    """Returns the size of a data section's header in bytes, and the length of its data; None if it is no data
    section.
    """
    begin = offset + len(DATA_BEGIN)
    if data[offset:begin] != DATA_BEGIN or len(data) < offset + DATA_HEADER_BYTES:
        return None
    if data[begin] == BINARY8:
        return len(DATA_BEGIN) + 2, data[begin + 1]
    if data[begin] == BINARY32:
        return DATA_HEADER_BYTES, int.from_bytes(data[begin + 1 : begin + 5], "big")
    return None


class DataSections:
    """The data of one data section after the other, as the pieces come."""

    def __init__(self) -> None:
        self._left = 0  # bytes left of the section
        self._behind = bytearray()
        self._is_tail = False

    def add(self, piece: bytes) -> bytes:
        """Returns the data in the next piece."""
        found = [piece[: self._left]]
        self._behind += piece[self._left :]
        self._left -= len(found[0])
        while self._left == 0 and not self._is_tail and len(self._behind) >= DATA_HEADER_BYTES:
            header = data_header(self._behind, 0)
            if header is None:
                self._is_tail = True
                break
            header_bytes, length = header
            data = bytes(self._behind[header_bytes : header_bytes + length])
            del self._behind[: header_bytes + length]
            found.append(data)
            self._left = length - len(data)
        del self._behind[TAIL_BYTES_MAX + 1 :]
        return b"".join(found)

    def rest(self) -> Sections:
        """Returns the sections behind the last data that was passed on: short data, and the footer."""
        if self._left:
            raise DecodeError("data", 0, f"{self._left} bytes are missing")
        if len(self._behind) > TAIL_BYTES_MAX:
            raise DecodeError("footer", 0, f"more than {TAIL_BYTES_MAX} bytes")
        sections = decode_sections(bytes(self._behind))
        if sections.kind not in (0, DATA):
            raise DecodeError("section", 0, "behind the data there is another body")
        return sections
