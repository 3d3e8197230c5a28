"""Messages that go somewhere else: expiry, dead letters, redistribution, purge.

Every move is one record: the copy in its new queues and the acknowledgement of the original are durable together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel import records
from atalanta.kernel.message import Message
from atalanta.kernel.plan import Plan
from atalanta.kernel.properties import Byte
from atalanta.kernel.reference import DONE, Reference
from atalanta.kernel.router import Route, route, split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.queue import Queue


def expire(broker: Broker, now: int, references: list[Reference]) -> None:
    """Past their expiration: to the expiry address, or away when none is set."""
    for reference in references:
        if reference.state == DONE:
            continue
        queue = reference.queue
        queue.expired += 1
        target = broker.settings_of(queue.spec.address).expiry_address
        move_to_address(broker, now, reference, target, "expired")


def dead_letter(broker: Broker, now: int, reference: Reference) -> None:
    """Too many delivery attempts: to the dead-letter address, or away when none is set (both are said)."""
    queue = reference.queue
    queue.killed += 1
    target = broker.settings_of(queue.spec.address).dead_letter_address
    broker.trace.event(
        "message_dead_lettered",
        {"queue": queue.name, "message": reference.message.id, "to": target or "nowhere (dropped)"},
    )
    move_to_address(broker, now, reference, target, "too many delivery attempts")


def move_to_address(
    broker: Broker, now: int, reference: Reference, target: str | None, why: str
) -> None:
    """Copy with a new id and `_AMQ_ORIG_*` headers to `target` (None: nowhere), original finished with it."""
    batch = records.Batch()
    broker.note_lost(reference, why, batch)
    original = reference.message
    plan: Plan | None = None
    if target is not None:
        name, only_queue = split_fqqn(target)
        address = broker.addresses.get(name)
        if address is not None:
            copy = moved_copy(reference, target, now, why == "expired")
            plan = Plan(copy)
            plan.routes = route(address, copy, -1, only_queue)
        else:
            broker.trace.event("move_target_missing", {"address": target, "why": why})
    references: list[Reference] = []
    if plan is not None:
        references = broker.add_to_batch(plan, batch)
    if reference.durable:
        batch.add(records.ACKS, records.encode_acks(reference.queue.id, [original.id]))
    broker.drop_from_queue(reference)
    broker.append_batch(batch, [] if plan is None else [plan], references, None, 0)


def moved_copy(reference: Reference, address: str, now: int, expired: bool) -> Message:
    """As Artemis' copies to dead-letter and expiry addresses carry them (fact sheet, `_AMQ_ORIG_*`)."""
    original = reference.message
    copy = original.copy(0)
    properties = copy.properties
    if "_AMQ_ORIG_ADDRESS" not in properties:
        properties.put("_AMQ_ORIG_ADDRESS", original.address)
        properties.put("_AMQ_ORIG_QUEUE", reference.queue.name)
        properties.put("_AMQ_ORIG_MESSAGE_ID", original.id)
        routing_type = original.routing_type
        if routing_type >= 0:
            properties.put("_AMQ_ORIG_ROUTING_TYPE", Byte(routing_type))
    properties.remove("_AMQ_ROUTING_TYPE")
    properties.remove("_AMQ_DUPL_ID")
    if expired:
        properties.put("_AMQ_ACTUAL_EXPIRY", now // 1_000_000)
    copy.properties_changed()
    copy.expiration = 0
    copy.address = address
    return copy


def transfer(broker: Broker, reference: Reference, target: Queue, route_to: bytes) -> None:
    """Redistribution: the message goes on to `target` (a store-and-forward queue) under a new id.

    As in Redistributor: no header marks it; the original's acknowledgement is in the same record.
    """
    batch = records.Batch()
    broker.note_lost(reference, "redistributed", batch)
    plan = Plan(reference.message.copy(0))
    plan.routes = [Route(target, route_to)]
    references = broker.add_to_batch(plan, batch)
    if reference.durable:
        batch.add(records.ACKS, records.encode_acks(reference.queue.id, [reference.message.id]))
    broker.drop_from_queue(reference)
    broker.append_batch(batch, [plan], references, None, 0)


def scan_expired(broker: Broker, now: int, queue: Queue, scan_max: int) -> None:
    """Find expired messages in a queue nobody reads (message-expiry-scan-period)."""
    if queue.active_lease() is not None:
        return
    now_ms = now // 1_000_000
    found: list[Reference] = []
    for reference in queue.references[:scan_max]:
        expiration = reference.message.expiration
        if reference.state == 0 and expiration != 0 and expiration <= now_ms:
            found.append(reference)
    if found:
        expire(broker, now, found)
