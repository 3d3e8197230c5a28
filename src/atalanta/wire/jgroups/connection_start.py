"""The greeting on a TCP connection of JGroups, and the frames behind it (TcpConnection.sendLocalAddress).

Only the side that dialled greets, with its version and its server address. Then both sides may send frames.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.wire.jgroups.address import IP4_BYTES, IP6_BYTES, Place, place_bytes, read_place
from atalanta.wire.jgroups.version import is_spoken
from atalanta.wire.protocol_error import ProtocolError

COOKIE: Final = b"bela"
SIZED: Final = 3 << 11 | 6 << 6 | 7  # from 3.6.7 on the size of the address comes before it
PLACE_BYTES: Final = {IP4_BYTES: 1 + 4 + 2, IP6_BYTES: 1 + 16 + 4 + 2}
FRAME_BYTES_MAX: Final = 1 << 20
READ_BYTES_MAX: Final = 1 << 17  # of a frame that is read; a longer one has no announcement, and is skipped


class Greeting:
    """The greeting of who dialled: its version, the address at which it listens, and its own length in bytes."""

    def __init__(self, version: int, place: Place, size: int) -> None:
        self.version = version
        self.place = place
        self.size = size


def encode_greeting(version: int, place: Place) -> bytes:
    """Encodes a greeting. `place` is the socket's own address: nobody dials it. ValueError: it is no IP address."""
    raw = place_bytes(place)
    sized = len(raw).to_bytes(2, "big") if version >= SIZED else b""
    return COOKIE + version.to_bytes(2, "big") + sized + raw


def decode_greeting(data: bytes) -> Greeting | None:
    """Decodes the greeting that begins `data`; None until enough bytes are there. ProtocolError."""
    if data[: len(COOKIE)] != COOKIE[: len(data)]:
        raise ProtocolError("neither a member of JGroups nor one of our nodes or clients")
    at = len(COOKIE) + 2
    if len(data) < at:
        return None
    version = int.from_bytes(data[at - 2 : at], "big")
    if not is_spoken(version):
        raise ProtocolError(f"a member of JGroups of a version that is not spoken ({version:#x})")
    sized = version >= SIZED
    start = at + 2 if sized else at
    if len(data) <= start:
        return None
    size = PLACE_BYTES.get(data[start])
    if size is None or (sized and int.from_bytes(data[at:start], "big") != size):
        raise ProtocolError("JGroups: the greeting has an address of a length that is not known")
    if len(data) < start + size:
        return None
    try:
        place = read_place(Reader(data[start : start + size]), "greeting.address")
    except DecodeError as error:
        raise ProtocolError(f"JGroups: {error}") from error
    return Greeting(version, place, start + size)


def encode_frame(data: bytes) -> bytes:
    """Encodes a frame: its length, then a datagram."""
    return len(data).to_bytes(4, "big") + data


class MemberFrames:
    """The frames of one connection, from bytes in any pieces. It holds at most one frame that is read."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the frames that are complete; one longer than READ_BYTES_MAX is skipped. ProtocolError for the end
        (a negative length, from 5.5 on) and for a frame longer than FRAME_BYTES_MAX."""
        waiting = self._waiting
        waiting += data
        found: list[bytes] = []
        while True:
            if self._skip:
                skipped = min(self._skip, len(waiting))
                del waiting[:skipped]
                self._skip -= skipped
            if self._skip or len(waiting) < 4:
                return found
            size = int.from_bytes(waiting[:4], "big")
            if size > FRAME_BYTES_MAX:
                raise ProtocolError("JGroups: the end, or a frame that is too long")
            if size > READ_BYTES_MAX:
                self._skip = size + 4
                continue
            if len(waiting) < 4 + size:
                return found
            found.append(bytes(waiting[4 : 4 + size]))
            del waiting[: 4 + size]
