"""Duplicate detection of published messages, by the sender's duplicate id or by that of a bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.registry.duplicate_caches import (
    BRIDGE_DUPLICATE,
    BRIDGE_PREFIX,
    BROUGHT_BYTES,
)
from atalanta.kernel.trace import tell
from atalanta.message.internal_headers import ACK_ROUTE_TO
from atalanta.message.message import ROUTE_TO, Message
from atalanta.message.properties import PropertyValue

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.journal.records import Batch

LINK_HEADERS: Final = (ROUTE_TO, BRIDGE_DUPLICATE, ACK_ROUTE_TO)


def repeat_of(broker: Broker, plan: Plan, message: Message, name: str) -> int:
    """Returns the lsn as `repeat` does, by a core bridge's id before the sender's (PostOfficeImpl.checkDuplicateID)."""
    if message.has_property(BRIDGE_DUPLICATE):
        bridge_id = message.properties.get(BRIDGE_DUPLICATE)
        message.remove_property(BRIDGE_DUPLICATE)
        if isinstance(bridge_id, bytes):
            return repeat(broker, plan, BRIDGE_PREFIX + message.address, bridge_id)
    duplicate_id = message.duplicate_id
    return -1 if duplicate_id is None else repeat(broker, plan, name, duplicate_id)


def repeat(broker: Broker, plan: Plan, cache_name: str, duplicate_id: bytes) -> int:
    """Returns the lsn of the earlier message with this duplicate id; -1: none, and the plan brings the id."""
    cache = broker.caches.cache_of(cache_name)
    lsn = cache.lsn_of(duplicate_id)
    if lsn < 0:
        plan.duplicates.append((cache_name, duplicate_id))
    else:
        broker.trace.count("duplicates_dropped")
        if broker.trace.on:
            tell(broker.trace, "story_repeated", plan.message, cache_name)
    return lsn


def store_brought(broker: Broker, plans: list[Plan], batch: Batch) -> list[tuple[str, bytes]]:
    """Stores the duplicate ids of a leaving node's branch; they leave the plans, for `remember` after the write.

    The ids count from the prepare on, however the branch ends: a leaving node that does not know of the prepare sends
    everything once more. A client's ids enter the cache with a commit only (TransactionImpl).
    """
    found: list[tuple[str, bytes]] = []
    for plan in plans:
        for name, duplicate_id in plan.duplicates:
            if name.startswith(BRIDGE_PREFIX) and len(duplicate_id) == BROUGHT_BYTES:
                age = broker.store.take_message_id()
                batch.add(records.DUPLICATES, records.encode_duplicates(name, age, [duplicate_id]))
                found.append((name, duplicate_id))
                plan.duplicates = []
    return found


def remember(broker: Broker, ids: list[tuple[str, bytes]], lsn: int) -> None:
    """Adds ids that the record at `lsn` holds to the caches of those names."""
    for name, duplicate_id in ids:
        broker.caches.cache_of(name).add(duplicate_id, lsn)


def restore_bridge_id(plan: Plan) -> None:
    """Puts the header that `repeat_of` removed back on the message."""
    cache_name = BRIDGE_PREFIX + plan.message.address
    for name, duplicate_id in plan.duplicates:
        if name == cache_name:
            plan.message.put_property(BRIDGE_DUPLICATE, duplicate_id)


def headers_of_links(messages: list[Message]) -> list[tuple[Message, str, PropertyValue]]:
    """Returns the headers that preparing removes from messages of links and bridges, for a second preparation."""
    return [
        (message, name, message.property_value(name))
        for message in messages
        if message.special
        for name in LINK_HEADERS
        if message.has_property(name)
    ]


def put_back(headers: list[tuple[Message, str, PropertyValue]]) -> None:
    for message, name, value in headers:
        message.put_property(name, value)
