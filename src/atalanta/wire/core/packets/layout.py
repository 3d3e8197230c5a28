"""Layouts of packets, read once from their fields: one pair of functions encodes and decodes all packets."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, cast

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.log_position import Position, decode_position, encode_position
from atalanta.wire.core.lost_range import LostRange, decode_lost_range, encode_lost_range
from atalanta.wire.core.packet_types import NEWEST_VERSION
from atalanta.wire.core.packets.base import (
    BOOL,
    INT8,
    INT8S,
    INT32,
    INT64,
    LOST_RANGES,
    NULLABLE_BOOL,
    NULLABLE_INT32,
    NULLABLE_INT64,
    NULLABLE_SIMPLE_STRING,
    NULLABLE_STRING,
    NULLABLE_TRANSPORT,
    POSITION,
    REST,
    SIMPLE_STRING,
    SIMPLE_STRINGS,
    STRING,
    XID,
    XIDS,
    Packet,
)
from atalanta.wire.core.packets.transaction import Xid, decode_xid, encode_xid
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport


class Field:
    """A field of a packet; `absent` is its value in packets without it."""

    def __init__(
        self, name: str, encoding: int, since: int, may_lack: bool, absent: object
    ) -> None:
        if absent is MISSING and (may_lack or since):
            raise TypeError(f"{name} may be missing and has no default")
        self.name: str = name
        self.encoding: int = encoding
        self.since: int = since
        self.may_lack: bool = may_lack
        self.absent: object = absent


class Layout:
    """The fields of one packet class, in the order of its constructor."""

    def __init__(self, made: type[Packet]) -> None:
        self.made: type[Packet] = made
        self.fields: list[Field] = []
        declared: Any = made
        tail = False
        for each in fields(declared):
            tail = tail or each.metadata["tail"] != 0
            encoding: int = each.metadata["encoding"]
            since: int = each.metadata["since"]
            self.fields.append(Field(each.name, encoding, since, tail, each.default))

    def decode(self, reader: Reader, version: int) -> Packet:
        """Decodes a packet. DecodeError names the field."""
        if version == 0:
            version = NEWEST_VERSION
        values: list[object] = []
        for field in self.fields:
            ended = reader.position == reader.end and (field.may_lack or field.since > 0)
            if ended or version < field.since:
                values.append(field.absent)
            else:
                values.append(decode_field(reader, field.encoding, field.name))
        return self.made(*values)

    def encode(self, writer: Writer, packet: Packet, version: int) -> None:
        if version == 0:
            version = NEWEST_VERSION
        for field in self.fields:
            if version >= field.since:
                encode_field(writer, field.encoding, getattr(packet, field.name))


def decode_field(reader: Reader, encoding: int, what: str) -> object:
    """Decodes a value. DecodeError names `what`."""
    if encoding == BOOL:
        return reader.boolean(what)
    if encoding == INT64:
        return reader.int64(what)
    if encoding == INT32:
        return reader.int32(what)
    if encoding == SIMPLE_STRING:
        return reader.simple_string(what)
    if encoding == NULLABLE_SIMPLE_STRING:
        return reader.nullable_simple_string(what)
    if encoding == INT8:
        return reader.int8(what)
    if encoding == STRING:
        return reader.string(what)
    if encoding == NULLABLE_STRING:
        return reader.nullable_string(what)
    if encoding == NULLABLE_BOOL:
        return reader.nullable_boolean(what)
    if encoding == NULLABLE_INT32:
        return reader.nullable_int32(what)
    if encoding == NULLABLE_INT64:
        return reader.nullable_int64(what)
    if encoding == NULLABLE_TRANSPORT:
        return decode_transport(reader, what) if reader.boolean(what) else None
    if encoding == XID:
        return decode_xid(reader, what)
    if encoding == SIMPLE_STRINGS:
        return [reader.simple_string(what) for _ in range(reader.count(what, 4))]
    if encoding == INT8S:
        return [reader.int8(what) for _ in range(reader.count(what, 1))]
    if encoding == XIDS:
        return [decode_xid(reader, what) for _ in range(reader.count(what, 12))]
    if encoding == LOST_RANGES:
        return [decode_lost_range(reader, what) for _ in range(reader.count(what, 20))]
    if encoding == POSITION:
        return decode_position(reader)
    if encoding == REST:
        return reader.rest()
    raise DecodeError(what, int(reader.position), f"encoding {encoding} is unknown")


def encode_field(writer: Writer, encoding: int, value: object) -> None:
    if encoding == BOOL:
        writer.boolean(cast(bool, value))
    elif encoding == INT64:
        writer.int64(cast(int, value))
    elif encoding == INT32:
        writer.int32(cast(int, value))
    elif encoding == SIMPLE_STRING:
        writer.simple_string(cast(str, value))
    elif encoding == NULLABLE_SIMPLE_STRING:
        writer.nullable_simple_string(cast(str | None, value))
    elif encoding == INT8:
        writer.int8(cast(int, value))
    elif encoding == STRING:
        writer.string(cast(str, value))
    elif encoding == NULLABLE_STRING:
        writer.nullable_string(cast(str | None, value))
    elif encoding == NULLABLE_BOOL:
        writer.nullable_boolean(cast(bool | None, value))
    elif encoding == NULLABLE_INT32:
        writer.nullable_int32(cast(int | None, value))
    elif encoding == NULLABLE_INT64:
        writer.nullable_int64(cast(int | None, value))
    elif encoding == NULLABLE_TRANSPORT:
        encode_nullable_transport(writer, cast(TransportConfiguration | None, value))
    elif encoding == XID:
        encode_xid(writer, cast(Xid, value))
    elif encoding == POSITION:
        encode_position(writer, cast(Position, value))
    elif encoding == REST:
        writer.raw(cast(bytes, value))
    else:
        encode_list(writer, encoding, cast(list[object], value))


def encode_nullable_transport(writer: Writer, value: TransportConfiguration | None) -> None:
    writer.boolean(value is not None)
    if value is not None:
        encode_transport(writer, value)


def encode_list(writer: Writer, encoding: int, values: list[object]) -> None:
    writer.int32(len(values))
    for value in values:
        if encoding == SIMPLE_STRINGS:
            writer.simple_string(cast(str, value))
        elif encoding == INT8S:
            writer.int8(cast(int, value))
        elif encoding == XIDS:
            encode_xid(writer, cast(Xid, value))
        else:
            encode_lost_range(writer, cast(LostRange, value))
