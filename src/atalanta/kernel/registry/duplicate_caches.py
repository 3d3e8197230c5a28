"""Duplicate detection: a circular memory of ids per cache, durable with the messages that carry them.

A cache is named by its address (`_AMQ_DUPL_ID`) or `BRIDGE.` + address (`_AMQ_BRIDGE_DUP`), as in Artemis'
PostOfficeImpl; duplicate_spaces.py has what else is in it. The newest `size` ids are kept (id-cache-size, 20,000).

Caches of deleted addresses are kept for a week. Artemis drops both caches of an address with its last binding
(PostOfficeImpl.removeBinding: deleteDuplicateCache). Then a sender, a member or a bridge whose answer was lost with its
connection delivers its message twice, if the last consumer of an automatic address has taken the first one meanwhile.
So the ids stay for `KEPT_NS` after the sweep first misses the address, after a newer id, and after a restart. At most
`IDS_MAX` of them are kept, because temporary queues are created and deleted by the thousand. The caches whose
addresses were deleted first are dropped first.

An operator who deletes an address (management, config-delete-addresses) deletes its senders' ids with it, as in
Artemis: a new application may use the same ids again.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.registry.duplicate_spaces import BRIDGE_PREFIX, OLD_BEGIN, older_id
from atalanta.message.encoding.buffer import Writer
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from collections.abc import Container

    from atalanta.kernel.ports import JournalPort
    from atalanta.kernel.settings.repository import AddressSettingsRepository

BRIDGE_DUPLICATE: Final = "_AMQ_BRIDGE_DUP"  # the property
# The repeat id of a scale-down shipment is longer than that of a bridge (cluster/scale_down/shipments.py:
# repeat_id).
SHIPMENT_ID_BYTES: Final = 32
# Finding a dict's first entry takes the longer, the more were deleted before it. So many are found at once.
OLDEST_MAX: Final = 256
KEPT_NS: Final = 7 * 24 * 3_600 * 1_000_000_000
IDS_MAX = 100_000  # in all caches of deleted addresses


class DuplicateCache:
    """A cache: ids in order of arrival -> lsn of the record that holds the id (0: not persisted)."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.ids: dict[bytes, int] = {}
        self._oldest: list[bytes] = []  # the first of `ids`, in reverse order
        # Ids that have several forms: message ids of OpenWire that an older version has written, ids of bridges.
        self._has_forms: bool = name.startswith(BRIDGE_PREFIX)
        # When the sweep first missed the address after the newest id, ns; 0: not missed.
        self.gone_since: int = 0

    def lsn_of(self, duplicate_id: bytes) -> int:
        """Returns the lsn that must be durable before a repeat is answered; -1 if the id is new."""
        return self.ids.get(duplicate_id, -1)

    def first_lsn_of(self, duplicate_id: bytes) -> int:
        """Returns the same as `lsn_of`, also for an id that is there in another form (`older_id`)."""
        lsn = self.ids.get(duplicate_id, -1)
        if lsn < 0 and self._has_forms:
            older = older_id(duplicate_id)
            if older is not None:
                return self.ids.get(older, -1)
        return lsn

    def add(self, duplicate_id: bytes, lsn: int) -> None:
        """Adds an id, and drops the oldest one of a full cache; a cache of size 0 keeps no id."""
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
        if not self._has_forms and duplicate_id.startswith(OLD_BEGIN):
            self._has_forms = True
        self.gone_since = 0

    def forget(self, duplicate_id: bytes) -> None:
        self.ids.pop(duplicate_id, None)
        self._oldest = []


class DuplicateCaches:
    """The duplicate-id caches of a node by name.

    `size` is the broker's id-cache-size, `addresses` the names of the addresses that exist.
    """

    def __init__(
        self,
        size: int,
        settings: AddressSettingsRepository,
        addresses: Container[str],
        journal: JournalPort,
    ) -> None:
        self.size = size
        self.settings = settings
        self.addresses = addresses
        self.journal = journal
        self.by_name: dict[str, DuplicateCache] = {}

    def cache_of(self, name: str) -> DuplicateCache:
        """Returns the cache of that name, a new one if need be."""
        found = self.by_name.get(name)
        if found is None:
            found = DuplicateCache(name, self.size_of(name))
            self.by_name[name] = found
        return found

    def size_of(self, name: str) -> int:
        """Returns the size of a cache: the address' id-cache-size, else the broker's (PostOfficeImpl)."""
        address = name[len(BRIDGE_PREFIX) :] if name.startswith(BRIDGE_PREFIX) else name
        size = self.settings.match(address).id_cache_size
        return self.size if size is None else size

    def count(self) -> int:
        """Returns the number of ids in all caches."""
        total = 0
        for cache in self.by_name.values():
            total += len(cache.ids)
        return total

    # -- caches of deleted addresses --------------------------------------------------------------
    def sweep(self, now: int) -> None:
        """Drops the caches that were kept for `KEPT_NS`, and the oldest ones above `IDS_MAX` ids."""
        gone: list[DuplicateCache] = []
        count = 0
        for cache in list(self.by_name.values()):
            if self._has_address(cache.name):
                cache.gone_since = 0
            elif not cache.ids:
                self._drop(cache)
            else:
                if cache.gone_since == 0:
                    cache.gone_since = now
                gone.append(cache)
                count += len(cache.ids)
        gone.sort(key=_since)
        for cache in gone:
            if count > IDS_MAX or now - cache.gone_since >= KEPT_NS:
                count -= len(cache.ids)
                self._drop(cache)

    def forget_sent(self, address: str) -> None:
        """Drops the ids of senders to a deleted address; they stay if another node has the address."""
        cache = self.by_name.get(address)
        if cache is not None and address not in self.addresses:
            self._drop(cache)

    def clear(self, name: str) -> bool:
        """Drops the ids of the cache, here and in the journal. Returns False if there is no such cache."""
        cache = self.by_name.get(name)
        if cache is None:
            return False
        self._drop(cache)
        return True

    def _drop(self, cache: DuplicateCache) -> None:
        """Removes the cache; later ids of that name begin a new one, here and in the journal."""
        del self.by_name[cache.name]
        if cache.ids:
            writer = Writer()
            writer.simple_string(cache.name)
            self.journal.append(records.DUPLICATES_DROPPED, writer.getvalue())

    def _has_address(self, name: str) -> bool:
        """Returns True if the address of the cache exists.

        An address may itself be called `BRIDGE.x`. Messages of a bridge to `address::queue` have their own cache.
        """
        if name in self.addresses:
            return True
        if not name.startswith(BRIDGE_PREFIX):
            return False
        return split_fqqn(name[len(BRIDGE_PREFIX) :])[0] in self.addresses


def _since(cache: DuplicateCache) -> int:
    return cache.gone_since
