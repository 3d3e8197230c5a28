"""Conversion of DataFrame rows into messages: the sink's own columns, and property columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from atalanta.client.log import BYTES, TEXT, Byte, Float, Int, PropertyValue, Short
from atalanta.spark.arrow.schema import (
    KIND_NUMBERS,
    PROPERTIES,
    PROPERTY_TYPES,
    SINK_COLUMNS,
    SOURCE_ONLY,
)
from atalanta.spark.arrow.typed_properties import is_typed_map, property_of
from atalanta.spark.errors import OptionError, SparkSourceError
from atalanta.spark.gateway.gateway import OutMessage
from atalanta.spark.kafka_names import SINK_ALIASES, kafka_column
from atalanta.spark.options import WriteOptions

LAST_VALUE: Final = "_AMQ_LVQ_NAME"
# The columns that are no properties, in the order of `messages`.
FIELDS: Final = (
    "address", "routing", "body", "text", "value", "type", "durable", "priority", "expiration", "timestamp", "group_id",
    "correlation_id", "reply_to", "duplicate_id",
)  # fmt: skip
ROUTINGS: Final = frozenset({None, "anycast", "multicast"})
NOTHING: Final = repeat(None)  # a column that is not there
# Types whose values have one text each; floats do not.
KEY_TYPES: Final = (
    StringType, BooleanType, ByteType, ShortType, IntegerType, LongType, DateType, TimestampType,
)  # fmt: skip


class RowReader:
    """The converter of rows, checked once against the DataFrame's schema. OptionError names the column."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self.options = options
        names = [field.name for field in schema.fields]
        for wanted in options.property_columns:
            if wanted != "*" and wanted not in names:
                raise OptionError(f"option propertyColumns: there is no column {wanted}")
        check_key_columns(options.key_columns, schema)
        self.property_types: dict[str, DataType] = {}
        self.aliases = aliases_of(options, names)
        payload = False
        for field in schema.fields:
            if field.name in options.property_columns:
                self._add_property(field.name, field.dataType)
            elif field.name in SINK_COLUMNS:
                check_type(field.name, field.dataType)
                payload = payload or field.name in {"body", "text", "value"}
            elif "*" in options.property_columns and field.name not in SOURCE_ONLY:
                self._add_property(field.name, field.dataType)
            elif field.name in self.aliases:
                check_type(self.aliases[field.name], field.dataType, field.name)
            elif field.name not in SOURCE_ONLY and field.name not in options.key_columns:
                raise OptionError(
                    f"unknown column {field.name}{kafka_column(field.name)}: name it in propertyColumns "
                    "to send it as a property, or drop it "
                    f"(known: {', '.join((*SINK_COLUMNS, *SINK_ALIASES))})"
                )
        if not payload and not self.property_types and PROPERTIES not in names:
            raise OptionError("nothing to send: there is no column body, text, value or properties")
        if options.address is None and "address" not in {*names, *self.aliases.values()}:
            raise OptionError("no address: set the option address, or add a column address")
        self.map_type = next((f.dataType for f in schema.fields if f.name == PROPERTIES), None)

    def messages(self, batch: pa.RecordBatch) -> Iterator[OutMessage]:
        """Yields messages. SparkSourceError names the error in a row."""
        options = self.options
        columns: dict[str, list[Any]] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in SOURCE_ONLY or name in self.property_types or name in options.key_columns:
                columns[self.aliases.get(name, name)] = milliseconds(column)
        properties = RowProperties(columns, self.map_type, self.property_types, options.key_columns)
        rows = zip(range(batch.num_rows), *(columns.get(name, NOTHING) for name in FIELDS), strict=False)
        for (
            index, address, routing, body, text, value, type_name, durable, priority, expiration, timestamp, group_id,
            correlation_id, reply_to, duplicate_id,
        ) in rows:  # fmt: skip
            address = address or options.address
            if not address:
                raise SparkSourceError("a row has no address, and the option address is not set")
            routing = routing or options.routing
            if routing not in ROUTINGS:
                raise SparkSourceError(f"column routing: {routing!r} is neither anycast nor multicast")
            payload, payload_text, kind = payload_of(value, text, body, type_name)
            yield OutMessage(
                address,
                routing,
                payload,
                payload_text,
                kind,
                options.durable if durable is None else durable,
                options.priority if priority is None else max(0, min(9, priority)),
                expiration or 0,
                timestamp,
                properties.of(index),
                group_id,
                correlation_id,
                reply_to,
                duplicate_id,
            )

    def _add_property(self, name: str, kind: DataType) -> None:
        if not isinstance(kind, PROPERTY_TYPES):
            raise OptionError(f"column {name}: a property cannot be {kind.simpleString()}")
        self.property_types[name] = kind


def aliases_of(options: WriteOptions, names: Sequence[str]) -> dict[str, str]:
    """Returns the columns with a name of Kafka's, and the columns that they fill. OptionError if both are there.

    One that is sent as a property, or is the key of a row, is no alias.
    """
    if "*" in options.property_columns:
        return {}
    otherwise = {*options.property_columns, *options.key_columns}
    found = {name: SINK_ALIASES[name] for name in names if name in SINK_ALIASES and name not in otherwise}
    for alias, name in found.items():
        if name in names:
            raise OptionError(
                f"columns {alias} and {name} are the same here: drop one of them, or name {alias} in propertyColumns "
                "to send it as a property"
            )
    return found


class RowProperties:
    """The properties of the rows of a batch: of its map, of property columns, and the key of a last-value queue."""

    def __init__(
        self,
        columns: dict[str, list[Any]],
        map_type: DataType | None,
        types: dict[str, DataType],
        keys: Sequence[str],
    ) -> None:
        self.maps: list[Any] | None = columns.get(PROPERTIES) if isinstance(map_type, MapType) else None
        value_type = map_type.valueType if isinstance(map_type, MapType) else None
        self.typed_map = isinstance(value_type, StructType)
        self.map_value = None if value_type is None else wrapper(value_type)
        self.columns = [(name, wrapper(kind), columns[name]) for name, kind in types.items() if name in columns]
        self.keys = {name: columns[name] for name in keys}

    def of(self, index: int) -> dict[str, PropertyValue]:
        """Returns the properties of a row. Raises SparkSourceError."""
        result: dict[str, PropertyValue] = {}
        if self.maps is not None and self.map_value is not None:
            for name, value in self.maps[index] or ():
                if value is not None:
                    result[name] = property_of(name, value) if self.typed_map else self.map_value(value)
        for name, wrap, values in self.columns:
            value = values[index]
            if value is not None:
                result[name] = wrap(value)
        if self.keys:
            result[LAST_VALUE] = key_of({name: values[index] for name, values in self.keys.items()})
        return result


def check_type(name: str, kind: DataType, alias: str = "") -> None:
    """Raises OptionError if the sink's column cannot have this type. `alias`: its name in the DataFrame."""
    if not isinstance(kind, SINK_COLUMNS[name]):
        expected = " or ".join(one().simpleString() for one in SINK_COLUMNS[name] if one != MapType)
        raise OptionError(f"column {alias or name} must be {expected or 'a map'}, not {kind.simpleString()}")
    if isinstance(kind, MapType) and not is_typed_map(kind) and not (
        isinstance(kind.keyType, StringType) and isinstance(kind.valueType, PROPERTY_TYPES)
    ):
        raise OptionError(
            f"column {name} must map strings to values of a simple type, not {kind.simpleString()}"
        )


def milliseconds(column: pa.Array) -> list[Any]:
    """Returns Python values; timestamps are milliseconds since the epoch."""
    if pa.types.is_timestamp(column.type):
        numbers = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
        return [None if value is None else value // 1000 for value in numbers]
    result: list[Any] = column.to_pylist()
    return result


def payload_of(
    value: str | bytes | None, text: str | None, body: bytes | None, name: str | None
) -> tuple[bytes | None, str | None, int]:
    """Returns (body, text, CORE message type) from the columns `value`, `text`, `body` and `type` (`name`).

    Text precedes body, so that rows of the source, which have both, stay text messages.
    """
    if isinstance(value, str) and text is None:
        text = value
    elif isinstance(value, bytes) and body is None:
        body = value
    if name is None:
        return (None, text, TEXT) if text is not None else (body or b"", None, BYTES)
    kind = KIND_NUMBERS.get(name)
    if kind is None:
        raise SparkSourceError(f"column type: {name!r} is not one of {', '.join(KIND_NUMBERS)}")
    if kind == TEXT:
        return None, text if text is not None else (body or b"").decode("utf-8", "replace"), kind
    if body is None and text is not None:
        body = text.encode("utf-8")
    return body or b"", None, kind


def wrapper(kind: DataType) -> Callable[[Any], PropertyValue]:
    """Returns what gives a value the Java type of its column: int is int, bigint long, float float …"""
    for known, wrap in WRAPPERS.items():
        if isinstance(kind, known):
            return wrap
    return partial(of_time, kind)


def unchanged(value: Any) -> PropertyValue:
    result: PropertyValue = value
    return result


def of_time(kind: DataType, value: Any) -> PropertyValue:
    if isinstance(kind, TimestampType) and isinstance(value, int):
        return value
    raise TypeError(f"{kind.simpleString()} is not a type of a property")


WRAPPERS: Final[dict[type[DataType], Callable[[Any], PropertyValue]]] = {
    ByteType: Byte,
    ShortType: Short,
    IntegerType: Int,
    FloatType: Float,
    DoubleType: unchanged,
    LongType: unchanged,
    StringType: unchanged,
    BinaryType: unchanged,
    BooleanType: unchanged,
}


def check_key_columns(names: Sequence[str], schema: StructType) -> None:
    """Checks the option keyColumns. Raises OptionError, which names the column."""
    types = {field.name: field.dataType for field in schema.fields}
    for name in names:
        kind = types.get(name)
        if kind is None:
            raise OptionError(f"option keyColumns: there is no column {name}")
        if not isinstance(kind, KEY_TYPES):
            raise OptionError(
                f"option keyColumns: column {name} cannot be {kind.simpleString()}: cast it to string"
            )


def key_of(row: dict[str, Any]) -> str:
    """Returns the value of a single string column itself, else a JSON array of the values. A null is refused."""
    values = list(row.values())
    for name, value in row.items():
        if value is None:
            raise SparkSourceError(
                f"column {name} of keyColumns is null in a row: give it a value (coalesce), "
                "since a message without a key is never replaced"
            )
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(values, default=str, ensure_ascii=False, separators=(",", ":"))
