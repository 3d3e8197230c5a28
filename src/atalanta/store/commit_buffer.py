"""The records that wait for a commit: written one behind the other, taken a block at a time.

A piece is closed at about the size of a block, so that taking one never moves what waits behind it, however much
that is: a producer can be faster than the disk.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i64, u8

from atalanta.store.block import PAYLOAD_SIZE_MAX


class Taken:
    """Records for one block: their bytes, and the kind of each."""

    def __init__(self, data: bytes, kinds: bytearray) -> None:
        self.data = data
        self.kinds = kinds


class Piece:
    """Closed records: each ends at one of `ends`, which count from the begin of `data`."""

    def __init__(self, data: bytes, ends: list[int], kinds: bytearray) -> None:
        self.data = data
        self.ends = ends
        self.kinds = kinds
        self.next: int = 0  # the first record that was not taken yet
        self.offset: int = 0  # where it begins


class Waiting:
    """`count` records, of which the first takes `first_size()` bytes; `appended_bytes` of all there ever were."""

    def __init__(self, piece_size_bytes: int) -> None:
        self.count: int = 0
        self.appended_bytes: int = 0
        self._piece_size_bytes = piece_size_bytes
        self._pieces: deque[Piece] = deque()
        self._open: BytesWriter = BytesWriter()
        self._ends: list[int] = []
        self._kinds: bytearray = bytearray()

    # --- writing ----------------------------------------------------------------------------------

    def begin(self, kind: int) -> BytesWriter:
        """For the payload of one record; one that was begun and not ended vanishes. ValueError."""
        if not 0 <= kind <= 255:
            raise ValueError(f"record kind {kind}: 0 to 255 are possible")
        written = self._open
        size = self._open_size()
        if size >= self._piece_size_bytes:
            self._close()
            written = self._open
            size = 0
        written.truncate(size)
        write_i32_be(written, 0)
        written.append(u8(kind))
        return written

    def end(self) -> None:
        """The record that was begun is complete. ValueError if it is too large: then it is not there."""
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
        self._pieces.append(Piece(written.getvalue(), self._ends, self._kinds))
        written.truncate(0)
        self._ends = []
        self._kinds = bytearray()

    # --- taking -----------------------------------------------------------------------------------

    def first_size(self) -> int:
        """Bytes of the first record; there must be one."""
        if self._pieces:
            piece = self._pieces[0]
            return piece.ends[piece.next] - piece.offset
        return self._ends[0]

    def take(self, room: int) -> Taken:
        """The first records, as many as go into `room` bytes and lie together; one always does."""
        if not self._pieces:
            self._close()
        piece = self._pieces[0]
        ends = piece.ends
        begin = piece.next
        end = len(ends)
        if ends[end - 1] - piece.offset > room:
            end = max(begin + 1, bisect_right(ends, piece.offset + room))
        self.count -= end - begin
        data = piece.data
        kinds = piece.kinds
        if end - begin < len(ends):
            data = data[piece.offset : ends[end - 1]]
            kinds = kinds[begin:end]
        if end == len(ends):
            self._pieces.popleft()
        else:
            piece.next = end
            piece.offset = ends[end - 1]
        return Taken(data, kinds)
