"""Every chunk of these tests comes in both of its forms: LOG_READ_RESP and LOG_READ_COLUMNS_RESP."""

from __future__ import annotations

import pyarrow as pa
import pytest

from atalanta.client.log import ColumnChunk, DecodeError
from atalanta.message.codec import decode_message
from atalanta.message.encoding.buffer import Reader
from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.wire.core.packets.log_chunk import (
    ENTRY_HEADER_BYTES,
    ColumnChunkWriter,
    split_entries,
)

build = BatchBuilder.build


def by_columns(count: int, entries: bytes) -> bytes | ColumnChunk:
    """The same entries by columns; as they are if a message is none: no node sends such a one."""
    writer = ColumnChunkWriter()
    try:
        for entry in split_entries(count, entries):
            message = decode_message(Reader(entry.encoded[ENTRY_HEADER_BYTES:]))
            writer.add(entry.sequence, entry.delivery_count, message, True)
    except DecodeError:
        return entries
    encoded = b"".join(writer.parts())
    return ColumnChunk(b"frame" + encoded, 5, 5 + len(encoded), writer.count)


@pytest.fixture(params=["rows", "columns"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "columns":

        def built(
            self: BatchBuilder, count: int, content: bytes, error: str = "", unread: bool = False
        ) -> pa.RecordBatch:
            return build(self, count, by_columns(count, content), error, unread)

        monkeypatch.setattr(BatchBuilder, "build", built)
