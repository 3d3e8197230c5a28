"""Conversion of CORE messages into Arrow record batches, column by column.

LogColumns, LogTexts and LogProperties (property_columns.py) provide the fields as whole columns, without an object for
each message. Texts and properties are read only if a message of the chunk has some.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute
from pyspark.sql.types import StructType

from atalanta.client.log import (
    ENTRY_HEADER_BYTES,
    TEXT,
    ColumnChunk,
    DecodeError,
    EncodedEntry,
    LogColumns,
    canonical,
    inflated,
    split_entries,
)
from atalanta.spark.arrow.chunk import ArrowChunk, numbers, strings, texts
from atalanta.spark.arrow.property_columns import PropertyColumn, property_map
from atalanta.spark.arrow.schema import KINDS, PROPERTIES
from atalanta.spark.environment.compatibility import to_arrow_schema
from atalanta.spark.errors import Undecodable, body_too_large
from atalanta.spark.options import DEAD_LETTER, ERROR, FAIL, MAX_BODY_BYTES

# pyarrow.compute creates its functions at import, so that type checkers do not know them.
compute: Any = pa.compute

ColumnMaker = Callable[[pa.DataType, ArrowChunk], pa.Array]

# Kinds by their byte.
KIND_TEXTS: Final = pa.array(
    [
        KINDS.get(kind, str(kind))
        for kind in (byte - 256 if byte > 127 else byte for byte in range(256))
    ]
)
NO_TYPE: Final = -1  # a float is shown as a double
UUID_DIGITS: Final = 32
UUID_PARTS: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))  # positions of the digits

# By step: see multiples.
_multiples: dict[int, pa.Array] = {}


class BatchBuilder:
    """The builder of batches of one schema for one queue of one node.

    A message that cannot be converted is a row with `error`. Raises Undecodable if `undecodable` is FAIL, and if the
    row would lack its body, or more, without a column `error` that says so. With DEAD_LETTER the message is no row:
    `omitted` gets its sequence and the reason. A message that was expired at `expired_at_ms` is no row, whatever its
    body is; None: every message is one.
    """

    def __init__(
        self,
        schema: StructType,
        queue: str,
        node_id: str,
        undecodable: str | None = None,
        body_bytes_max: int = MAX_BODY_BYTES,
        expired_at_ms: int | None = None,
    ) -> None:
        self.expired_at_us = None if expired_at_ms is None else expired_at_ms * 1000
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

    def build(
        self, count: int, content: bytes | ColumnChunk, error: str = "", unread: bool = False
    ) -> pa.RecordBatch:
        """Returns the batch of a chunk with messages, which may be without rows. `content`: see Chunk.

        `error`: why the body of the only message is incomplete or missing; `unread`: it is larger than maxBodyBytes.
        Raises DecodeError for a malformed chunk.
        """
        if not self.makers:
            raise ValueError("a batch without columns has no rows")
        if not self.has_bodies:
            error, unread = "", False
        try:
            chunk = ArrowChunk(count, content, self.queue, self.node_id, error)
            if not (self.has_bodies and (unread or chunk.columns.any_compressed or self._any_large(chunk))):
                return self._build(chunk, error)
        except DecodeError:
            self.omitted = []
        rows = [self._row(entry, error, unread) for entry in split_entries(count, content)]
        batches = pa.Table.from_batches(rows).combine_chunks().to_batches()
        return batches[0] if batches else rows[0]

    def _build(self, rows: ArrowChunk, error: str) -> pa.RecordBatch:
        arrays = [maker(field.type, rows) for field, maker in self.makers]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        none = self._expired(rows)
        if error or self.has_bodies and self.undecodable in {FAIL, DEAD_LETTER}:
            for row in sorted(rows.errors.keys() - none):
                sequence = int.from_bytes(rows.columns.sequences[8 * row : 8 * row + 8], "little")
                self._refuse(sequence, rows.errors[row], error != "")
                if self.undecodable == DEAD_LETTER:
                    none.add(row)
        if not none:
            return batch
        return batch.take(pa.array([row for row in range(rows.count) if row not in none], pa.int32()))

    def _any_large(self, rows: ArrowChunk) -> bool:
        """Returns whether a body is larger than maxBodyBytes."""
        if rows.columns.body_bytes <= self.body_bytes_max:
            return False
        edges = pa.Array.from_buffers(pa.int32(), 2 * rows.count, [None, pa.py_buffer(rows.columns.edges)])
        begins, ends = edges.take(multiples(2, rows.count)), edges.slice(1).take(multiples(2, rows.count))
        return bool(compute.max(compute.subtract(ends, begins)).as_py() > self.body_bytes_max)

    def _expired(self, rows: ArrowChunk) -> set[int]:
        """Returns the messages of the chunk that were expired, by row."""
        if self.expired_at_us is None:
            return set()
        times = numbers(pa.int64(), rows.count, rows.columns.expirations)
        late = compute.and_(compute.greater(times, 0), compute.less_equal(times, self.expired_at_us))
        return set(compute.indices_nonzero(late).to_pylist())

    def _row(self, entry: EncodedEntry, error_text: str, large: bool) -> pa.RecordBatch:
        """Returns the row of one entry; of a malformed one what is known about it, and its bytes as `body`.

        `large`: its body was not read.
        """
        try:
            encoded = entry.encoded
            if self._expired(ArrowChunk(1, encoded, self.queue, self.node_id)):
                return self._nothing()
            if self.has_bodies and not error_text:
                encoded, error_text, large = inflated(encoded, self.body_bytes_max)
            if large and self.undecodable not in {ERROR, DEAD_LETTER}:
                raise body_too_large(entry.sequence, self.queue, self.node_id, error_text)
            return self._build(ArrowChunk(1, encoded, self.queue, self.node_id, error_text), error_text)
        except DecodeError as error:
            why = f"the message is malformed: {error}"
        self._refuse(entry.sequence, why, True)
        if self.undecodable == DEAD_LETTER:
            return self._nothing()
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

    def _nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self.schema], schema=self.schema)

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


def constant(kind: pa.DataType, value: str, rows: ArrowChunk) -> pa.Array:
    return repeats(kind, value, 1 << (rows.count - 1).bit_length()).slice(0, rows.count)


@lru_cache(maxsize=16)
def repeats(kind: pa.DataType, value: str, count: int) -> pa.Array:
    """Returns the value, `count` times. The latest are kept: pyarrow takes 0.1 µs for each row."""
    return pa.repeat(pa.scalar(value, kind), count)


def multiples(step: int, count: int) -> pa.Array:
    """Returns 0, step, 2 · step …: `count` numbers. They are kept, since pyarrow takes 0.1 µs for each of a range."""
    found = _multiples.get(step)
    if found is None or len(found) < count:
        found = _multiples[step] = pa.array(range(0, 2 * count * step, step), pa.int32())
    return found.slice(0, count)


# -- columns of the message ---------------------------------------------------------------------
def bodies(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns text in UTF-8 and any other body as sent, also a malformed body of a text message."""
    found = rows.texts
    if found is not None and found.all_present:
        return strings(kind, rows.count, found.ends, found.texts, None)
    whole = whole_bodies(rows.columns, rows.count)
    if found is not None:
        known = strings(kind, rows.count, found.ends, found.texts, found.present)
        is_text = compute.equal(numbers(pa.uint8(), rows.count, rows.columns.kinds), TEXT)
        # A null text has an empty body.
        null_text = compute.and_not(is_text, flags(rows, found.errors))
        whole = compute.coalesce(known, compute.if_else(null_text, b"", whole))
    if rows.errors:  # a body that was not read is null
        unread = compute.and_(flags(rows, rows.errors), compute.equal(compute.binary_length(whole), 0))
        whole = compute.if_else(unread, None, whole)
    return whole


def whole_bodies(columns: LogColumns, count: int) -> pa.Array:
    """Returns the bodies as sent. Those of a chunk by columns are not copied."""
    data = pa.py_buffer(columns.data)
    if columns.bodies_at >= 0:
        return pa.Array.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(columns.body_ends), data.slice(columns.bodies_at)]
        )
    # The chunk is one array: it has the bodies, and the other bytes between them.
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(columns.edges), data])
    return pieces.take(multiples(2, count))


def flags(rows: ArrowChunk, chosen: dict[int, str]) -> pa.Array:
    """Returns True for each row that is a key of `chosen`."""
    found = bytearray(rows.count)
    for row in chosen:
        found[row] = 1
    return numbers(pa.uint8(), rows.count, bytes(found)).cast(pa.bool_())


def text_column(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    found = rows.texts
    if found is None:
        return pa.nulls(rows.count, kind)
    return strings(kind, rows.count, found.ends, found.texts, None if found.all_present else found.present)


def error_column(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    errors = rows.errors
    if not errors:
        return pa.nulls(rows.count, kind)
    return texts(kind, [errors.get(row) for row in range(rows.count)])


def addresses(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    columns = rows.columns
    return texts(kind, list(columns.addresses)).take(
        numbers(pa.int32(), rows.count, columns.address_numbers)
    )


def expirations(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns the expirations; null means never."""
    times = numbers(pa.int64(), rows.count, rows.columns.expirations)
    never = compute.equal(times, 0)
    return compute.if_else(never, None, times).cast(kind)


def types(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    return KIND_TEXTS.take(numbers(pa.uint8(), rows.count, rows.columns.kinds)).cast(kind)


def group_ids(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    found = rows.found_property("_AMQ_GROUP_ID")
    if found is None:
        return pa.nulls(rows.count, kind)
    return texts(kind, [value if isinstance(value, str) else None for value in found.values])


def user_ids(kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
    """Returns the user ids in the text form of UUIDs."""
    columns = rows.columns
    if 1 not in columns.has_user_id:
        return pa.nulls(rows.count, kind)
    ends = multiples(UUID_DIGITS, rows.count + 1)
    digits = pa.py_buffer(columns.user_ids.hex().encode())
    whole = pa.Array.from_buffers(pa.string(), rows.count, [None, ends.buffers()[1], digits])
    parts = [compute.utf8_slice_codeunits(whole, start, stop) for start, stop in UUID_PARTS]
    found = compute.binary_join_element_wise(*parts, "-")
    given = numbers(pa.uint8(), rows.count, columns.has_user_id).cast(pa.bool_())
    return compute.if_else(given, found, None).cast(kind)


class TextProperty:
    """A property shown as text; null if it is missing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kind: pa.DataType, rows: ArrowChunk) -> pa.Array:
        found = rows.found_property(self.name)
        if found is None:
            return pa.nulls(rows.count, kind)
        return texts(kind, [canonical(NO_TYPE, value) for value in found.values])


COLUMN_MAKERS: Final[dict[str, ColumnMaker]] = {
    "body": bodies,
    "text": text_column,
    "address": addresses,
    "queue": lambda kind, rows: constant(kind, rows.queue, rows),
    "node": lambda kind, rows: constant(kind, rows.node_id, rows),
    "sequence": lambda kind, rows: numbers(kind, rows.count, rows.columns.sequences),
    "message_id": lambda kind, rows: numbers(kind, rows.count, rows.columns.ids),
    "timestamp": lambda kind, rows: numbers(kind, rows.count, rows.columns.timestamps),
    "expiration": expirations,
    "priority": lambda kind, rows: numbers(pa.int8(), rows.count, rows.columns.priorities).cast(kind),
    "durable": lambda kind, rows: numbers(pa.uint8(), rows.count, rows.columns.durable).cast(kind),
    "type": types,
    "group_id": group_ids,
    "correlation_id": TextProperty("JMSCorrelationID"),
    "reply_to": TextProperty("JMSReplyTo"),
    "user_id": user_ids,
    PROPERTIES: property_map,
    "error": error_column,
    "redelivered": lambda kind, rows: numbers(pa.uint8(), rows.count, rows.columns.redelivered).cast(
        kind
    ),
}
