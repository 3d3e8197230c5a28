"""Frames of CORE: int32 length · int8 type · int64 channel · payload.

The length counts the bytes that follow it. A client sends the seven bytes `ARTEMIS` before its first frame.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, u8

from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.protocol_error import ProtocolError

# Bytes beside the payload: those that the length counts, and all of them.
LENGTH_OVERHEAD_BYTES: Final = 9
FRAME_OVERHEAD_BYTES: Final = 13
# JMS clients send messages in pieces of 100 KiB, unless minLargeMessageSize is set.
FRAME_BYTES_MAX: Final = 64 << 20
# Pieces of a frame below this size are joined as they come.
MERGED_BYTES: Final = 4096


class Frame:
    """A frame, its payload still in the bytes it came with: `data[start:end]`."""

    def __init__(self, code: int, channel: int, data: bytes, start: i64, end: i64) -> None:
        self.type: int = code
        self.channel: int = channel
        self.data: bytes = data
        self.start: i64 = start
        self.end: i64 = end

    @property
    def payload(self) -> bytes:
        return self.data[self.start : self.end]

    @property
    def size(self) -> int:
        """Returns the bytes of the whole frame, as confirmation windows and credits count them."""
        return int(self.end - self.start) + FRAME_OVERHEAD_BYTES

    def __repr__(self) -> str:
        return f"Frame(type={self.type}, channel={self.channel}, {self.size} bytes)"


class Framer:
    """Cuts the bytes of a connection into frames; the bytes come in pieces of any size.

    `frame_bytes_max` can be changed at any time (small before login). A longer frame is refused by its length, before
    any of it is kept.
    """

    def __init__(self, handshake: bool, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self.frame_bytes_max: i64 = frame_bytes_max
        self._handshake: bool = handshake
        self._kept: list[bytes] = []
        self._kept_bytes: i64 = 0
        # The frame that `step` found.
        self.data: bytes = b""
        self.type: int = 0
        self.channel: int = 0
        self.start: i64 = 0
        self.end: i64 = 0
        self._position: i64 = 0
        # The pieces are joined when there are this many bytes.
        self._wanted_bytes: i64 = 0
        # Bytes behind a frame that came in several pieces; `data` has that frame alone.
        self._rest: bytes = b""
        self._rest_position: i64 = 0

    @property
    def kept_bytes(self) -> int:
        """Returns the number of bytes that wait for the rest of their frame."""
        return int(self._kept_bytes)

    def drop(self) -> None:
        """Frees what has arrived: the connection is closed, and may be in a circle that is collected late."""
        self._kept.clear()
        self._kept_bytes = 0
        self._rest = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Returns the frames that are complete now. ProtocolError: the connection must be closed."""
        frames: list[Frame] = []
        self.begin(data)
        while self.step():
            frames.append(Frame(self.type, self.channel, self.data, self.start, self.end))
        return frames

    def begin(self, data: bytes) -> None:
        """Takes the next bytes; then `step` moves from frame to frame in them, without an object for each."""
        self._position = 0
        if self._kept_bytes:
            self._kept.append(data)
            self._kept_bytes += len(data)
            if self._kept_bytes < self._wanted_bytes:
                self._merge()
                self.data = b""
                return
            data = self._joined(data)
        self.data = data
        if self._handshake:
            if len(data) < len(HANDSHAKE):
                if not HANDSHAKE.startswith(data):
                    raise ProtocolError(f"the connection does not begin with ARTEMIS: {data!r}")
                self._keep(data, 0, len(HANDSHAKE))
                self.data = b""
                return
            if not data.startswith(HANDSHAKE):
                raise ProtocolError(f"the connection does not begin with ARTEMIS: {data[:7]!r}")
            self._handshake = False
            self._position = len(HANDSHAKE)

    def _joined(self, data: bytes) -> bytes:
        """Returns the whole frame whose end is in `data`. The bytes of `data` behind that end are not copied."""
        kept = self._kept
        end: i64 = len(data) - (self._kept_bytes - self._wanted_bytes)
        if self._wanted_bytes >= FRAME_OVERHEAD_BYTES and end < len(data):
            self._rest = data
            self._rest_position = end
            kept[len(kept) - 1] = data[:end]
        data = b"".join(kept)
        kept.clear()
        self._kept_bytes = 0
        return data

    def _merge(self) -> None:
        """Joins small pieces, so that kept bytes take about their own size, in however many pieces they come."""
        kept = self._kept
        last = len(kept) - 1
        if last > 0 and len(kept[last - 1]) < MERGED_BYTES:
            newest = kept.pop()
            kept[last - 1] = kept[last - 1] + newest

    def step(self) -> bool:
        """Returns True if there is another frame: `type`, `channel`, and the payload `data[start:end]`."""
        data = self.data
        position = self._position
        left = len(data) - position
        if left < 4 and self._rest:
            data = self._rest
            position = self._rest_position
            self._rest = b""
            self.data = data
            left = len(data) - position
        if left < 4:
            self._keep(data, position, 4)
            return False
        length = i64(read_i32_be(data, position))
        if length < LENGTH_OVERHEAD_BYTES:
            raise ProtocolError(f"frame length {length}: a frame has at least 9 bytes")
        if length + 4 > self.frame_bytes_max:
            raise ProtocolError(
                f"frame of {length + 4} bytes: at most {self.frame_bytes_max} are accepted"
            )
        if left < length + 4:
            self._keep(data, position, length + 4)
            return False
        code: int = data[position + 4]
        self.type = code - 256 if code > 127 else code
        self.channel = int(read_i64_be(data, position + 5))
        self.start = position + FRAME_OVERHEAD_BYTES
        self.end = position + length + 4
        self._position = self.end
        return True

    def _keep(self, data: bytes, position: i64, wanted: i64) -> None:
        if position < len(data):
            rest = data if position == 0 else data[position:]
            self._kept.append(rest)
            self._kept_bytes = len(rest)
            self._wanted_bytes = wanted
        self.data = b""  # not held longer than needed
        self._position = 0


def write_frame_header(out: BytesWriter, code: i64, channel: i64, payload_bytes: i64) -> None:
    """Writes the bytes before the payload."""
    write_i32_be(out, i32(payload_bytes + LENGTH_OVERHEAD_BYTES))
    out.append(u8(code & 0xFF))
    write_i64_be(out, channel)
