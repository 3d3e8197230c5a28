"""Conversion of CORE messages into Arrow record batches, column by column.

LogColumns provides the fields of every message as whole columns. Texts and properties (spark/arrow/property_columns.py)
need an object per message, so they are read only if a message of the chunk has some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute
from pyspark.sql.types import StructType

from atalanta.client.log import (
    ENTRY_HEADER_BYTES,
    TEXT,
    DecodeError,
    EncodedEntry,
    Message,
    inflated,
    split_entries,
)
from atalanta.spark.arrow.chunk import ArrowChunk, texts
from atalanta.spark.arrow.property_columns import PropertyColumn, canonical, property_map
from atalanta.spark.arrow.schema import KINDS, PROPERTIES
from atalanta.spark.environment.compatibility import to_arrow_schema
from atalanta.spark.errors import Undecodable, body_too_large
from atalanta.spark.options import DEAD_LETTER, FAIL, MAX_BODY_BYTES

# pyarrow.compute creates its functions at import, so that type checkers do not know them.
compute: Any = pa.compute

ColumnMaker = Callable[[pa.DataType, ArrowChunk], pa.Array]

# Bits of an encoded byte.
KIND_TEXTS: Final = pa.array(
    [
        KINDS.get(kind, str(kind))
        for kind in (byte - 256 if byte > 127 else byte for byte in range(256))
    ]
)
UUID_DIGITS: Final = 32
UUID_PARTS: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))  # positions of the digits

# By step: see multiples.
_multiples: dict[int, pa.Array] = {}


class BatchBuilder:
    """The builder of batches of one schema for one queue of one node.

    A message that cannot be converted is a row with `error`. Raises Undecodable if `undecodable` is FAIL, and if the
    row would lack its body, or more, without a column `error` that says so. With DEAD_LETTER the message is no row:
    `omitted` gets its sequence and the reason.
    """

    def __init__(
        self,
        schema: StructType,
        queue: str,
        node_id: str,
        undecodable: str | None = None,
        body_bytes_max: int = MAX_BODY_BYTES,
    ) -> None:
        self.queue = queue
        self.node_id = node_id
        self.undecodable = undecodable
        self.body_bytes_max = body_bytes_max
        self.omitted: list[tuple[int, str]] = []
        self.schema: pa.Schema = to_arrow_schema(schema)
        self.makers: list[tuple[pa.Field, ColumnMaker]] = [
            (field, COLUMN_MAKERS.get(field.name) or PropertyColumn(field.name))
            for field in self.schema
        ]
        names = set(self.schema.names)
        self.has_error = "error" in names
        self.has_bodies = not names.isdisjoint({"body", "text", "error"})

    def build(self, count: int, entries: bytes, error: str = "") -> pa.RecordBatch:
        """Returns the batch of a chunk with messages.

        `error`: why the body of the only message is incomplete or missing. Raises DecodeError for a malformed chunk.
        """
        if not self.makers:
            raise ValueError("a batch without columns has no rows")
        if not self.has_bodies:
            error = ""
        try:
            chunk = ArrowChunk(count, entries, self.queue, self.node_id, error)
            if not (self.has_bodies and chunk.columns.any_compressed):
                return self._build(chunk, error)
        except DecodeError:
            self.omitted = []
        rows = [self._row(entry, error) for entry in split_entries(count, entries)]
        batches = pa.Table.from_batches(rows).combine_chunks().to_batches()
        return batches[0] if batches else rows[0]

    def _build(self, rows: ArrowChunk, error: str) -> pa.RecordBatch:
        arrays = [maker(field.type, rows) for field, maker in self.makers]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if error or self.has_bodies and self.undecodable in {FAIL, DEAD_LETTER}:
            for row, why in rows.errors.items():
                sequence = int.from_bytes(rows.columns.sequences[8 * row : 8 * row + 8], "little")
                self._refuse(sequence, why, error != "")
            if self.undecodable == DEAD_LETTER and rows.errors:
                return batch.take(pa.array([row for row in range(rows.count) if row not in rows.errors], pa.int32()))
        return batch

    def _row(self, entry: EncodedEntry, error_text: str) -> pa.RecordBatch:
        """Returns the row of one entry; of a malformed one what is known about it, and its bytes as `body`."""
        try:
            encoded = entry.encoded
            if self.has_bodies and not error_text:
                encoded, error_text, large = inflated(encoded, self.body_bytes_max)
                if large and self.undecodable is None:
                    raise body_too_large(entry.sequence, self.queue, self.node_id, error_text)
            return self._build(ArrowChunk(1, encoded, self.queue, self.node_id, error_text), error_text)
        except DecodeError as error:
            why = f"the message is malformed: {error}"
        self._refuse(entry.sequence, why, True)
        if self.undecodable == DEAD_LETTER:
            return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self.schema], schema=self.schema)
        known: dict[str, object] = {
            "body": entry.encoded[ENTRY_HEADER_BYTES:],
            "queue": self.queue,
            "node": self.node_id,
            "sequence": entry.sequence,
            "redelivered": entry.delivery_count > 0,
            "error": why,
        }
        arrays = [pa.array([known.get(field.name)], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _refuse(self, sequence: int, why: str, lacks_data: bool) -> None:
        """Raises Undecodable, unless the row may say `why` or is omitted.

        `lacks_data`: without the error the row would mislead.
        """
        if self.undecodable == DEAD_LETTER:
            self.omitted.append((sequence, why))
            return
        fail = self.undecodable == FAIL
        if not fail and (self.has_error or not lacks_data):
            return
        remedy = "Set undecodable=error" if fail else "Add the column error string"
        raise Undecodable(
            f"message {sequence} of queue {self.queue} at node {self.node_id}: {why}. {remedy} to read the others, "
            "or read a larger body with maxBodyBytes"
        )


def numbers(kind: pa.DataType, rows: ArrowChunk, values: bytes) -> pa.Array:
    """Returns a column over its bytes, which are not copied."""
    return pa.Array.from_buffers(kind, rows.count, [None, pa.py_buffer(values)])


def constant(kind: pa.DataType, value: str, rows: ArrowChunk) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), rows.count)


def multiples(step: int, count: int) -> pa.Array:
    """Returns 0, step, 2 · step …: `count` numbers. They are kept, since pyarrow takes 0.1 µs for each of a range."""
    found = _multiples.get(step)
    if found is None or len(found) < count:
        found = _multiples[step] = pa.array(range(0, 2 * count * step, step), pa.int32())
    return found.slice(0, count)


# -- columns of the message ---------------------------------------------------------------------
def bodies(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns text in UTF-8 and any other body as sent, also a malformed body of a text message."""
    if rows.columns.any_text or rows.error:
        return pa.array([body_of(rows, row) for row in range(rows.count)], kind)
    # The chunk is one array: it has the bodies, and the other bytes between them.
    pieces = 2 * rows.count - 1
    buffers = [None, pa.py_buffer(rows.columns.edges), pa.py_buffer(rows.entries)]
    chunk = pa.Array.from_buffers(pa.binary(), pieces, buffers)
    return chunk.take(multiples(2, rows.count))


def body_of(rows: ArrowChunk, row: int) -> bytes | None:
    """Returns the body of a row; None if it was not read."""
    text = rows.texts[row]
    if text is not None:
        return text.encode("utf-8", "replace")
    message = rows.messages[row]
    if row in rows.errors:
        return message.body or None
    return b"" if message.kind == TEXT else message.body


def text_column(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    if not rows.columns.any_text:
        return pa.nulls(rows.count, kind)
    return texts(kind, rows.texts)


def error_column(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    errors = rows.errors
    if not errors:
        return pa.nulls(rows.count, kind)
    return texts(kind, [errors.get(row) for row in range(rows.count)])


def addresses(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    columns = rows.columns
    return texts(kind, list(columns.addresses)).take(
        numbers(pa.int32(), rows, columns.address_numbers)
    )


def expirations(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns the expirations; null means never."""
    times = numbers(pa.int64(), rows, rows.columns.expirations)
    never = compute.equal(times, 0)
    return compute.if_else(never, None, times).cast(kind)


def types(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    return KIND_TEXTS.take(numbers(pa.uint8(), rows, rows.columns.kinds)).cast(kind)


def group_ids(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    if rows.columns.bare:
        return pa.nulls(rows.count, kind)
    return texts(kind, [message.group_id for message in rows.messages])


def user_ids(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns the user ids in the text form of UUIDs."""
    columns = rows.columns
    ends = multiples(UUID_DIGITS, rows.count + 1)
    digits = pa.py_buffer(columns.user_ids.hex().encode())
    whole = pa.Array.from_buffers(pa.string(), rows.count, [None, ends.buffers()[1], digits])
    parts = [compute.utf8_slice_codeunits(whole, start, stop) for start, stop in UUID_PARTS]
    found = compute.binary_join_element_wise(*parts, "-")
    given = numbers(pa.uint8(), rows, columns.has_user_id).cast(pa.bool_())
    return compute.if_else(given, found, None).cast(kind)


class TextProperty:
    """A property shown as text; null if it is missing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
        if rows.columns.bare:
            return pa.nulls(rows.count, kind)
        return texts(kind, [string_property(message, self.name) for message in rows.messages])


def string_property(message: Message, name: str) -> str | None:
    value = message.property_value(name)
    if value is None or isinstance(value, str):
        return value
    return canonical(0, value)


COLUMN_MAKERS: Final[dict[str, ColumnMaker]] = {
    "body": bodies,
    "text": text_column,
    "address": addresses,
    "queue": lambda kind, rows: constant(kind, rows.queue, rows),
    "node": lambda kind, rows: constant(kind, rows.node_id, rows),
    "sequence": lambda kind, rows: numbers(kind, rows, rows.columns.sequences),
    "message_id": lambda kind, rows: numbers(kind, rows, rows.columns.ids),
    "timestamp": lambda kind, rows: numbers(kind, rows, rows.columns.timestamps),
    "expiration": expirations,
    "priority": lambda kind, rows: numbers(pa.int8(), rows, rows.columns.priorities).cast(kind),
    "durable": lambda kind, rows: numbers(pa.uint8(), rows, rows.columns.durable).cast(kind),
    "type": types,
    "group_id": group_ids,
    "correlation_id": TextProperty("JMSCorrelationID"),
    "reply_to": TextProperty("JMSReplyTo"),
    "user_id": user_ids,
    PROPERTIES: property_map,
    "error": error_column,
    "redelivered": lambda kind, rows: numbers(pa.uint8(), rows, rows.columns.redelivered).cast(
        kind
    ),
}
