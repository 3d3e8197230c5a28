"""Messages moved to another queue or removed: expiry, dead letters, redistribution, purge.

Every move is one record: the copy in its new queues and the acknowledgement of the original are durable together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.publish import dead_letter_resources
from atalanta.kernel.publish.divert_routing import route_plan
from atalanta.kernel.queue.delivery import expiry_scan
from atalanta.kernel.queue.delivery.origin_headers import remember_origin
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.paging.removal import clear
from atalanta.kernel.queue.reference import DONE, READY, SCHEDULED, Reference
from atalanta.kernel.routing.router import Route
from atalanta.kernel.trace import tell
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import FORWARD_DUPLICATE
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.queue import Queue

EXPIRED: Final = "expired"
# The cost of moving one expired message, in examined messages.
EXPIRY_COST: Final = 50


def expire(broker: Broker, now: int, references: list[Reference]) -> None:
    """Moves expired messages to the expiry address of the message's own address; drops them if none is set.

    Follows QueueImpl.expire. For a queue of a wildcard address, the message's address is not the queue's.
    """
    for reference in references:
        if reference.state == DONE:
            continue
        for observer in broker.observers:
            observer.on_expired(now, reference)
        reference.queue.count_expired(1)
        settings = broker.settings.match(reference.message.address or reference.queue.spec.address)
        dead_letter_resources.for_expiry(broker, now, settings, reference.message)
        move_to_address(broker, now, reference, settings.expiry_address, EXPIRED)


def expire_found(broker: Broker, now: int, queue: Queue) -> None:
    """Expires the expired messages that the queue's delivery met."""
    expire(broker, now, queue.take_expired())


def tell_delivered(broker: Broker, now: int, queue: Queue) -> None:
    """Notifies the observers of the queue's deliveries. Called after the dispatch, since observers send messages."""
    for consumer, reference in queue.take_deliveries():
        for observer in broker.observers:
            observer.on_delivered(now, consumer, reference)


def dead_letter(
    broker: Broker, now: int, reference: Reference, why: str = "too many delivery attempts"
) -> None:
    """Moves the message to the dead-letter address, or drops it if there is none. Both are reported."""
    queue = reference.queue
    queue.count_killed(1)
    settings = broker.settings.match(queue.spec.address)
    target = settings.dead_letter_address
    broker.trace.event(
        "message_dead_lettered",
        {"queue": queue.name, "message": reference.message.id, "to": target or "nowhere (dropped)"},
    )
    dead_letter_resources.for_dead_letter(broker, now, settings, reference.message)
    move_to_address(broker, now, reference, target, why)


def move_to_address(
    broker: Broker, now: int, reference: Reference, target: str | None, why: str
) -> None:
    """Moves a copy with a new id and `_AMQ_ORIG_*` headers to `target` (None: drops it), and finishes the original."""
    batch = records.Batch()
    broker.store.note_lost(reference, why, batch)
    original = reference.message
    plan: Plan | None = None
    if target is not None:
        name, only_queue = split_fqqn(target)
        address = broker.addresses.get(name)
        if address is not None:
            plan = Plan(moved_copy(reference, target, now, why == EXPIRED))
            route_plan(broker, now, plan, address, only_queue, False)
        if plan is None or (not plan.routes and plan.diverted is None):
            # Artemis drops it too (QueueImpl.sendToDeadLetterAddress, noBindingsOnDLA): an event reports the loss.
            _say_lost(broker, original.id, reference.queue.name, target, why)
    references: list[Reference] = []
    if plan is not None:
        references = broker.plans.add(plan, batch)
    if reference.durable:
        batch.add(records.ACKS, records.encode_acks(reference.queue.id, [original.id]))
    broker.store.drop_from_queue(reference)
    broker.plans.append(batch, [] if plan is None else [plan], references, None, 0)


def _say_lost(broker: Broker, message_id: int, queue: str, target: str, why: str) -> None:
    broker.trace.count("messages_moved_nowhere")
    broker.trace.event(
        "moved_message_lost",
        {
            "message": message_id,
            "queue": queue,
            "why": f"{why}, and no queue of {target} takes it",
        },
    )


def dead_letter_unrouted(broker: Broker, now: int, plan: Plan, name: str) -> None:
    """Routes the message to the dead-letter address: no queue of address `name` takes it
    (PostOfficeImpl.maybeSendToDLA).

    Follows send-to-dla-on-no-route. As in Artemis, the dead-letter address and its queue are not created for the
    message.
    """
    target = broker.settings.match(name).dead_letter_address
    message = plan.message
    if target is None:
        broker.trace.event("dead_letter_address_missing", {"address": name})
        return
    dead, only_queue = split_fqqn(target)
    address = broker.addresses.get(dead)
    plan.origin = plan
    if address is not None:
        remember_origin(message, message, None)
        message.properties.remove("_AMQ_ROUTING_TYPE")
        message.expiration = 0
        message.address = target
        route_plan(broker, now, plan, address, only_queue, False)
    if not plan.routes and plan.diverted is None:
        _say_lost(broker, message.id, name, target, "no queue took it")


def moved_copy(reference: Reference, address: str, now: int, expired: bool) -> Message:
    """Returns the copy for a dead-letter or expiry address, with the headers of QueueImpl.makeCopy."""
    original = reference.message
    copy = original.copy(0)
    remember_origin(copy, original, reference.queue.name)
    properties = copy.properties
    properties.remove("_AMQ_ROUTING_TYPE")
    properties.remove("_AMQ_DUPL_ID")
    if expired:
        properties.put("_AMQ_ACTUAL_EXPIRY", now // 1_000_000)
    copy.properties_changed()
    copy.expiration = 0
    copy.address = address
    return copy


def transfer(broker: Broker, reference: Reference, target: Queue, route_to: bytes) -> None:
    """Redistributes the message to `target` (a store-and-forward queue)."""
    reroute(broker, reference, [Route(target, route_to)], "redistributed")


def reroute(
    broker: Broker,
    reference: Reference,
    routes: list[Route],
    why: str,
    without: str = "",
    known: bytes = b"",
) -> None:
    """Moves the message from its queue to others, under a new id and without the header named `without`.

    `known`: the id under which another node may have the message already (kernel/publish/scale_down_target.py). Core
    bridges know the message by its first id (kernel/queue/delivery/bridge_origin.py). As in Redistributor, no header
    marks the copy. The original's acknowledgement is in the same record.
    """
    batch = records.Batch()
    broker.store.note_lost(reference, why, batch)
    plan = Plan(reference.message.copy(0))
    if without and plan.message.special:
        plan.message.remove_property(without)
    if known:
        plan.message.properties.put(FORWARD_DUPLICATE, known)
        plan.message.properties_changed()
    origins = broker.origins
    if origins.attach(plan.message, int(reference.message.id), reference.queue.name):
        origins.note()
    plan.routes = routes
    references = broker.plans.add(plan, batch)
    if reference.durable:
        batch.add(records.ACKS, records.encode_acks(reference.queue.id, [reference.message.id]))
    broker.store.drop_from_queue(reference)
    if broker.trace.on:
        tell(broker.trace, "story_moved_away", reference.message, reference.queue.name)
    broker.plans.append(batch, [plan], references, None, 0)


def purge(broker: Broker, queue: Queue, why: str) -> None:
    """Removes every message that is not being delivered, for good (purge-on-no-consumers)."""
    batch = records.Batch()
    message_ids: list[int] = []
    for reference in [*queue.live(), *[waiting for _, waiting in broker.scheduled.of_queue(queue)]]:
        if reference.state != READY and reference.state != SCHEDULED:
            continue
        if reference.durable:
            message_ids.append(reference.message.id)
        broker.store.note_lost(reference, why, batch)
        broker.store.drop_from_queue(reference)
        queue.count_killed(1)
    if queue.paged is not None:
        for reference in queue.paged.tail:
            if reference.durable:
                message_ids.append(reference.message.id)
        queue.count_killed(clear(broker.paging, queue))
    if message_ids:
        batch.add(records.ACKS, records.encode_acks(queue.id, message_ids))
    broker.plans.append(batch, [], [], None, 0)


def scan_expired(broker: Broker, now: int, queue: Queue, looks_max: int) -> int:
    """Expires messages of a queue without consumers (message-expiry-scan-period); returns the work done.

    The unit is one examined message; an expired message counts for EXPIRY_COST more.
    """
    if queue.active_lease() is not None:
        expiry_scan.restart(queue)
        return 0
    step = expiry_scan.scan(queue, now // 1_000_000, looks_max)
    if step.found:
        expire(broker, now, step.found)
    if step.at_end and _next_from_pages(broker, now, queue, len(step.found) > 0):
        expiry_scan.resume(queue)
    return step.examined + EXPIRY_COST * len(step.found)


def _next_from_pages(broker: Broker, now: int, queue: Queue, wanted: bool) -> bool:
    """Reads the next page after all messages in memory have expired; returns true if a page was read.

    Without this, the messages in page files would stay there until the queue gets a consumer.
    """
    paged = queue.paged
    if paged is None or queue.message_count > paged.count:
        return False
    if not wanted and broker.memory.full_for(queue.account):
        return False
    return broker.paging.refill(now, queue, True)
