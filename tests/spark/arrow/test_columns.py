"""CORE messages become Arrow batches with the declared types."""

from __future__ import annotations

import datetime
import math

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from atalanta.client.log import Byte, Float, Int, PropertyValue
from atalanta.message.codec import encode_message
from atalanta.message.message import MAP, TEXT, Message
from atalanta.message.property_text import canonical, shortest_float
from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.arrow.schema import COLUMNS, check_schema, default_schema
from atalanta.spark.errors import OptionError, Undecodable
from tests.spark.fake_node import chunk_of, message

NOON_MS = 1_700_000_000_123


def build(schema: StructType, *encoded: bytes, deliveries: int = 0) -> list[dict[str, object]]:
    count, entries = chunk_of((10 + at, one, deliveries) for at, one in enumerate(encoded))
    batch = BatchBuilder(schema, "flights::archive", "node-1").build(count, entries)
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    rows: list[dict[str, object]] = batch.to_pylist(maps_as_pydicts="strict")
    return rows


NAMED: dict[str, DataType] = {
    "string": StringType(), "binary": BinaryType(), "int": IntegerType(), "bigint": LongType(),
    "double": DoubleType(), "boolean": BooleanType(), "timestamp": TimestampType(),
    "tinyint": ByteType(), "array<int>": ArrayType(IntegerType()),
}  # fmt: skip


def ddl(text: str) -> StructType:
    """Spark's own parser needs a running JVM."""
    schema = StructType()
    for part in text.split(", "):
        name, kind = part.split(" ")
        schema = schema.add(name, NAMED[kind])
    return schema


def test_every_column_of_a_bytes_message() -> None:
    made = Message.create("flights", b"\x00\xff", 4, False, NOON_MS, 7)
    made.expiration = NOON_MS + 1000
    made.user_id = bytes(range(16))
    properties: dict[str, PropertyValue] = {
        "carrier": "UA", "delay": 12.5, "JMSReplyTo": "queue://back", "JMSCorrelationID": "c-1",
        "_AMQ_GROUP_ID": "g", "_AMQ_ROUTING_TYPE": Byte(1), "__AMQ_CID": "x",
        "_AMQ_ORIG_ADDRESS": "orders",
    }  # fmt: skip
    for name, value in properties.items():
        made.put_property(name, value)
    (row,) = build(COLUMNS, encode_message(made, 4711), deliveries=1)
    noon = datetime.datetime.fromtimestamp(NOON_MS // 1000, datetime.UTC)
    noon = noon.replace(microsecond=123_000)
    assert row == {
        "body": b"\x00\xff",
        "text": None,
        "address": "flights",
        "queue": "flights::archive",
        "node": "node-1",
        "sequence": 10,
        "message_id": 4711,
        "timestamp": noon,
        "expiration": noon + datetime.timedelta(seconds=1),
        "priority": 7,
        "durable": False,
        "type": "bytes",
        "group_id": "g",
        "correlation_id": "c-1",
        "reply_to": "queue://back",
        "user_id": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "properties": {"carrier": "UA", "delay": "12.5", "_AMQ_ORIG_ADDRESS": "orders"},
        "redelivered": True,
        "error": None,
    }


def test_text_is_in_both_payload_columns() -> None:
    (row,) = build(ddl("text string, body binary, type string"), message("grün"))
    assert row == {"text": "grün", "body": "grün".encode(), "type": "text"}


def test_what_is_absent_is_null() -> None:
    encoded = encode_message(Message.create("a", b"", MAP), 1)
    (row,) = build(COLUMNS, encoded)
    assert {name for name, value in row.items() if value is None} == {
        "text", "expiration", "group_id", "correlation_id", "reply_to", "user_id", "error",
    }  # fmt: skip
    assert row["properties"] == {} and row["type"] == "map" and row["body"] == b""


def test_java_texts_that_are_no_unicode_do_not_stop_the_stream() -> None:
    (row,) = build(ddl("text string, x string"), message("a\ud800b", {"x": "\udfff"}))
    assert row == {"text": "a?b", "x": "?"}


@pytest.mark.parametrize("body", [b"\1", b"\1\0\0\0\5ab", b"\0ab"])
def test_a_text_message_whose_body_is_no_text_does_not_stop_the_stream(body: bytes) -> None:
    encoded = encode_message(Message.create("a", body, TEXT), 1)
    schema = ddl("text string, body binary, error string")
    bad, good = build(schema, encoded, message("whole"))
    assert (bad["text"], bad["body"]) == (None, body)
    assert "the body is not a text" in str(bad["error"])
    assert good == {"text": "whole", "body": b"whole", "error": None}
    count, entries = chunk_of([(10, encoded, 0), (11, message("whole"), 0)])
    with pytest.raises(Undecodable, match="message 10 .*Set undecodable=error"):
        BatchBuilder(schema, "q", "n", undecodable="fail").build(count, entries)


def test_a_body_that_is_missing_or_damaged() -> None:
    schema = ddl("body binary, error string, sequence bigint")
    count, entries = chunk_of([(10, message(b""), 0)])
    missing = BatchBuilder(schema, "q", "n").build(count, entries, "too large")
    assert missing.to_pylist() == [{"body": None, "error": "too large", "sequence": 10}]
    count, entries = chunk_of([(10, message(b"ab"), 0)])
    damaged = BatchBuilder(schema, "q", "n").build(count, entries, "damaged")
    assert damaged.to_pylist() == [{"body": b"ab", "error": "damaged", "sequence": 10}]
    with pytest.raises(Undecodable, match="Add the column error"):
        BatchBuilder(ddl("body binary"), "q", "n").build(count, entries, "damaged")
    others = BatchBuilder(ddl("sequence bigint"), "q", "n").build(count, entries, "damaged")
    assert others.to_pylist() == [{"sequence": 10}]


def test_a_malformed_message_is_a_row_between_the_others() -> None:
    _, first = chunk_of([(10, message("a", {"n": 1}), 0)])
    _, last = chunk_of([(12, message("c", {"n": 3}), 0)])
    _, middle = chunk_of([(11, message("b", {"n": 2}), 1)])
    name = b"\x00\x00\x00\x02n\x00"
    broken = middle.replace(name, b"\x7f" + name[1:])
    assert broken != middle
    rows = BatchBuilder(COLUMNS, "q", "n").build(3, first + broken + last).to_pylist()
    assert [(row["sequence"], row["text"]) for row in rows] == [(10, "a"), (11, None), (12, "c")]
    bad = rows[1]
    assert bad["body"] == broken[16:] and bad["redelivered"] and "malformed" in bad["error"]
    assert rows[0]["error"] is None and rows[2]["error"] is None
    with pytest.raises(Undecodable, match="message 11"):
        BatchBuilder(ddl("text string"), "q", "n").build(3, first + broken + last)


def test_property_columns_are_typed() -> None:
    schema = ddl(
        "carrier string, delay double, stops int, wide bigint, cancelled boolean, raw binary, "
        "at timestamp, small tinyint"
    )
    properties: dict[str, PropertyValue] = {
        "carrier": "UA", "delay": 3, "stops": Int(2), "wide": 1 << 40, "cancelled": True,
        "raw": b"x", "at": NOON_MS, "small": 1000,
    }  # fmt: skip
    full, empty = build(schema, message(b"", properties), message(b""))
    at = full.pop("at")
    assert isinstance(at, datetime.datetime) and at.microsecond == 123_000
    assert full == {
        "carrier": "UA", "delay": 3.0, "stops": 2, "wide": 1 << 40, "cancelled": True,
        "raw": b"x", "small": None,
    }  # fmt: skip
    assert set(empty.values()) == {None}


def test_a_time_that_no_column_can_hold_is_null_and_does_not_stop_the_stream() -> None:
    last = (1 << 63) // 1000 - 1
    for value, held in (((1 << 63) - 1, False), (-(1 << 63), False), (last, True), (-last, True)):
        count, entries = chunk_of([(1, message(b"", {"at": value}), 0)])
        batch = BatchBuilder(ddl("at timestamp"), "q", "n").build(count, entries)
        assert batch.column("at").cast(pa.int64()).to_pylist() == [value * 1000 if held else None]


def test_the_routing_type_as_a_column_is_there_whatever_else_is_in_the_chunk() -> None:
    plain = message(b"", {"_AMQ_ROUTING_TYPE": Byte(1)})
    for others in ([], [message(b"", {"n": 1})]):
        row, *_ = build(ddl("_AMQ_ROUTING_TYPE tinyint"), plain, *others)
        assert row == {"_AMQ_ROUTING_TYPE": 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-5, "-5"),
        (0.1, "0.1"),
        (12.0, "12.0"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (b"\x00\x01", "AAE="),
        ("as it is", "as it is"),
        (None, None),
    ],
)
def test_canonical_texts(value: PropertyValue, text: str | None) -> None:
    assert canonical(0, value) == text


def test_a_java_float_shows_the_digits_it_has() -> None:
    (row,) = build(ddl("x string"), message(b"", {"x": Float(0.1)}))
    assert row["x"] == "0.1"
    assert shortest_float(float.fromhex("0x1.99999ap-4")) == "0.1"


def test_schemas_are_checked() -> None:
    assert "properties" not in default_schema(False).fieldNames()
    with pytest.raises(OptionError, match="column sequence is bigint, not string"):
        check_schema(ddl("sequence string"))
    with pytest.raises(OptionError, match="column x is the property"):
        check_schema(ddl("x array<int>"))


def test_batches_are_valid_arrow() -> None:
    count, entries = chunk_of((at, message(f"m{at}", {"n": at}), 0) for at in range(50))
    batch = BatchBuilder(COLUMNS, "q", "n").build(count, entries)
    batch.validate(full=True)
    assert pa.Table.from_batches([batch]).num_rows == 50
