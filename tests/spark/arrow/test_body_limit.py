"""The limit maxBodyBytes holds for every body, also for one that travels with others in a chunk."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.errors import Undecodable
from tests.spark.fake_node import chunk_of, message

SCHEMA = StructType().add("sequence", LongType()).add("body", BinaryType()).add("error", StringType())
LARGE = bytes(51)
NOW_MS = 1_700_000_000_000


def build(builder: BatchBuilder, *encoded: bytes) -> list[dict[str, Any]]:
    count, entries = chunk_of((at, one, 0) for at, one in enumerate(encoded, 1))
    rows: list[dict[str, Any]] = builder.build(count, entries).to_pylist()
    return rows


def limited(undecodable: str | None, schema: StructType = SCHEMA, expired_at_ms: int | None = None) -> BatchBuilder:
    return BatchBuilder(schema, "q", "n", undecodable, 50, expired_at_ms)


BODIES = (message(b"first"), message(LARGE), message(bytes(50)), message("x" * 26), message("text"))


@pytest.mark.parametrize("undecodable", [None, "fail"])
def test_a_larger_body_stops_the_query_which_names_it(undecodable: str | None) -> None:
    said = "message 2 of queue q at node n: the body has 51 bytes, more than 50 .maxBodyBytes.*Raise maxBodyBytes"
    with pytest.raises(Undecodable, match=said):
        build(limited(undecodable), *BODIES)


def test_a_larger_body_is_a_row_with_an_error() -> None:
    found = build(limited("error"), *BODIES)
    assert [row["body"] for row in found] == [b"first", None, bytes(50), None, b"text"]
    errors = [row["error"] for row in found]
    assert errors[1] == "the body has 51 bytes, more than 50" and "more than 50" in errors[3]
    assert errors[0] is errors[2] is errors[4] is None


def test_a_larger_body_is_a_dead_letter() -> None:
    builder = limited("dead-letter")
    assert [row["sequence"] for row in build(builder, *BODIES)] == [1, 3, 5]
    assert [sequence for sequence, _ in builder.omitted] == [2, 4]
    assert builder.omitted[0][1] == "the body has 51 bytes, more than 50"


def test_a_query_without_bodies_has_no_limit() -> None:
    schema = StructType().add("sequence", LongType())
    assert [row["sequence"] for row in build(limited(None, schema), *BODIES)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("undecodable", [None, "fail", "error", "dead-letter"])
def test_an_expired_message_is_no_row_whatever_its_body_is(undecodable: str | None) -> None:
    builder = limited(undecodable, expired_at_ms=NOW_MS)
    late = [message(body, expires_at_ms=NOW_MS - 1) for body in (b"late", LARGE)]
    kept = message(b"kept", expires_at_ms=NOW_MS + 1)
    assert [row["sequence"] for row in build(builder, message(b"first"), *late, kept)] == [1, 4]
    assert builder.omitted == []
    count, entries = chunk_of([(7, message(b"", expires_at_ms=NOW_MS), 0)])
    assert builder.build(count, entries, "the body has 99 bytes, more than 50", True).num_rows == 0


def test_an_expired_message_hides_no_other_error() -> None:
    builder = limited("error", expired_at_ms=NOW_MS)
    found = build(builder, message(b"late", expires_at_ms=NOW_MS), message(LARGE), message(b"last"))
    assert [(row["sequence"], row["body"]) for row in found] == [(2, None), (3, b"last")]
