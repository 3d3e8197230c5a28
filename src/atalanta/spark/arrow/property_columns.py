"""Properties of messages as Arrow columns: the map `properties`, and a typed column for each other name.

A property in the map has its canonical text (message/property_text.py). Artemis' own names (_AMQ…, __AMQ…) are left
out, except those that name the origin of a dead or expired message. Properties with a column of their own are left out
too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from atalanta.client.log import TYPE_NAMES, LogProperties, PropertyValue, canonical
from atalanta.spark.arrow.chunk import ArrowChunk, numbers, strings, texts
from atalanta.spark.arrow.typed_properties import WHOLE

OWN_PREFIXES: Final = ("_AMQ", "__AMQ")
# _AMQ_ORIG_ADDRESS, _AMQ_ORIG_QUEUE, _AMQ_ORIG_MESSAGE_ID, _AMQ_ACTUAL_EXPIRY.
ORIGIN_PREFIXES: Final = ("_AMQ_ORIG_", "_AMQ_ACTUAL_")
# Properties with a column of their own.
OWN_COLUMNS: Final = frozenset({"JMSCorrelationID", "JMSReplyTo"})

# The longest time (ms) that fits into microseconds of 64 bits, less one.
TIME_MS_MAX: Final = (1 << 63) // 1000 - 1

CODES: Final = {name: code for code, name in enumerate(TYPE_NAMES)}
TYPES: Final = pa.array(TYPE_NAMES, pa.string())


def origin(name: str) -> bool:
    return name.startswith(ORIGIN_PREFIXES)


def in_map(name: str) -> bool:
    """Returns whether the map has the property of this name."""
    return name not in OWN_COLUMNS and (not name.startswith(OWN_PREFIXES) or origin(name))


def property_map(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns the map: of texts, or with types (typed_properties.py) if `kind` says so."""
    if rows.columns.bare:
        nothing = pa.py_buffer(bytes(4 * (rows.count + 1)))
        entries = pa.array([], pa.struct([kind.key_field, kind.item_field]))
        return pa.Array.from_buffers(kind, rows.count, [None, nothing], children=[entries])
    found = LogProperties(rows.columns.data, rows.heads, in_map)
    count = found.count
    present = found.codes if found.any_null else None  # the code of null is 0
    names = texts(pa.string(), found.names).take(numbers(pa.int32(), count, found.name_numbers))
    items = strings(pa.string(), count, found.text_ends, found.texts, present)
    if pa.types.is_struct(kind.item_type):
        types = TYPES.take(numbers(pa.uint8(), count, found.codes))
        items = pa.StructArray.from_arrays([types, items], fields=list(kind.item_type))
    entries = pa.StructArray.from_arrays([names, items], fields=[kind.key_field, kind.item_field])
    offsets = pa.py_buffer(found.offsets)
    return pa.Array.from_buffers(kind, rows.count, [None, offsets], children=[entries])


class PropertyColumn:
    """The typed property `name`; null if it is missing or cannot be converted."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
        found = rows.found_property(self.name)
        if found is None:
            return pa.nulls(rows.count, kind)
        values: list[Any] = found.values
        codes = found.codes
        if not set(codes) <= taken_codes(kind):
            convert = converter(kind)
            values = [convert(code, value) for code, value in zip(codes, values, strict=True)]
        if pa.types.is_timestamp(kind):
            return times(kind, values)
        return texts(kind, values) if pa.types.is_string(kind) else pa.array(values, kind)


def taken_codes(kind: pa.DataType) -> frozenset[int]:
    """Returns the types of properties whose values a column of Arrow's `kind` takes as they are."""
    if pa.types.is_string(kind):
        names = {"string", "char"}
    elif pa.types.is_binary(kind):
        names = {"bytes"}
    elif pa.types.is_boolean(kind):
        names = {"boolean"}
    elif pa.types.is_floating(kind):
        names = {"float", "double"}
    elif pa.types.is_timestamp(kind):
        names = set()
    else:
        names = {name for name, (_, bits) in WHOLE.items() if bits <= kind.bit_width}
    return frozenset(CODES[name] for name in names | {"null"})


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
