"""The decoder of a connection: bytes in any pieces to commands. Before login only the handshake is accepted."""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.connections import WireFormatInfo
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.options import (
    HANDSHAKE,
    WireFormatOptions,
    negotiated,
    options_of,
)
from atalanta.wire.openwire.repeated_frames import RepeatedFrames
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.protocol_error import ProtocolError

# Frames of the handshake have a few hundred bytes, of which most are texts.
OPTIONS_BYTES_MAX: Final = 16 << 10
LOGIN_BYTES_MAX: Final = 64 << 10
MERGED_BYTES: Final = 4096
# What may come before ConnectionInfo; a BrokerInfo once (TransportConnection of Classic).
BEFORE_LOGIN: Final = (
    codes.CONNECTION_INFO,
    codes.KEEP_ALIVE_INFO,
    codes.CONNECTION_CONTROL,
    codes.BROKER_INFO,
    codes.SHUTDOWN_INFO,
)


class FrameDecoder:
    """Cuts frames and decodes them. `ours` are the options that this side announced.

    The first frame must be a WireFormatInfo. From then on `format` has what both sides can do. Until `open` is
    called only a login and what may come before it are accepted, in small frames.
    """

    def __init__(self, ours: WireFormatOptions) -> None:
        self._ours = ours
        self.format: WireFormat = WireFormat(HANDSHAKE)
        self.theirs: WireFormatOptions | None = None
        self._opened: bool = False
        self._broker_known: bool = False
        self._bytes_max: i64 = OPTIONS_BYTES_MAX
        # Bytes not yet decoded: `_data` from `_position` on, then the pieces.
        self._data: bytes = b""
        self._position: i64 = 0
        self._pieces: list[bytes] = []
        self._piece_bytes: i64 = 0
        # The pieces are joined when there are this many bytes.
        self._wanted: i64 = 4
        self._repeated: RepeatedFrames | None = None

    def compare_frames(self) -> None:
        """Decodes messages and acknowledgements by comparison: a command is valid until the next call of `next`."""
        self._repeated = RepeatedFrames()

    def open(self) -> None:
        """Accepts every command from now on: the client has logged in, or this side dialled."""
        self._opened = True
        if self.theirs is not None:
            self._bytes_max = self.format.options.frame_bytes_max

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the connection."""
        if not self._pieces and self._position == len(self._data):
            self._data = data
            self._position = 0
            return
        pieces = self._pieces
        # Small pieces are joined, so that kept bytes take about their own size.
        if pieces and len(pieces[-1]) < MERGED_BYTES:
            pieces[-1] += data
        else:
            pieces.append(data)
        self._piece_bytes += len(data)

    def drop(self) -> None:
        """Frees what has arrived: the connection is closed, and may be in a circle that is collected late."""
        self._data = b""
        self._position = 0
        self._pieces.clear()
        self._piece_bytes = 0
        self._repeated = None

    def has_part(self) -> bool:
        """Returns True while a frame has arrived in part."""
        return self._piece_bytes > 0 or self._position < len(self._data)

    def kept_bytes(self) -> int:
        """Returns the bytes of a frame that has arrived in part."""
        return int(len(self._data) - self._position + self._piece_bytes)

    def next(self) -> DataStructure | None:
        """Returns the next command, None if its bytes have not all come.

        ProtocolError and DecodeError: the connection must be closed. A length is refused before its bytes are kept.
        """
        start = self._frame()
        if start < 0:
            return None
        end = self._position
        self._check(self._data[start])
        found = self._decoded(start, end)
        if end == len(self._data):
            self._data = b""  # not held longer than needed
            self._position = 0
        if isinstance(found, WireFormatInfo):
            self._negotiate(found)
        return found

    def _decoded(self, start: i64, end: i64) -> DataStructure | None:
        repeated = self._repeated
        if repeated is None:
            return self.format.decode(self._data, start, end)
        found: DataStructure | None = repeated.find(self.format, self._data, start, end)
        if found is None:
            changes = self.format.read_cache_changes()
            found = self.format.decode(self._data, start, end)
            if found is not None and changes == self.format.read_cache_changes():
                repeated.learn(self.format, found, self._data, start, end)
        return found

    def _frame(self) -> i64:
        """Moves behind the next frame and returns the begin of its bytes, -1 if it is not complete."""
        left = len(self._data) - self._position
        if self._pieces:
            if left + self._piece_bytes < self._wanted:
                return -1
            self._pieces.insert(0, self._data[self._position :])
            self._data = b"".join(self._pieces)
            self._pieces.clear()
            self._piece_bytes = 0
            self._position = 0
            left = len(self._data)
        self._wanted = 4
        if left < 4:
            return -1
        size = i64(read_i32_be(self._data, self._position))
        if size < 1 or size > self._bytes_max:
            raise ProtocolError(f"a frame of {size} bytes: 1 to {self._bytes_max} are accepted here")
        self._wanted = size + 4
        if left < self._wanted:
            if self._position:  # the frames before it are not held longer than needed
                self._data = self._data[self._position :]
                self._position = 0
            return -1
        self._wanted = 4
        start = self._position + 4
        self._position = start + size
        return start

    def _check(self, code: int) -> None:
        """Checks that the command is accepted now, before it is decoded."""
        if self.theirs is None:
            if code != codes.WIRE_FORMAT_INFO:
                raise ProtocolError(f"the connection begins with type {code}, not WireFormatInfo")
        elif code == codes.WIRE_FORMAT_INFO:
            raise ProtocolError("a second WireFormatInfo")
        elif not self._opened:
            if code not in BEFORE_LOGIN:
                raise ProtocolError(f"type {code} before ConnectionInfo")
            if code == codes.BROKER_INFO:
                if self._broker_known:
                    raise ProtocolError("a second BrokerInfo before ConnectionInfo")
                self._broker_known = True

    def _negotiate(self, info: WireFormatInfo) -> None:
        theirs = options_of(info)
        options = negotiated(self._ours, theirs)
        if options.size_prefix_disabled:
            raise ProtocolError("SizePrefixDisabled on a stream: frames need a length here")
        self.theirs = theirs
        self.format = WireFormat(options)
        self._bytes_max = LOGIN_BYTES_MAX
        if self._opened:
            self._bytes_max = options.frame_bytes_max
