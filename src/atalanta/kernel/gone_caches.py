"""Duplicate ids of addresses that are gone: remembered for a while, then dropped, in memory and on disk.

Artemis drops both caches of an address with it, and already with its last binding (PostOfficeImpl.removeAddressInfo,
removeBinding: deleteDuplicateCache). Then a sender whose answer was lost with its connection, and whose message was
taken meanwhile by the last consumer of an automatic address, has it delivered twice when it sends it again; and so has
a member that was out of reach, or a bridge, which tries for as long as it takes. So here:

- Who deletes an address (management, config-delete-addresses) deletes its senders' ids with it, as in Artemis: who
  begins anew may use the same ids again.
- An address that went by itself, or is not here yet (ids that a leaving node has handed over), keeps those of its
  senders for `SENT_KEPT_NS`. Ids of links and bridges are used once only, keeping them costs nothing but room:
  they stay for `BRIDGED_KEPT_NS`, whoever deleted the address.
- All that are kept so for longer than `FRESH_NS` have one limit (duplicates.py: WEIGHT_MAX): temporary queues come and
  go by the thousand. The oldest go first.

The times begin when the sweep (address-queue-scan-period) first misses the address, with every new id (a peer forwards
to a queue of a wildcard address what has addresses that are not known here), and after a restart. Where nothing sweeps
a look comes when there are more than twice as many caches as at the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel import records
from atalanta.kernel.buffer import Writer
from atalanta.kernel.duplicates import BRIDGE_PREFIX, CACHE_WEIGHT, LOOK_AFTER
from atalanta.kernel.router import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.duplicates import DuplicateCache

SENT_KEPT_NS: Final = 3_600 * 1_000_000_000
BRIDGED_KEPT_NS: Final = 7 * 24 * 3_600 * 1_000_000_000
FRESH_NS: Final = 600 * 1_000_000_000


def sweep(broker: Broker, now: int) -> None:
    """Drop what was kept long enough, and what is too much."""
    gone: list[DuplicateCache] = []
    weight = 0
    for cache in list(broker.caches.by_name.values()):
        if _is_here(broker, cache.name):
            cache.gone_since = 0
        elif not cache.ids:
            drop(broker, cache)
        else:
            newest = next(reversed(cache.ids))
            if cache.gone_since == 0 or newest != cache.newest:
                cache.gone_since = now
                cache.newest = newest
            gone.append(cache)
            weight += len(cache.ids) + CACHE_WEIGHT
    gone.sort(key=_since)
    for cache in gone:
        bridged = cache.name.startswith(BRIDGE_PREFIX)
        kept_ns = BRIDGED_KEPT_NS if bridged else SENT_KEPT_NS
        age_ns = now - cache.gone_since
        if age_ns >= kept_ns or (weight > broker.caches.weight_max and age_ns >= FRESH_NS):
            weight -= len(cache.ids) + CACHE_WEIGHT
            drop(broker, cache)
    broker.caches.look_above = 2 * len(broker.caches.by_name) + LOOK_AFTER


def address_left(broker: Broker) -> None:
    """Where nothing sweeps, or not often enough for what comes and goes."""
    if len(broker.caches.by_name) > broker.caches.look_above:
        sweep(broker, broker.now)


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
