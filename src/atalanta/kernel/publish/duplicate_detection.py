"""Duplicate detection of published messages, by the sender's duplicate id or by that of a bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import DUPLICATE_ID, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.registry.duplicate_caches import (
    BRIDGE_DUPLICATE,
    SHIPMENT_ID_BYTES,
)
from atalanta.kernel.registry.duplicate_spaces import BRIDGE_PREFIX, application_id, user_bridge_id
from atalanta.kernel.security.security import MANAGE
from atalanta.kernel.trace import trace_message
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import ACK_ROUTE_TO
from atalanta.message.message import ROUTE_TO, Message
from atalanta.message.properties import PropertyValue

if TYPE_CHECKING:
    from atalanta.kernel.journal.records import Batch
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.security.security import Identity

SHOWN_MAX: Final = 100  # characters of an id in an error
LINK_HEADERS: Final = (ROUTE_TO, BRIDGE_DUPLICATE, ACK_ROUTE_TO)


class DuplicateDetection:
    """Finds messages that this node has got before, in its caches of duplicate ids."""

    def __init__(self, caches: DuplicateCaches, store: MessageStore, trace: Trace) -> None:
        self.caches = caches
        self.store = store
        self.trace = trace

    def find(self, plan: RoutingPlan, message: Message, name: str) -> int:
        """Returns the lsn as `find_id` does, by a core bridge's id before the sender's.

        Follows PostOfficeImpl.checkDuplicateID. `name`: the message's address.
        """
        if message.sent_id is not None:
            return self.find_id(plan, name, message.sent_id)
        if message.has_property(BRIDGE_DUPLICATE):
            bridge_id = message.properties.get(BRIDGE_DUPLICATE)
            message.remove_property(BRIDGE_DUPLICATE)
            if isinstance(bridge_id, bytes):
                return self.find_id(plan, BRIDGE_PREFIX + message.address, bridge_id)
        duplicate_id = message.duplicate_id
        return -1 if duplicate_id is None else self.find_id(plan, name, application_id(name, duplicate_id))

    def find_id(self, plan: RoutingPlan, cache_name: str, duplicate_id: bytes) -> int:
        """Returns the lsn of the earlier message with this duplicate id; -1: none, and the plan stores the id."""
        cache = self.caches.cache_of(cache_name)
        lsn = cache.first_lsn_of(duplicate_id)
        if lsn < 0:
            plan.duplicates.append((cache_name, duplicate_id))
        else:
            self.trace.count("duplicates_dropped")
            if self.trace.on:
                trace_message(self.trace, "trace_repeated", plan.message, cache_name)
        return lsn

    def knows(self, message: Message) -> bool:
        """Returns whether this node has got the message before: a repeat needs no room."""
        name = split_fqqn(message.address)[0]
        found: PropertyValue = message.sent_id
        if found is None and message.has_property(BRIDGE_DUPLICATE):
            name, found = BRIDGE_PREFIX + message.address, message.property_value(BRIDGE_DUPLICATE)
        if found is None and message.duplicate_id is not None:
            found = application_id(name, message.duplicate_id)
        cache = self.caches.by_name.get(name)
        return cache is not None and isinstance(found, bytes) and cache.first_lsn_of(found) >= 0

    def note_own(self, plan: RoutingPlan, message: Message) -> None:
        """Stores the application's id of a message that another id has told from repeats: its sender may repeat it."""
        duplicate_id = message.duplicate_id
        if duplicate_id is not None:
            known = application_id(message.address, duplicate_id)
            if self.caches.cache_of(message.address).first_lsn_of(known) < 0:
                plan.duplicates.append((message.address, known))

    def take_shipment_ids(self, plans: list[RoutingPlan], batch: Batch) -> list[tuple[str, bytes]]:
        """Stores the duplicate ids of a leaving node's branch; they leave the plans, for `add` after the write.

        The ids count from the prepare on, however the branch ends: a leaving node that does not know of the prepare
        sends everything once more. A client's ids enter the cache with a commit only (TransactionImpl).
        """
        found: list[tuple[str, bytes]] = []
        for plan in plans:
            for name, duplicate_id in plan.duplicates:
                if name.startswith(BRIDGE_PREFIX) and len(duplicate_id) == SHIPMENT_ID_BYTES:
                    age = self.store.take_message_id()
                    record = records.encode_duplicates(name, age, [duplicate_id])
                    batch.add(records.DUPLICATES, record)
                    found.append((name, duplicate_id))
                    plan.duplicates = []
        return found

    def add(self, ids: list[tuple[str, bytes]], lsn: int) -> None:
        """Adds ids that the record at `lsn` holds to the caches of those names."""
        for name, duplicate_id in ids:
            self.caches.cache_of(name).add(duplicate_id, lsn)


def repeat_error(message: Message) -> BrokerError:
    """Returns the error of a transaction with a repeat, in Artemis' words (PostOfficeImpl): programs look for them."""
    given = message.property_value("_AMQ_DUPL_ID")
    shown = given if isinstance(given, str) else given.hex() if isinstance(given, bytes) else ""
    known = f", _AMQ_DUPL_ID={shown[:SHOWN_MAX]}" if shown else ""
    return BrokerError(
        DUPLICATE_ID,
        "Duplicate message detected - message will not be routed. Message information: "
        f"address={message.address}{known}",
    )


def keep_apart(permissions: Permissions, identity: Identity, address: str, message: Message) -> None:
    """Makes the id of a bridge one of its user, who is no member and may not manage (`address`: of management).

    Ids of members and bridges can be guessed: anybody who may send could make their messages repeats.
    """
    duplicate_id = message.property_value(BRIDGE_DUPLICATE)
    if not isinstance(duplicate_id, bytes):
        message.remove_property(BRIDGE_DUPLICATE)
    elif not permissions.allows(identity, MANAGE, address):
        message.put_property(BRIDGE_DUPLICATE, user_bridge_id(identity.user, duplicate_id))


def restore_bridge_id(plan: RoutingPlan) -> None:
    """Puts the header that `find` removed back on the message."""
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
    """Puts the headers of `headers_of_links` back on their messages."""
    for message, name, value in headers:
        message.put_property(name, value)
