"""Record batches of received messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute
from pyspark.sql.types import StructType

from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.options import ReadOptions

compute: Any = (
    pa.compute
)  # its functions are made at import, so that type checkers do not know them

SEQUENCE = "sequence"


def batches(
    schema: StructType,
    options: ReadOptions,
    queue: str,
    node_id: str,
    chunks: Iterable[tuple[int, bytes, str]],
    first: int,
    expired_at_ms: int | None,
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of chunks (count, entries, error), with `first` added to their sequences.

    A message that was expired at `expired_at_ms` is no row, unless includeExpired says so.
    """
    if options.include_expired:
        expired_at_ms = None
    builder = BatchBuilder(
        schema, queue, node_id, options.undecodable, options.max_body_bytes, expired_at_ms
    )
    for count, entries, error in chunks:
        batch = builder.build(count, entries, error)
        if not batch.num_rows:
            continue
        at = batch.schema.get_field_index(SEQUENCE)
        if at >= 0:
            numbers = compute.add(batch.column(at), pa.scalar(first, pa.int64()))
            batch = batch.set_column(at, batch.schema.field(at), numbers)
        yield batch
