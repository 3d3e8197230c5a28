"""Conversion of DataFrame rows into messages: the sink's own columns, and property columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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
from atalanta.spark.options import WriteOptions

LAST_VALUE: Final = "_AMQ_LVQ_NAME"
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
        payload = False
        for field in schema.fields:
            if field.name in options.property_columns:
                self._add_property(field.name, field.dataType)
            elif field.name in SINK_COLUMNS:
                check_type(field.name, field.dataType)
                payload = payload or field.name in {"body", "text", "value"}
            elif "*" in options.property_columns and field.name not in SOURCE_ONLY:
                self._add_property(field.name, field.dataType)
            elif field.name not in SOURCE_ONLY and field.name not in options.key_columns:
                raise OptionError(
                    f"unknown column {field.name}: name it in propertyColumns "
                    "to send it as a property, or drop it "
                    f"(known: {', '.join(SINK_COLUMNS)})"
                )
        if not payload and not self.property_types and PROPERTIES not in names:
            raise OptionError("nothing to send: there is no column body, text, value or properties")
        if options.address is None and "address" not in names:
            raise OptionError("no address: set the option address, or add a column address")
        self.map_type = next((f.dataType for f in schema.fields if f.name == PROPERTIES), None)

    def messages(self, batch: pa.RecordBatch) -> Iterator[OutMessage]:
        """Yields messages. SparkSourceError names the error in a row."""
        columns: dict[str, list[Any]] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in SOURCE_ONLY or name in self.property_types or name in self.options.key_columns:
                columns[name] = milliseconds(column)
        for index in range(batch.num_rows):
            yield self._message({name: values[index] for name, values in columns.items()})

    # -- one row ----------------------------------------------------------------------------------
    def _message(self, row: dict[str, Any]) -> OutMessage:
        options = self.options
        address = row.get("address") or options.address
        if not address:
            raise SparkSourceError("a row has no address, and the option address is not set")
        routing = row.get("routing") or options.routing
        if routing not in {None, "anycast", "multicast"}:
            raise SparkSourceError(f"column routing: {routing!r} is neither anycast nor multicast")
        body, text, kind = payload_of(row)
        priority = row.get("priority")
        durable = row.get("durable")
        return OutMessage(
            address=address,
            routing=routing,
            body=body,
            text=text,
            kind=kind,
            durable=options.durable if durable is None else durable,
            priority=options.priority if priority is None else max(0, min(9, priority)),
            expires_at_ms=row.get("expiration") or 0,
            timestamp_ms=row.get("timestamp"),
            properties=self._properties(row),
            group_id=row.get("group_id"),
            correlation_id=row.get("correlation_id"),
            reply_to=row.get("reply_to"),
            duplicate_id=row.get("duplicate_id"),
        )

    def _properties(self, row: dict[str, Any]) -> dict[str, PropertyValue]:
        result: dict[str, PropertyValue] = {}
        map_type = self.map_type
        if isinstance(map_type, MapType):
            for name, value in row.get(PROPERTIES) or ():
                if value is not None and isinstance(map_type.valueType, StructType):
                    result[name] = property_of(name, value)
                elif value is not None:
                    result[name] = typed(value, map_type.valueType)
        for name, kind in self.property_types.items():
            value = row.get(name)
            if value is not None:
                result[name] = typed(value, kind)
        if self.options.key_columns:
            result[LAST_VALUE] = key_of(row, self.options.key_columns)
        return result

    def _add_property(self, name: str, kind: DataType) -> None:
        if not isinstance(kind, PROPERTY_TYPES):
            raise OptionError(f"column {name}: a property cannot be {kind.simpleString()}")
        self.property_types[name] = kind


def check_type(name: str, kind: DataType) -> None:
    if not isinstance(kind, SINK_COLUMNS[name]):
        expected = " or ".join(one().simpleString() for one in SINK_COLUMNS[name] if one != MapType)
        raise OptionError(f"column {name} must be {expected or 'a map'}, not {kind.simpleString()}")
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


def payload_of(row: dict[str, Any]) -> tuple[bytes | None, str | None, int]:
    """Returns (body, text, CORE message type) from `value`, `text`, `body` and `type`.

    Text precedes body, so that rows of the source, which have both, stay text messages.
    """
    value = row.get("value")
    text = row.get("text")
    body = row.get("body")
    if isinstance(value, str) and text is None:
        text = value
    elif isinstance(value, bytes) and body is None:
        body = value
    name = row.get("type")
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


def typed(value: Any, kind: DataType) -> PropertyValue:
    """Returns the value with the Java type of its column: int is int, bigint long, float float …"""
    if isinstance(kind, ByteType):
        return Byte(value)
    if isinstance(kind, ShortType):
        return Short(value)
    if isinstance(kind, IntegerType):
        return Int(value)
    if isinstance(kind, FloatType):
        return Float(value)
    if isinstance(kind, (DoubleType, LongType, StringType, BinaryType, BooleanType)):
        result: PropertyValue = value
        return result
    if isinstance(kind, TimestampType) and isinstance(value, int):
        return value
    raise TypeError(f"{kind.simpleString()} is not a type of a property")


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


def key_of(row: dict[str, Any], names: Sequence[str]) -> str:
    """Returns the value of a single string column itself, else a JSON array of the values. A null is refused."""
    values = [row[name] for name in names]
    for name, value in zip(names, values, strict=True):
        if value is None:
            raise SparkSourceError(
                f"column {name} of keyColumns is null in a row: give it a value (coalesce), "
                "since a message without a key is never replaced"
            )
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(values, default=str, ensure_ascii=False, separators=(",", ":"))
