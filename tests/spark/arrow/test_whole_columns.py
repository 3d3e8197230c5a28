"""Whole columns have the rows that the messages have when each is decoded for itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from atalanta.client.log import TYPE_NAMES, Byte, Char, Float, Int, PropertyValue, Short, canonical
from atalanta.message.codec import decode_message, encode_message, text_body
from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.message.message import BYTES, TEXT, Message
from atalanta.message.properties import encode_value, plain_value, type_of_value
from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.arrow.property_columns import converter
from atalanta.spark.arrow.schema import COLUMNS, PROPERTIES, default_schema
from tests.spark.fake_node import chunk_of

NAMES = st.sampled_from(
    ["n", "shop", "größe", "\ud800", "日本", "", "_AMQ_ROUTING_TYPE", "_AMQ_GROUP_ID", "_AMQ_ORIG_QUEUE", "__AMQ_CID",
     "_AMQ_ACTUAL_EXPIRY", "JMSCorrelationID", "JMSReplyTo", "a name of more than thirty-two characters"]
)  # fmt: skip
UNITS = st.integers(0, 0xFFFF).map(chr)  # lone surrogates, too
TEXTS = st.one_of(
    st.text(st.characters(max_codepoint=127), max_size=80), st.text(max_size=40), st.text(UNITS, max_size=40)
)
VALUES: st.SearchStrategy[PropertyValue] = st.one_of(
    st.none(), st.booleans(), TEXTS, UNITS.map(Char), st.binary(max_size=20), st.floats(),
    st.floats(width=32).map(Float), st.integers(-128, 127).map(Byte), st.integers(-(1 << 15), (1 << 15) - 1).map(Short),
    st.integers(-(1 << 31), (1 << 31) - 1).map(Int), st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([0, 10**9, -(1 << 63), (1 << 63) - 1, Int(-(1 << 31)), "true", "12", "1e3", Float("nan")]),
)  # fmt: skip
PROPERTY_LISTS = st.lists(st.tuples(NAMES, VALUES), max_size=5)
# Empty, null in two forms, an odd length, cut off, more than a null, more than a text.
ODD_TEXTS = [b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\3abc", b"\1\0\0", b"\0x", b"\1\0\0\0\2a\0more"]
BODIES = st.one_of(
    st.tuples(st.just(BYTES), st.binary(max_size=20)),
    st.tuples(st.just(TEXT), TEXTS.map(text_body)),
    st.tuples(st.just(TEXT), st.sampled_from(ODD_TEXTS)),
)  # fmt: skip
Made = tuple[tuple[int, bytes], list[tuple[str, PropertyValue]]]
MESSAGES = st.lists(st.tuples(BODIES, PROPERTY_LISTS), min_size=1, max_size=6)

TYPED_COLUMNS = (
    StringType(), BinaryType(), BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType(),
    DoubleType(), TimestampType(),
)  # fmt: skip


def encoded(kind: int, body: bytes, properties: list[tuple[str, PropertyValue]]) -> bytes:
    """A message whose properties stand as in the list, so that a name may come twice."""
    plain = encode_message(Message.create("flights", body, kind, True, 0), 77)
    if not properties:
        return plain
    writer = Writer()
    writer.int8(1)
    writer.int32(len(properties))
    for name, value in properties:
        code = type_of_value(value)
        writer.simple_string(name)
        writer.int8(code)
        encode_value(writer, code, plain_value(name, code, value))
    assert plain.endswith(b"\0")  # no properties
    return plain[:-1] + writer.getvalue()


def shown(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "replace").decode()


def expected(one: bytes, typed: bool) -> dict[str, Any]:
    """The columns of one message, from the message."""
    message = decode_message(Reader(one))
    text: str | None = None
    error = None
    if message.kind == TEXT:
        try:
            text = shown(message.text())
        except DecodeError as problem:
            error = f"the body is not a text: {problem}"
    body = message.body if message.kind != TEXT or error else (text or "").encode()
    entries = message.properties.entries
    properties: list[tuple[str | None, Any]] = []
    for name, (code, value) in entries.items():
        own = name.startswith(("_AMQ", "__AMQ")) and not name.startswith(("_AMQ_ORIG_", "_AMQ_ACTUAL_"))
        if not own and name not in {"JMSCorrelationID", "JMSReplyTo"}:
            item = shown(canonical(code, value))
            properties.append((shown(name), {"type": TYPE_NAMES[code], "value": item} if typed else item))
    group = entries.get("_AMQ_GROUP_ID", (0, None))[1]
    plain = {name: entries.get(name, (0, None))[1] for name in ("JMSCorrelationID", "JMSReplyTo")}
    return {
        "body": body, "text": text, "error": error, PROPERTIES: properties,
        "group_id": shown(group) if isinstance(group, str) else None,
        "correlation_id": shown(canonical(0, plain["JMSCorrelationID"])),
        "reply_to": shown(canonical(0, plain["JMSReplyTo"])),
    }  # fmt: skip


def rows(schema: StructType, messages: list[bytes]) -> list[dict[str, Any]]:
    count, entries = chunk_of((at, one, 0) for at, one in enumerate(messages))
    batch = BatchBuilder(schema, "q", "n").build(count, entries)
    batch.validate(full=True)
    assert batch.schema.equals(BatchBuilder(schema, "q", "n").schema)
    found: list[dict[str, Any]] = batch.to_pylist()
    return found


@pytest.mark.parametrize("typed", [False, True])
@settings(max_examples=300, deadline=None)
@given(MESSAGES)
def test_texts_bodies_and_maps(typed: bool, made: list[Made]) -> None:
    schema = default_schema(True, typed=True) if typed else COLUMNS
    messages = [encoded(kind, body, properties) for (kind, body), properties in made]
    wanted = [expected(one, typed) for one in messages]
    found = rows(schema, messages)
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted


@settings(max_examples=300, deadline=None)
@given(st.lists(PROPERTY_LISTS, min_size=1, max_size=6), st.sampled_from(TYPED_COLUMNS))
def test_typed_columns(made: list[list[tuple[str, PropertyValue]]], kind: Any) -> None:
    schema = StructType().add("n", kind).add("shop", kind)
    messages = [encoded(BYTES, b"", properties) for properties in made]
    arrow = BatchBuilder(schema, "q", "n").schema.field("n").type
    convert = converter(arrow)
    count, entries = chunk_of((at, one, 0) for at, one in enumerate(messages))
    batch = BatchBuilder(schema, "q", "n").build(count, entries)
    batch.validate(full=True)
    for name in ("n", "shop"):
        values = []
        for one in messages:
            entry = decode_message(Reader(one)).properties.entries.get(name)
            value = None if entry is None else convert(*entry)
            values.append(shown(value) if isinstance(value, str) else value)
        if pa.types.is_timestamp(arrow):
            values = [None if value is None else value * 1000 for value in values]
            assert batch.column(name).cast(pa.int64()).equals(pa.array(values, pa.int64()))
        else:
            assert repr(batch.column(name).to_pylist()) == repr(pa.array(values, arrow).to_pylist())
