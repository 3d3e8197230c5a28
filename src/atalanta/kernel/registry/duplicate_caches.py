"""Duplicate detection: a circular memory of ids per cache, durable with the messages that carry them.

A cache is named by its address (`_AMQ_DUPL_ID`) or `BRIDGE.` + address (`_AMQ_BRIDGE_DUP`), as in Artemis'
PostOfficeImpl. The newest `size` ids are kept (id-cache-size, 20,000); of addresses that are gone:
kernel/registry/orphaned_duplicate_caches.py.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

BRIDGE_PREFIX: Final = "BRIDGE."
BRIDGE_DUPLICATE: Final = "_AMQ_BRIDGE_DUP"  # the property
# What a leaving node brings has a longer id than what a bridge does (cluster/scale_down/scale_down_shipment.py:
# repeat_id).
BROUGHT_BYTES: Final = 32
# Finding the first entry of a dict takes the longer, the more were deleted before it: so many are found at once.
OLDEST_MAX: Final = 256


class DuplicateCache:
    """Ids in order of arrival -> lsn of the record that holds the id (0: not persisted)."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.ids: dict[bytes, int] = {}
        self._oldest: list[bytes] = []  # the first of `ids`, the very first at the end
        # When the sweep first missed its address after the newest id (orphaned_duplicate_caches.py); 0: not missed.
        self.gone_since: int = 0

    def lsn_of(self, duplicate_id: bytes) -> int:
        """The lsn whose durability the answer to a repeat must wait for; -1 if the id is new."""
        return self.ids.get(duplicate_id, -1)

    def add(self, duplicate_id: bytes, lsn: int) -> None:
        """The oldest goes when the cache is full; with size 0 nothing is remembered."""
        ids = self.ids
        if duplicate_id not in ids and len(ids) >= self.size:
            if self.size <= 0:
                return
            oldest = self._oldest
            if not oldest:
                oldest = list(islice(ids, OLDEST_MAX))
                oldest.reverse()
                self._oldest = oldest
            del ids[oldest.pop()]
        ids[duplicate_id] = lsn
        self.gone_since = 0

    def forget(self, duplicate_id: bytes) -> None:
        self.ids.pop(duplicate_id, None)
        self._oldest = []


class DuplicateCaches:
    """All caches of a node."""

    def __init__(self) -> None:
        self.by_name: dict[str, DuplicateCache] = {}

    def cache(self, name: str, size: int) -> DuplicateCache:
        found = self.by_name.get(name)
        if found is None:
            found = DuplicateCache(name, size)
            self.by_name[name] = found
        return found

    def count(self) -> int:
        total = 0
        for cache in self.by_name.values():
            total += len(cache.ids)
        return total
