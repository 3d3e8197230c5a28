"""Bodies that their senders compressed (compressLargeMessage) are rows as they were before."""

from __future__ import annotations

import zlib

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from atalanta.client import ReceivedMessage
from atalanta.client.log import EntryWriter
from atalanta.message.codec import encode_message, text_body
from atalanta.message.message import BYTES, COMPRESSED, TEXT, Message
from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.errors import Undecodable
from tests.spark.fake_node import chunk_of, message

SCHEMA = (
    StructType()
    .add("sequence", LongType())
    .add("body", BinaryType())
    .add("text", StringType())
    .add("error", StringType())
)
PLAIN = b"0123456789" * 100


def packed(body: bytes, kind: int = BYTES) -> Message:
    made = Message.create("flights", body, kind, True)
    made.put_property(COMPRESSED, True)
    return made


def encoded(body: bytes, kind: int = BYTES) -> bytes:
    return encode_message(packed(body, kind), 77)


def rows(undecodable: str | None = None, limit: int = 1 << 20, schema: StructType = SCHEMA) -> list[tuple[object, ...]]:
    """Rows of five messages: plain, compressed bytes, a compressed text, damaged, plain."""
    count, entries = chunk_of(
        [
            (1, message(b"first"), 0),
            (2, encoded(zlib.compress(PLAIN)), 0),
            (3, encoded(zlib.compress(text_body("grün")), TEXT), 0),
            (4, encoded(b"damaged"), 0),
            (5, message("last"), 0),
        ]
    )
    builder = BatchBuilder(schema, "q", "n", undecodable, limit)
    return [tuple(row.values()) for row in builder.build(count, entries).to_pylist()]


def test_they_are_decompressed() -> None:
    found = rows()
    assert [row[:3] for row in found] == [
        (1, b"first", None),
        (2, PLAIN, None),
        (3, "grün".encode(), "grün"),
        (4, b"damaged", None),
        (5, b"last", "last"),
    ]
    assert [row[3] is None for row in found] == [True, True, True, False, True]
    assert "compressed body cannot be read" in str(found[3][3])


def test_the_limit_is_that_of_the_whole_body() -> None:
    with pytest.raises(Undecodable, match="message 2 of queue q at node n: the body inflates to more than 999 bytes"):
        rows(limit=len(PLAIN) - 1)
    assert rows(limit=len(PLAIN))[1][1] == PLAIN
    found = rows("error", len(PLAIN) - 1)
    assert found[1] == (2, None, None, "the body inflates to more than 999 bytes")
    assert [row[0] for row in rows("dead-letter", len(PLAIN) - 1)] == [1, 3, 5]


def test_without_the_body_nothing_is_decompressed() -> None:
    assert rows("fail", 1, StructType().add("sequence", LongType())) == [(1,), (2,), (3,), (4,), (5,)]


def test_a_received_message_is_written_as_it_was_before() -> None:
    writer = EntryWriter()
    writer.add(1, ReceivedMessage(packed(zlib.compress(PLAIN)).copy(77), "q"))
    (row,) = BatchBuilder(SCHEMA, "q", "n").build(writer.count, writer.getvalue()).to_pylist()
    assert (row["body"], row["error"]) == (PLAIN, None)
