"""A message of the log view whose body is read in pieces."""

from __future__ import annotations

from struct import Struct
from typing import Final

from atalanta.message.codec import PACKET_HEADER_BYTES
from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.packets.log_chunk import ENTRY_HEADER_BYTES
from atalanta.wire.core.packets.logview import LogReadLargeResponse

PIECE_BYTES: Final = 4 << 20
# An entry's length is an int32, and so are the offsets of an Arrow column.
ENTRY_BYTES_MAX: Final = (1 << 31) - 1
BODY_BYTES_MAX: Final = ENTRY_BYTES_MAX

_HEADER: Final = Struct(">qii")  # sequence, delivery count, length of the message
_BODY_LENGTH: Final = Struct(">i")
_BODY_START: Final = ENTRY_HEADER_BYTES + _BODY_LENGTH.size


class LargeEntry:
    """The entry of a message, and the pieces of its body. At its end twice the body is in memory.

    A body above `body_bytes_max`, or one that is too large for an entry, is not read: nothing is `wanted`, and `error`
    says why. Raises ClientError if the node announces an entry without a header.
    """

    def __init__(self, announced: LogReadLargeResponse, body_bytes_max: int) -> None:
        self.entry = announced.entry
        if len(self.entry) < _BODY_START or announced.size < 0:
            raise ClientError(f"the broker announced a message of {len(self.entry)} bytes")
        self.sequence, self._delivery_count, self._length = _HEADER.unpack_from(self.entry)
        self.size = announced.size
        self.crc = announced.crc
        self.read = 0
        self.error = ""
        self.unread = False  # the body is whole at the node, and too large for this reader
        self._found_crc = 0
        self._pieces: list[bytes] = []
        limit = min(body_bytes_max, ENTRY_BYTES_MAX - len(self.entry))
        if self.size > limit:
            self.unread = True
            self.error = f"the body has {self.size} bytes, more than {limit}"

    @property
    def wanted(self) -> int:
        """Returns the number of bytes to ask for; 0 at the end."""
        return 0 if self.error else min(self.size - self.read, PIECE_BYTES)

    def add(self, piece: bytes) -> None:
        """Adds the next piece of the body; an empty one is its early end. ClientError: it is too long."""
        if len(piece) > self.wanted:
            raise ClientError(f"the broker sent {len(piece)} bytes of a body, not {self.wanted}")
        from google_crc32c import extend  # few readers need it

        self._pieces.append(piece)
        self.read += len(piece)
        self._found_crc = extend(self._found_crc, piece)
        if not piece:
            self.error = f"the body is damaged: the node has {self.read} of its {self.size} bytes"
        elif self.read == self.size and self.crc not in (-1, self._found_crc):
            self.error = "the body is damaged: the checksum of its bytes is another"

    def encoded(self) -> bytes:
        """Returns the entry with the body as far as it was read."""
        added = self.read
        header = _HEADER.pack(self.sequence, self._delivery_count, self._length + added)
        length = _BODY_LENGTH.pack(PACKET_HEADER_BYTES + added)
        return b"".join([header, length, *self._pieces, self.entry[_BODY_START:]])
