"""The unacknowledged messages of a consumer, in order of delivery.

Acknowledgements nearly always arrive in that order, so the first message is compared first. A dict is slower: after the
first entries are deleted, each search for the first walks over the deleted ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from mypy_extensions import i64

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference

TRIM_MIN: Final = 1_024  # removed entries before the rest moves to the front


class Unacknowledged:
    """References by message id; a reference taken out of the middle leaves a hole (None).

    `_indexes` is built at the first acknowledgement out of order, and kept until the list moves; it may name holes.
    """

    def __init__(self) -> None:
        self._items: list[Reference | None] = []
        self._first: i64 = 0  # no entry before this index is left
        self._count: i64 = 0
        self._indexes: dict[int, int] | None = None

    def __len__(self) -> int:
        return int(self._count)

    def __contains__(self, message_id: int) -> bool:
        return self._index_of(message_id) >= 0

    def add(self, reference: Reference) -> None:
        """Adds a reference behind all others."""
        indexes = self._indexes
        if indexes is not None:
            indexes[reference.message.id] = len(self._items)
        self._items.append(reference)
        self._count += 1

    def get(self, message_id: int) -> Reference | None:
        """Returns a reference that is held, or None."""
        index = self._index_of(message_id)
        return None if index < 0 else self._items[index]

    def pop(self, message_id: int) -> Reference | None:
        """Takes one reference out; returns None if it is not held."""
        index = self._index_of(message_id)
        if index < 0:
            return None
        reference = self._items[index]
        self._items[index] = None
        self._count -= 1
        if index == self._first:
            self._move_up()
        return reference

    def pop_first(self, message_id: i64) -> Reference | None:
        """Takes the oldest reference out if it is this message's: the case of an acknowledgement in order."""
        first = self._first
        if self._count == 0:
            return None
        reference = self._items[first]
        if reference is None or reference.message.id != message_id:
            return None
        self._items[first] = None
        self._count -= 1
        self._move_up()
        return reference

    def pop_through(self, message_id: int) -> list[Reference]:
        """Takes out everything up to the message; takes nothing (empty list) if the message is not held."""
        taken: list[Reference] = []
        last = self._index_of(message_id)
        if last < 0:
            return taken
        items = self._items
        for index in range(self._first, last + 1):
            reference = items[index]
            if reference is not None:
                taken.append(reference)
                items[index] = None
                self._count -= 1
        self._move_up()
        return taken

    def take_all(self) -> list[Reference]:
        """Takes all out, in order."""
        taken = self.values()
        self.clear()
        return taken

    def values(self) -> list[Reference]:
        """Returns the references in order (a copy)."""
        if self._count == len(self._items) - self._first:  # no hole
            return cast("list[Reference]", self._items[int(self._first) :])
        return [reference for reference in self._items if reference is not None]

    def clear(self) -> None:
        self._items = []
        self._first = 0
        self._count = 0
        self._indexes = None

    def _index_of(self, message_id: int) -> i64:
        items = self._items
        if self._count == 0:
            return -1
        reference = items[self._first]
        if reference is not None and reference.message.id == message_id:
            return self._first
        indexes = self._indexes
        if indexes is None:
            indexes = {}
            for index in range(self._first, len(items)):
                reference = items[index]
                if reference is not None:
                    indexes[reference.message.id] = index
            self._indexes = indexes
        known = indexes.get(message_id, -1)
        if known < 0 or items[known] is None:
            return -1
        return known

    def _move_up(self) -> None:
        """Moves `_first` to the next reference that is left, or to the end."""
        items = self._items
        first = self._first
        size: i64 = len(items)
        if self._count == 0:
            self.clear()
            return
        while first < size and items[first] is None:
            first += 1
        if first >= TRIM_MIN and first * 2 > size:
            del items[:first]
            first = 0
            self._indexes = None
        self._first = first
