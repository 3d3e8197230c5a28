"""Caches of structures that are sent once: later frames have an index of 16 bits (OpenWireFormat of activemq-client).

The writer chooses the indexes, the reader obeys. An index that was never sent, or beyond the size, is an error.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire.encoding.structure import DataStructure, Identifier

# Of both sides that announce no size: half of a Java short.
SIZE_DEFAULT: Final = 16_383
# The writer removes the oldest entries before a frame until this many are free: so many can be added by one frame.
FREE: Final = 100
# Names may have 64 KiB: what the entries of one connection take together, in bytes of the wire.
BYTES_MAX: Final = 16 << 20
NOT_CACHED: Final = -1


class WriteCache:
    """The structures that the peer knows, with their indexes. None is one of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._indexes: dict[Identifier | None, int] = {}
        self._entries: dict[int, Identifier | None] = {}
        self._next: int = 0
        self._oldest: int = 0
        # What the current frame added.
        self._added: list[int] = []
        self.removals: int = 0  # an index may mean something else from now on

    def begin(self) -> None:
        """Makes room before a frame."""
        self._added.clear()
        while len(self._indexes) > max(self._size - FREE, 0):
            self._remove(self._oldest)
            self._oldest = (self._oldest + 1) % self._size

    def index(self, value: Identifier | None) -> int:
        """Returns the index of a structure, NOT_CACHED if the peer does not know it."""
        return self._indexes.get(value, NOT_CACHED)

    def add(self, value: Identifier | None) -> int:
        """Returns the index that the structure has from now on, NOT_CACHED if there is no room."""
        at = self._next
        if at in self._entries:
            return NOT_CACHED
        self._next = (at + 1) % self._size
        self._entries[at] = value
        self._indexes[value] = at
        self._added.append(at)
        return at

    def undo(self) -> None:
        """Forgets what the current frame added: the frame is not sent."""
        for at in reversed(self._added):
            self._remove(at)
            self._next = at
        self._added.clear()

    def _remove(self, at: int) -> None:
        if at in self._entries:
            self.removals += 1
            del self._indexes[self._entries.pop(at)]


class ReadCache:
    """The structures that the peer sent, by its indexes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: dict[int, DataStructure | None] = {}
        self._entry_bytes: dict[int, int] = {}
        self._bytes: int = 0
        self.changes: int = 0

    def get(self, index: int, what: str, offset: int) -> DataStructure | None:
        if index not in self._entries:
            raise DecodeError(what, offset, f"index {index} was never sent")
        return self._entries[index]

    def put(
        self, index: int, value: DataStructure | None, size_bytes: int, what: str, offset: int
    ) -> None:
        """Keeps a structure of that many bytes. Index -1: the peer had no room, and will not ask for it."""
        if index == NOT_CACHED:
            return
        if index < 0 or index >= self._size:
            raise DecodeError(what, offset, f"index {index}, but the cache has {self._size} entries")
        self._bytes += size_bytes - self._entry_bytes.get(index, 0)
        if self._bytes > BYTES_MAX:
            raise DecodeError(what, offset, f"more than {BYTES_MAX} bytes of cached structures")
        self._entries[index] = value
        self._entry_bytes[index] = size_bytes
        self.changes += 1


class UnknownEntries(ReadCache):
    """A cache in which every index has an entry: null. Frames that this side wrote are read with it."""

    def get(self, index: int, what: str, offset: int) -> DataStructure | None:
        return None
