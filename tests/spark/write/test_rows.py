"""Rows of a DataFrame become messages."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
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

from atalanta.client.log import BYTES, MAP, TEXT, Float, Int, Short
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import OptionError, SparkSourceError
from atalanta.spark.gateway.gateway import OutMessage
from atalanta.spark.options import write_options
from atalanta.spark.write.rows import RowReader


def reader(options: dict[str, str], **columns: DataType) -> RowReader:
    schema = StructType()
    for name, kind in columns.items():
        schema = schema.add(name, kind)
    return RowReader(write_options({"servers": "a:1", "address": "out"} | options), schema)


def convert(rows: RowReader, **values: Any) -> OutMessage:
    batch = pa.RecordBatch.from_pydict({name: [value] for name, value in values.items()})
    (message,) = rows.messages(batch)
    return message


def test_payloads() -> None:
    text = convert(reader({}, value=StringType()), value="grün")
    assert (text.text, text.body, text.kind) == ("grün", None, TEXT)
    raw = convert(reader({}, value=BinaryType()), value=b"\x00")
    assert (raw.text, raw.body, raw.kind) == (None, b"\x00", BYTES)
    assert convert(reader({}, body=BinaryType()), body=b"x").body == b"x"
    assert convert(reader({}, text=StringType()), text="x").text == "x"


def test_the_type_column_decides() -> None:
    rows = reader({}, body=BinaryType(), text=StringType(), type=StringType())
    packed = convert(rows, body=b"\x00", text=None, type="map")
    assert (packed.body, packed.kind) == (b"\x00", MAP)
    assert convert(rows, body=b"abc", text=None, type="text").text == "abc"
    assert convert(rows, body=b"abc", text="abc", type="bytes").body == b"abc"
    with pytest.raises(SparkSourceError, match="column type: 'txt' is not one of"):
        convert(rows, body=b"abc", text=None, type="txt")


def test_rows_override_the_options() -> None:
    rows = reader(
        {"routing": "multicast", "priority": "2", "durable": "false"},
        value=StringType(), address=StringType(), priority=IntegerType(),
    )  # fmt: skip
    own = convert(rows, value="x", address="there", priority=9)
    assert (own.address, own.priority, own.durable, own.routing) == ("there", 9, False, "multicast")
    default = convert(rows, value="x", address=None, priority=None)
    assert (default.address, default.priority) == ("out", 2)


def test_properties_keep_their_types() -> None:
    rows = reader(
        {"propertyColumns": "small, whole, wide, single, double, at"},
        value=StringType(), small=ShortType(), whole=IntegerType(), wide=LongType(),
        single=FloatType(), double=DoubleType(), at=TimestampType(),
        properties=MapType(StringType(), StringType()),
    )  # fmt: skip
    at = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
    made = convert(
        rows, value="x", small=1, whole=2, wide=3, single=0.5, double=None, at=at,
        properties=None,
    ).properties  # fmt: skip
    assert made == {"small": 1, "whole": 2, "wide": 3, "single": 0.5, "at": 1356998400000}
    kinds = [type(made[name]) for name in ("small", "whole", "wide", "single")]
    assert kinds == [Short, Int, int, Float]
    mapped = pa.array([[("a", "1"), ("b", None)]], pa.map_(pa.string(), pa.string()))
    batch = pa.RecordBatch.from_arrays([pa.array(["x"]), mapped], ["value", "properties"])
    (message,) = rows.messages(batch)
    assert message.properties == {"a": "1"}


def test_what_was_read_can_be_written() -> None:
    rows = RowReader(write_options({"servers": "a:1"}), COLUMNS)
    assert rows.property_types == {}


def test_all_other_columns_as_properties() -> None:
    rows = reader(
        {"propertyColumns": "*"}, value=StringType(), carrier=StringType(), node=StringType()
    )
    assert convert(rows, value="x", carrier="UA", node="n").properties == {"carrier": "UA"}


@pytest.mark.parametrize(
    ("options", "columns", "said"),
    [
        ({}, {"value": StringType(), "carier": StringType()}, "unknown column carier"),
        ({}, {"value": LongType()}, "column value must be string or binary, not bigint"),
        ({}, {"value": StringType(), "durable": StringType()}, "column durable must be boolean"),
        ({"propertyColumns": "x"}, {"value": StringType()}, "there is no column x"),
        ({}, {"address": StringType()}, "nothing to send"),
        (
            {"propertyColumns": "x"},
            {"value": StringType(), "x": ArrayType(LongType())},
            "column x: a property cannot be array<bigint>",
        ),
    ],
)
def test_schemas_that_cannot_be_sent(
    options: dict[str, str], columns: dict[str, DataType], said: str
) -> None:
    with pytest.raises(OptionError) as caught:
        reader(options, **columns)
    assert said in str(caught.value)


def test_an_address_is_needed() -> None:
    with pytest.raises(OptionError, match="no address"):
        RowReader(write_options({"servers": "a:1"}), StructType().add("value", StringType()))


def test_columns_of_kafkas_sink_are_aliases() -> None:
    rows = reader({}, key=StringType(), topic=StringType(), value=StringType())
    sent = convert(rows, key="shop 1", topic="orders", value="x")
    assert (sent.group_id, sent.address, sent.text, sent.properties) == ("shop 1", "orders", "x", {})
    assert convert(rows, key=None, topic=None, value="x").address == "out"
    schema = StructType().add("topic", StringType()).add("value", StringType())
    assert convert(RowReader(write_options({"servers": "a:1"}), schema), topic="orders", value="x").address == "orders"


@pytest.mark.parametrize(("alias", "name"), [("key", "group_id"), ("topic", "address")])
def test_an_alias_beside_its_column_is_refused(alias: str, name: str) -> None:
    with pytest.raises(OptionError, match=f"columns {alias} and {name} are the same here: drop one of them"):
        reader({}, **{alias: StringType(), name: StringType(), "value": StringType()})


@pytest.mark.parametrize("option", [{"propertyColumns": "key"}, {"propertyColumns": "*"}])
def test_a_key_that_is_named_as_a_property_is_one(option: dict[str, str]) -> None:
    rows = reader(option, key=StringType(), group_id=StringType(), value=StringType())
    sent = convert(rows, key="a", group_id="b", value="x")
    assert (sent.group_id, sent.properties) == ("b", {"key": "a"})


def test_the_key_of_a_last_value_queue_is_no_group() -> None:
    sent = convert(reader({"keyColumns": "key"}, key=StringType(), value=StringType()), key="a", value="x")
    assert (sent.group_id, sent.properties) == (None, {"_AMQ_LVQ_NAME": "a"})


def test_other_columns_of_kafka_are_named_as_here() -> None:
    with pytest.raises(OptionError, match="unknown column headers: its name here is properties"):
        reader({}, headers=StringType(), value=StringType())
    with pytest.raises(OptionError, match="column key must be string, not binary"):
        reader({}, key=BinaryType(), value=StringType())
