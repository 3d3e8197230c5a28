"""CORE messages into Arrow record batches, column by column.

Properties in the map `properties` have one canonical text each: whole numbers and floats in
decimal (the shortest that reads back as the same value; NaN, Infinity), booleans true and false,
bytes in base64, null as null. Names of Artemis' own (_AMQ…, __AMQ…) are left out, but for those that
tell where a dead or expired message came from; so are those shown in a column of their own.
"""

from __future__ import annotations

import base64
import math
import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from atalanta.client.raw import FLOAT, TEXT, LogEntry, Message, PropertyValue
from atalanta.spark.schema import KINDS, PROPERTIES

OWN_PREFIXES: Final = ("_AMQ", "__AMQ")
# _AMQ_ORIG_ADDRESS, _AMQ_ORIG_QUEUE, _AMQ_ORIG_MESSAGE_ID, _AMQ_ACTUAL_EXPIRY.
ORIGIN_PREFIXES: Final = ("_AMQ_ORIG_", "_AMQ_ACTUAL_")
# Shown in a column of their own.
OWN_COLUMNS: Final = frozenset({"JMSCorrelationID", "JMSReplyTo"})

_FLOAT: Final = struct.Struct(">f")


class BatchBuilder:
    """Builds batches of one schema for one queue of one node."""

    def __init__(self, schema: StructType, queue: str, node_id: str) -> None:
        self.queue = queue
        self.node_id = node_id
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self.makers: list[tuple[pa.Field, Callable[[pa.DataType, Rows], pa.Array]]] = [
            (field, COLUMN_MAKERS.get(field.name) or PropertyColumn(field.name))
            for field in self.schema
        ]

    def build(self, records: Sequence[LogEntry]) -> pa.RecordBatch:
        """DecodeError if the properties of a message cannot be read."""
        rows = Rows(records, self.queue, self.node_id)
        arrays = [maker(field.type, rows) for field, maker in self.makers]
        if not arrays:
            raise ValueError("a batch without columns has no rows")
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class Rows:
    """The messages of one batch."""

    def __init__(self, records: Sequence[LogEntry], queue: str, node_id: str) -> None:
        self.records = records
        self.messages: list[Message] = [record.message for record in records]
        self.queue = queue
        self.node_id = node_id


# -- columns of the message ---------------------------------------------------------------------
def texts(kind: pa.DataType, values: list[str | None]) -> pa.Array:
    """Strings; what is no Unicode (a lone surrogate, which Java allows) becomes a question mark."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([None if text is None else clean(text) for text in values], kind)


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def times(kind: pa.DataType, milliseconds: list[int | None]) -> pa.Array:
    return pa.array(
        [None if value is None else value * 1000 for value in milliseconds], pa.int64()
    ).cast(kind)


def body_of(message: Message) -> bytes:
    """Text in UTF-8, anything else as it travelled."""
    if message.kind != TEXT:
        return message.body
    text = message.text()
    return b"" if text is None else text.encode("utf-8", "replace")


def string_property(message: Message, name: str) -> str | None:
    value = message.property_value(name)
    if value is None or isinstance(value, str):
        return value
    return canonical(0, value)


def user_id(message: Message) -> str | None:
    raw = message.user_id
    return None if raw is None else str(uuid.UUID(bytes=raw))


def constant(kind: pa.DataType, value: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)


def origin(name: str) -> bool:
    return name.startswith(ORIGIN_PREFIXES)


def property_map(kind: pa.DataType, rows: Rows) -> pa.Array:
    offsets = [0]
    names: list[str | None] = []
    values: list[str | None] = []
    for message in rows.messages:
        for name, (code, value) in message.properties.entries.items():
            if name in OWN_COLUMNS or (name.startswith(OWN_PREFIXES) and not origin(name)):
                continue
            names.append(name)
            values.append(value if value.__class__ is str else canonical(code, value))
        offsets.append(len(names))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), texts(pa.string(), names), texts(pa.string(), values)
    ).cast(kind)


COLUMN_MAKERS: Final[dict[str, Callable[[pa.DataType, Rows], pa.Array]]] = {
    "body": lambda kind, rows: pa.array([body_of(message) for message in rows.messages], kind),
    "text": lambda kind, rows: texts(
        kind, [message.text() if message.kind == TEXT else None for message in rows.messages]
    ),
    "address": lambda kind, rows: texts(kind, [message.address for message in rows.messages]),
    "queue": lambda kind, rows: constant(kind, rows.queue, len(rows.records)),
    "node": lambda kind, rows: constant(kind, rows.node_id, len(rows.records)),
    "sequence": lambda kind, rows: pa.array([record.sequence for record in rows.records], kind),
    "message_id": lambda kind, rows: pa.array([message.id for message in rows.messages], kind),
    "timestamp": lambda kind, rows: times(kind, [message.timestamp for message in rows.messages]),
    "expiration": lambda kind, rows: times(
        kind, [message.expiration or None for message in rows.messages]
    ),
    "priority": lambda kind, rows: pa.array([message.priority for message in rows.messages], kind),
    "durable": lambda kind, rows: pa.array([message.durable for message in rows.messages], kind),
    "type": lambda kind, rows: texts(
        kind, [KINDS.get(message.kind, str(message.kind)) for message in rows.messages]
    ),
    "group_id": lambda kind, rows: texts(kind, [message.group_id for message in rows.messages]),
    "correlation_id": lambda kind, rows: texts(
        kind, [string_property(message, "JMSCorrelationID") for message in rows.messages]
    ),
    "reply_to": lambda kind, rows: texts(
        kind, [string_property(message, "JMSReplyTo") for message in rows.messages]
    ),
    "user_id": lambda kind, rows: texts(kind, [user_id(message) for message in rows.messages]),
    PROPERTIES: property_map,
    "redelivered": lambda kind, rows: pa.array(
        [record.delivery_count > 0 for record in rows.records], kind
    ),
}


# -- property columns ---------------------------------------------------------------------------
class PropertyColumn:
    """The typed property `name`; null where there is none, or where it does not convert."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kind: pa.DataType, rows: Rows) -> pa.Array:
        name = self.name
        values: list[Any] = []
        convert = converter(kind)
        for message in rows.messages:
            entry = message.properties.entries.get(name)
            values.append(None if entry is None else convert(entry[0], entry[1]))
        if pa.types.is_timestamp(kind):
            return times(kind, values)
        return texts(kind, values) if pa.types.is_string(kind) else pa.array(values, kind)


def converter(kind: pa.DataType) -> Callable[[int, PropertyValue], Any]:
    """(type code, value) -> the value as Arrow's `kind` wants it, None if it cannot be."""
    if pa.types.is_string(kind):
        return canonical
    if pa.types.is_binary(kind):
        return _binary
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_floating(kind):
        return _floating
    bits = 64 if pa.types.is_timestamp(kind) else kind.bit_width
    return _Whole(bits)


class _Whole:
    """Whole numbers that fit the column; floats without a fraction, and texts in decimal."""

    def __init__(self, bits: int) -> None:
        self.least = -(1 << (bits - 1))
        self.most = (1 << (bits - 1)) - 1

    def __call__(self, code: int, value: PropertyValue) -> int | None:
        if isinstance(value, float):
            if not math.isfinite(value) or value != int(value):
                return None
            number = int(value)
        elif isinstance(value, str):
            try:
                number = int(value)
            except ValueError:
                return None
        elif isinstance(value, int) and not isinstance(value, bool):
            number = value
        else:
            return None
        return number if self.least <= number <= self.most else None


def _floating(code: int, value: PropertyValue) -> float | None:
    if isinstance(value, float):
        return value
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def _boolean(code: int, value: PropertyValue) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return None


def _binary(code: int, value: PropertyValue) -> bytes | None:
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "replace") if isinstance(value, str) else None


def canonical(code: int, value: PropertyValue) -> str | None:
    """The one text of a property value, see above."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return shortest_float(value) if code == FLOAT else repr(value)
    if isinstance(value, int):
        return str(value)
    return base64.b64encode(value).decode("ascii")


def shortest_float(value: float) -> str:
    """The shortest decimal that reads back as the same 32-bit float."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if _FLOAT.unpack(_FLOAT.pack(float(text)))[0] == value:
            return repr(float(text))
    return repr(float(f"{value:.9g}"))
