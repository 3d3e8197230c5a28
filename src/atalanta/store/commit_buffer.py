"""The records that wait for a commit, encoded one after the other and taken one block at a time.

A chunk is closed at about the size of a block. So taking a block never moves the bytes of later records, however
many these are: a producer can be faster than the disk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i64, u8

from atalanta.store.block import PAYLOAD_SIZE_MAX


class BlockRecords:
    """The records of one block: their encoded bytes and the kind of each."""

    def __init__(self, data: bytes, kinds: bytearray) -> None:
        self.data = data
        self.kinds = kinds


class ClosedRecords:
    """Encoded records that are closed for writing. `ends` are the end offsets of the records within `data`."""

    def __init__(self, data: bytes, ends: list[int], kinds: bytearray) -> None:
        self.data = data
        self.ends = ends
        self.kinds = kinds
        self.next: int = 0  # index of the first record that was not taken yet
        self.offset: int = 0  # offset of that record in `data`


class CommitBuffer:
    """Buffers `count` records until a commit takes them.

    `appended_bytes` counts the bytes of all records since the start of the process.
    """

    def __init__(self, chunk_size_bytes: int) -> None:
        self.count: int = 0
        self.appended_bytes: int = 0
        self._chunk_size_bytes = chunk_size_bytes
        self._chunks: deque[ClosedRecords] = deque()
        self._open: BytesWriter = BytesWriter()
        self._ends: list[int] = []
        self._kinds: bytearray = bytearray()

    # --- writing ----------------------------------------------------------------------------------

    def begin(self, kind: int) -> BytesWriter:
        """Returns the writer for the payload of one record.

        A record that was begun and not ended is dropped. ValueError for a kind outside 0..255.
        """
        if not 0 <= kind <= 255:
            raise ValueError(f"record kind {kind}: 0 to 255 are possible")
        written = self._open
        size = self._open_size()
        if size >= self._chunk_size_bytes:
            self._close()
            written = self._open
            size = 0
        written.truncate(size)
        write_i32_be(written, 0)
        written.append(u8(kind))
        return written

    def end(self) -> None:
        """Completes the record that was begun. A record that is too large is dropped with ValueError."""
        written = self._open
        start = self._open_size()
        size: i64 = len(written) - start
        length = size - 4
        if length > PAYLOAD_SIZE_MAX:
            written.truncate(start)
            raise ValueError(f"a record of {length} bytes, at most {PAYLOAD_SIZE_MAX}")
        written[start] = u8(length >> 24)
        written[start + 1] = u8((length >> 16) & 0xFF)
        written[start + 2] = u8((length >> 8) & 0xFF)
        written[start + 3] = u8(length & 0xFF)
        self._ends.append(len(written))
        self._kinds.append(written[start + 4])
        self.count += 1
        self.appended_bytes += int(size)

    def _open_size(self) -> i64:
        ends = self._ends
        return ends[len(ends) - 1] if ends else 0

    def _close(self) -> None:
        written = self._open
        written.truncate(self._open_size())
        self._chunks.append(ClosedRecords(written.getvalue(), self._ends, self._kinds))
        written.truncate(0)
        self._ends = []
        self._kinds = bytearray()

    # --- taking -----------------------------------------------------------------------------------

    def first_size(self) -> int:
        """Returns the size of the first record in bytes; the buffer must not be empty."""
        if self._chunks:
            chunk = self._chunks[0]
            return chunk.ends[chunk.next] - chunk.offset
        return self._ends[0]

    def take(self, size_max_bytes: int) -> BlockRecords:
        """Takes the first records: as many as fit into `size_max_bytes` bytes and share a chunk, at least one."""
        if not self._chunks:
            self._close()
        chunk = self._chunks[0]
        ends = chunk.ends
        begin = chunk.next
        end = len(ends)
        if ends[end - 1] - chunk.offset > size_max_bytes:
            end = max(begin + 1, bisect_right(ends, chunk.offset + size_max_bytes))
        self.count -= end - begin
        data = chunk.data
        kinds = chunk.kinds
        if end - begin < len(ends):
            data = data[chunk.offset : ends[end - 1]]
            kinds = kinds[begin:end]
        if end == len(ends):
            self._chunks.popleft()
        else:
            chunk.next = end
            chunk.offset = ends[end - 1]
        return BlockRecords(data, kinds)
