"""The bytes of one batch over all of its nodes and queues (`maxBytesPerTrigger`)."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from typing import TypeVar

Place = TypeVar("Place", bound=Hashable)


class BatchRoom:
    """The room of a batch. Only its first messages may exceed the limit: a batch has at least one. Thread-safe.

    `limit` None: everything fits.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.left = limit or 0
        self.empty = True
        self._lock = threading.Lock()

    @property
    def full(self) -> bool:
        return self.limit is not None and self.left == 0

    def take(self, size: int) -> bool:
        """Takes `size` bytes. Returns False, and takes nothing, if they do not fit."""
        with self._lock:
            if self.limit is not None and size > self.left and not self.empty:
                return False
            self.empty = False
            self.left = max(0, self.left - size)
            return True


class PlaceOrder:
    """The order of nodes or queues: those that found no room in a batch are the first in the next."""

    def __init__(self) -> None:
        self._waited: dict[Hashable, None] = {}

    def order(self, places: Iterable[Place]) -> list[Place]:
        """Returns the places, those that waited first, in the order in which they began to wait."""
        found = list(places)
        waited = list(self._waited)
        return sorted(found, key=lambda place: waited.index(place) if place in self._waited else len(waited))

    def waits(self, place: Hashable) -> bool:
        return place in self._waited

    def wait(self, place: Hashable) -> None:
        """Records that the place has messages and found no room."""
        self._waited.setdefault(place)

    def serve(self, place: Hashable) -> None:
        """Records that the place has a part of the batch."""
        self._waited.pop(place, None)
