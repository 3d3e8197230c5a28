"""Properties of messages as Arrow columns: the map `properties`, and a typed column for each other name.

A property in the map has one canonical text. Whole numbers and floats are decimal (the shortest text that reads back
as the same value; NaN, Infinity). Booleans are true and false, bytes base64, null is null. Artemis' own names (_AMQ…,
__AMQ…) are left out, except those that name the origin of a dead or expired message. Properties with a column of their
own are left out too.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from atalanta.client.log import FLOAT, TYPE_NAMES, PropertyValue
from atalanta.spark.arrow.chunk import ArrowChunk, texts

OWN_PREFIXES: Final = ("_AMQ", "__AMQ")
# _AMQ_ORIG_ADDRESS, _AMQ_ORIG_QUEUE, _AMQ_ORIG_MESSAGE_ID, _AMQ_ACTUAL_EXPIRY.
ORIGIN_PREFIXES: Final = ("_AMQ_ORIG_", "_AMQ_ACTUAL_")
# Properties with a column of their own.
OWN_COLUMNS: Final = frozenset({"JMSCorrelationID", "JMSReplyTo"})

# Properties that a message of a bare chunk (LogColumns) may still have.
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"

# The longest time (ms) that fits into microseconds of 64 bits, less one.
TIME_MS_MAX: Final = (1 << 63) // 1000 - 1

_FLOAT: Final = struct.Struct(">f")


def origin(name: str) -> bool:
    return name.startswith(ORIGIN_PREFIXES)


def property_map(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns the map: of texts, or with types (typed_properties.py) if `kind` says so."""
    if rows.columns.bare:
        offsets = [0] * (rows.count + 1)
        nothing = pa.array([], pa.string())
        items = pa.array([], kind.item_type)
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), nothing, items).cast(kind)
    offsets = [0]
    names: list[str | None] = []
    values: list[str | None] = []
    codes: list[int] = []
    for message in rows.messages:
        for name, (code, value) in message.properties.entries.items():
            if name in OWN_COLUMNS or (name.startswith(OWN_PREFIXES) and not origin(name)):
                continue
            names.append(name)
            values.append(value if value.__class__ is str else canonical(code, value))
            codes.append(code)
        offsets.append(len(names))
    items = texts(pa.string(), values)
    if pa.types.is_struct(kind.item_type):
        types = pa.array(TYPE_NAMES, pa.string()).take(pa.array(codes, pa.int32()))
        items = pa.StructArray.from_arrays([types, items], fields=list(kind.item_type))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), texts(pa.string(), names), items
    ).cast(kind)


class PropertyColumn:
    """The typed property `name`; null if it is missing or cannot be converted."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
        name = self.name
        if rows.columns.bare and name != ROUTING_TYPE:
            return pa.nulls(rows.count, kind)
        values: list[Any] = []
        convert = converter(kind)
        for message in rows.messages:
            entry = message.properties.entries.get(name)
            values.append(None if entry is None else convert(entry[0], entry[1]))
        if pa.types.is_timestamp(kind):
            return times(kind, values)
        return texts(kind, values) if pa.types.is_string(kind) else pa.array(values, kind)


def times(kind: pa.DataType, milliseconds: list[int | None]) -> pa.Array:
    return pa.array(
        [None if value is None else value * 1000 for value in milliseconds], pa.int64()
    ).cast(kind)


def converter(kind: pa.DataType) -> Callable[[int, PropertyValue], Any]:
    """Returns a function (type code, value) -> the value for Arrow's `kind`, None if it cannot be converted."""
    if pa.types.is_string(kind):
        return canonical
    if pa.types.is_binary(kind):
        return _binary
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_floating(kind):
        return _floating
    if pa.types.is_timestamp(kind):
        return _Whole(TIME_MS_MAX)
    return _Whole((1 << (kind.bit_width - 1)) - 1)


class _Whole:
    """The conversion to whole numbers of the column's range, from floats without a fraction and decimal texts too."""

    def __init__(self, most: int) -> None:
        self.least = -most - 1
        self.most = most

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
    """Returns the canonical text of a property value, see above."""
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
    """Returns the shortest decimal that reads back as the same 32-bit float."""
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if _FLOAT.unpack(_FLOAT.pack(float(text)))[0] == value:
            return repr(float(text))
    return repr(float(f"{value:.9g}"))
