"""Layouts of packets as tables: a name and a word for each field, one pair of functions for all.

A layout is a text, `"queue ss, filter ss?, priority i32@130=0 | exclusive b?"`:
- the words are the primitives of fact sheet A1.0, and `tc?` (bool · TC), `blob` (int32 length ·
  bytes), `xid`, `ss*`, `i8*`, `xid*`, `lost*` (int32 count · entries), `rest` (all that is left);
- `@N`: the field is there from protocol version N on, otherwise it has the value after `=`;
- `|`: peers of older versions may end the packet before any of the fields that follow. Packets
  that still grow so, without a new type, end with `more rest`: what a newer peer added is skipped,
  as Artemis does, and goes out again as it came.
"""

from __future__ import annotations

from typing import Final, cast

from atalanta.kernel.buffer import DecodeError, Reader, Writer
from atalanta.wire.core.packets_base import Packet, field_words
from atalanta.wire.core.packets_lost_range import LostRange, decode_lost_range, encode_lost_range
from atalanta.wire.core.packets_xid import Xid, decode_xid, encode_xid
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport
from atalanta.wire.core.types import NEWEST_VERSION

BOOL: Final = 0
INT8: Final = 1
INT32: Final = 2
INT64: Final = 3
SIMPLE: Final = 4
SIMPLE_NULLABLE: Final = 5
TEXT: Final = 6
TEXT_NULLABLE: Final = 7
BOOL_NULLABLE: Final = 8
INT32_NULLABLE: Final = 9
INT64_NULLABLE: Final = 10
TRANSPORT_NULLABLE: Final = 11
BLOB: Final = 12
XID: Final = 13
SIMPLE_LIST: Final = 14
INT8_LIST: Final = 15
XID_LIST: Final = 16
LOST_LIST: Final = 17
REST: Final = 18

KINDS: Final[dict[str, int]] = {
    "bool": BOOL,
    "i8": INT8,
    "i32": INT32,
    "i64": INT64,
    "ss": SIMPLE,
    "ss?": SIMPLE_NULLABLE,
    "str": TEXT,
    "str?": TEXT_NULLABLE,
    "b?": BOOL_NULLABLE,
    "i?": INT32_NULLABLE,
    "l?": INT64_NULLABLE,
    "tc?": TRANSPORT_NULLABLE,
    "blob": BLOB,
    "xid": XID,
    "ss*": SIMPLE_LIST,
    "i8*": INT8_LIST,
    "xid*": XID_LIST,
    "lost*": LOST_LIST,
    "rest": REST,
}


class Field:
    """One field of a layout; `absent` is its value where the packet does not have it."""

    def __init__(self, name: str, kind: int, since: int, absent: int, may_lack: bool) -> None:
        self.name: str = name
        self.kind: int = kind
        self.since: int = since
        self.may_lack: bool = may_lack
        value: object = None
        if kind == BOOL:
            value = False
        elif kind == REST:
            value = b""
        elif kind in (INT8, INT32, INT64):
            value = absent
        self.absent: object = value


class Layout:
    """The fields of one packet class, in the order of its constructor."""

    def __init__(self, made: type[Packet]) -> None:
        self.made: type[Packet] = made
        self.fields: list[Field] = []
        sure, _, doubtful = made.layout.partition("|")
        self._add(sure, False)
        self._add(doubtful, True)

    def _add(self, layout: str, may_lack: bool) -> None:
        for name, word in field_words(layout):
            word, _, absent = word.partition("=")
            kind, _, since = word.partition("@")
            self.fields.append(
                Field(name, KINDS[kind], int(since or "0"), int(absent or "0"), may_lack)
            )

    def decode(self, reader: Reader, version: int) -> Packet:
        """DecodeError names the field."""
        if version == 0:
            version = NEWEST_VERSION
        values: list[object] = []
        for field in self.fields:
            ended = reader.position == reader.end and (field.may_lack or field.since > 0)
            if ended or version < field.since:
                values.append(field.absent)
            else:
                values.append(decode_field(reader, field.kind, field.name))
        return self.made(*values)

    def encode(self, writer: Writer, packet: Packet, version: int) -> None:
        if version == 0:
            version = NEWEST_VERSION
        for field in self.fields:
            if version >= field.since:
                encode_field(writer, field.kind, getattr(packet, field.name))


def decode_field(reader: Reader, kind: int, what: str) -> object:
    if kind == BOOL:
        return reader.boolean(what)
    if kind == INT64:
        return reader.int64(what)
    if kind == INT32:
        return reader.int32(what)
    if kind == SIMPLE:
        return reader.simple_string(what)
    if kind == SIMPLE_NULLABLE:
        return reader.nullable_simple_string(what)
    if kind == INT8:
        return reader.int8(what)
    if kind == TEXT:
        return reader.string(what)
    if kind == TEXT_NULLABLE:
        return reader.nullable_string(what)
    if kind == BOOL_NULLABLE:
        return reader.nullable_boolean(what)
    if kind == INT32_NULLABLE:
        return reader.nullable_int32(what)
    if kind == INT64_NULLABLE:
        return reader.nullable_int64(what)
    if kind == TRANSPORT_NULLABLE:
        return decode_transport(reader, what) if reader.boolean(what) else None
    if kind == BLOB:
        return reader.blob(what)
    if kind == XID:
        return decode_xid(reader, what)
    if kind == SIMPLE_LIST:
        return [reader.simple_string(what) for _ in range(reader.count(what, 4))]
    if kind == INT8_LIST:
        return [reader.int8(what) for _ in range(reader.count(what, 1))]
    if kind == XID_LIST:
        return [decode_xid(reader, what) for _ in range(reader.count(what, 12))]
    if kind == LOST_LIST:
        return [decode_lost_range(reader, what) for _ in range(reader.count(what, 20))]
    if kind == REST:
        return reader.rest()
    raise DecodeError(what, int(reader.position), f"field kind {kind} is unknown")


def encode_field(writer: Writer, kind: int, value: object) -> None:
    if kind == BOOL:
        writer.boolean(cast(bool, value))
    elif kind == INT64:
        writer.int64(cast(int, value))
    elif kind == INT32:
        writer.int32(cast(int, value))
    elif kind == SIMPLE:
        writer.simple_string(cast(str, value))
    elif kind == SIMPLE_NULLABLE:
        writer.nullable_simple_string(cast(str | None, value))
    elif kind == INT8:
        writer.int8(cast(int, value))
    elif kind == TEXT:
        writer.string(cast(str, value))
    elif kind == TEXT_NULLABLE:
        writer.nullable_string(cast(str | None, value))
    elif kind == BOOL_NULLABLE:
        writer.nullable_boolean(cast(bool | None, value))
    elif kind == INT32_NULLABLE:
        writer.nullable_int32(cast(int | None, value))
    elif kind == INT64_NULLABLE:
        writer.nullable_int64(cast(int | None, value))
    elif kind == TRANSPORT_NULLABLE:
        encode_nullable_transport(writer, cast(TransportConfiguration | None, value))
    elif kind == BLOB:
        writer.blob(cast(bytes, value))
    elif kind == XID:
        encode_xid(writer, cast(Xid, value))
    elif kind == REST:
        writer.raw(cast(bytes, value))
    else:
        encode_list(writer, kind, cast(list[object], value))


def encode_nullable_transport(writer: Writer, value: TransportConfiguration | None) -> None:
    writer.boolean(value is not None)
    if value is not None:
        encode_transport(writer, value)


def encode_list(writer: Writer, kind: int, values: list[object]) -> None:
    writer.int32(len(values))
    for value in values:
        if kind == SIMPLE_LIST:
            writer.simple_string(cast(str, value))
        elif kind == INT8_LIST:
            writer.int8(cast(int, value))
        elif kind == XID_LIST:
            encode_xid(writer, cast(Xid, value))
        else:
            encode_lost_range(writer, cast(LostRange, value))
