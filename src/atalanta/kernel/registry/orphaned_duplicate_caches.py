"""Duplicate ids of addresses that are gone: remembered for a week, then dropped, in memory and on disk.

Artemis drops both caches of an address with its last binding (PostOfficeImpl.removeBinding: deleteDuplicateCache).
Then a sender, a member or a bridge whose answer was lost with its connection delivers its message twice, if the last
consumer of an automatic address has taken the first one meanwhile. So here the ids stay for `KEPT_NS` after the sweep
first misses the address, after a newer id, and after a restart. There are at most `IDS_MAX` of them: temporary queues
come and go by the thousand, and the caches that are gone for longest are dropped first.

An operator who deletes an address (management, config-delete-addresses) deletes its senders' ids with it, as in
Artemis: who begins anew may use the same ids again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.registry.duplicate_caches import BRIDGE_PREFIX
from atalanta.message.encoding.buffer import Writer
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.registry.duplicate_caches import DuplicateCache

KEPT_NS: Final = 7 * 24 * 3_600 * 1_000_000_000
IDS_MAX = 100_000  # in all caches of addresses that are gone


def sweep(broker: Broker, now: int) -> None:
    """Drops the caches that were kept long enough, and the oldest of those that hold too much."""
    gone: list[DuplicateCache] = []
    count = 0
    for cache in list(broker.caches.by_name.values()):
        if _is_here(broker, cache.name):
            cache.gone_since = 0
        elif not cache.ids:
            drop(broker, cache)
        else:
            if cache.gone_since == 0:
                cache.gone_since = now
            gone.append(cache)
            count += len(cache.ids)
    gone.sort(key=_since)
    for cache in gone:
        if count > IDS_MAX or now - cache.gone_since >= KEPT_NS:
            count -= len(cache.ids)
            drop(broker, cache)


def forget_sent(broker: Broker, address: str) -> None:
    """Ids of senders to an address that somebody deleted; it stays as it is if another node has the address."""
    cache = broker.caches.by_name.get(address)
    if cache is not None and address not in broker.addresses:
        drop(broker, cache)


def drop(broker: Broker, cache: DuplicateCache) -> None:
    """Ids that come under that name afterwards begin a new cache, here and when the journal is read."""
    del broker.caches.by_name[cache.name]
    if cache.ids:
        writer = Writer()
        writer.simple_string(cache.name)
        broker.journal.append(records.DUPLICATES_DROPPED, writer.getvalue())


def _is_here(broker: Broker, name: str) -> bool:
    """An address may itself be called `BRIDGE.x`; what was sent to `address::queue` over a bridge has its own cache."""
    if name in broker.addresses:
        return True
    if not name.startswith(BRIDGE_PREFIX):
        return False
    return split_fqqn(name[len(BRIDGE_PREFIX) :])[0] in broker.addresses


def _since(cache: DuplicateCache) -> int:
    return cache.gone_since
