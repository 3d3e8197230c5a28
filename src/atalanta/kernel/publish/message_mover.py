"""Messages moved to another queue or removed: the common part of expiry, dead letters, redistribution and purge.

Every move is one record: the copy in its new queues and the acknowledgement of the original are durable together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records
from atalanta.kernel.publish.dead_letter_resources import FAILURE_CAUSE
from atalanta.kernel.queue.delivery.origin_headers import remember_origin
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.paging.removal import clear
from atalanta.kernel.queue.reference import READY, SCHEDULED, Reference
from atalanta.kernel.routing.router import Route
from atalanta.kernel.trace import trace_message
from atalanta.message.fqqn import split_fqqn
from atalanta.message.instant import later_ms
from atalanta.message.internal_headers import FORWARD_DUPLICATE
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.publish.divert_routing import DivertRouting
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.delivery.bridge_origin import Origins
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.addresses import AddressRegistry

class MessageMover:
    """Moves messages between the queues of a node, and removes them."""

    def __init__(
        self,
        plans: PlanWriter,
        addresses: AddressRegistry,
        diverts: DivertRouting,
        origins: Origins,
        trace: Trace,
    ) -> None:
        self.plans = plans
        self.store = plans.store
        self.addresses = addresses
        self.diverts = diverts
        self.origins = origins
        self.trace = trace

    def move_to_address(
        self,
        now: int,
        reference: Reference,
        target: str | None,
        why: str,
        expired: bool = False,
        cause: str = "",
        lifetime_ms: int = -1,
    ) -> None:
        """Moves a copy with a new id and `_AMQ_ORIG_*` headers to `target`, and finishes the original.

        `target` None drops the message. `expired`: the copy gets `_AMQ_ACTUAL_EXPIRY`. `cause`: the client's own
        reason, which clients of ActiveMQ Classic read as dlqDeliveryFailureCause. `lifetime_ms` as in `moved_copy`.
        """
        store = self.store
        batch = records.Batch()
        store.note_lost(reference, why, batch)
        original = reference.message
        plan: RoutingPlan | None = None
        if target is not None:
            plan = self.plan_of_move(now, reference, target, expired, lifetime_ms)
            if plan is None or not plan.is_routed():
                # Artemis drops it too (QueueImpl.sendToDeadLetterAddress, noBindingsOnDLA): an event reports the loss.
                self.diverts.report_lost(original.id, reference.queue.name, target, why)
        references: list[Reference] = []
        if plan is not None:
            if cause:
                plan.message.put_property(FAILURE_CAUSE, cause)
            references = self.plans.add(plan, batch)
        if reference.durable:
            batch.add(records.ACKS, records.encode_acks(reference.queue.id, [original.id]))
        store.drop_from_queue_or_page(reference)
        self.plans.append(batch, [] if plan is None else [plan], references, None, 0)

    def plan_of_move(
        self, now: int, reference: Reference, target: str, expired: bool, lifetime_ms: int = -1
    ) -> RoutingPlan | None:
        """Returns the plan of a copy for `target`, perhaps without routes; None if there is no such address."""
        name, only_queue = split_fqqn(target)
        address = self.addresses.routable(name)
        if address is None:
            return None
        plan = RoutingPlan(moved_copy(reference, target, now, expired, lifetime_ms))
        self.diverts.route(now, plan, address, only_queue, False)
        return plan

    def redistribute(self, reference: Reference, target: Queue, route_to: bytes) -> None:
        """Moves the message to `target`, the store-and-forward queue of another node."""
        self.reroute(reference, [Route(target, route_to)], "redistributed")

    def reroute(
        self,
        reference: Reference,
        routes: list[Route],
        why: str,
        without: str = "",
        known: bytes = b"",
    ) -> None:
        """Moves the message from its queue to others, under a new id and without the header named `without`.

        `known`: the id under which another node may have the message already (kernel/publish/scale_down_target.py).
        Core bridges know the message by its first id (kernel/queue/delivery/bridge_origin.py). As in Redistributor, no
        header marks the copy. The original's acknowledgement is in the same record.
        """
        store = self.store
        batch = records.Batch()
        store.note_lost(reference, why, batch)
        plan = RoutingPlan(reference.message.copy(0))
        if without and plan.message.special:
            plan.message.remove_property(without)
        if known:
            plan.message.properties.put(FORWARD_DUPLICATE, known)
            plan.message.properties_changed()
        origins = self.origins
        if origins.attach(plan.message, int(reference.message.id), reference.queue.name):
            origins.note()
        plan.routes = routes
        references = self.plans.add(plan, batch)
        if reference.durable:
            acked = records.encode_acks(reference.queue.id, [reference.message.id])
            batch.add(records.ACKS, acked)
        store.drop_from_queue(reference)
        if self.trace.on:
            trace_message(self.trace, "trace_moved_away", reference.message, reference.queue.name)
        self.plans.append(batch, [plan], references, None, 0)

    def purge(self, queue: Queue, why: str) -> None:
        """Removes every message that is not being delivered, for good (purge-on-no-consumers)."""
        store = self.store
        batch = records.Batch()
        message_ids: list[int] = []
        scheduled = [waiting for _, waiting in store.scheduled.of_queue(queue)]
        purged: list[Reference] = []
        for reference in [*queue.live(), *scheduled]:
            if reference.state != READY and reference.state != SCHEDULED:
                continue
            if reference.durable:
                message_ids.append(reference.message.id)
            store.note_lost(reference, why, batch)
            store.take_from_queue(reference)
            purged.append(reference)
        queue.count_killed(len(purged))
        store.drop_all(purged)
        if queue.special is not None and queue.delivering_count == 0:
            store.dispatches.mark_dirty(queue)  # its gate may have waited for this
        paged = paged_queue_of(queue)
        if paged is not None:
            for reference in paged.tail:
                if reference.durable:
                    message_ids.append(reference.message.id)
            queue.count_killed(clear(store.paging, queue))
        if message_ids:
            batch.add(records.ACKS, records.encode_acks(queue.id, message_ids))
        self.plans.append(batch, [], [], None, 0)


def moved_copy(reference: Reference, address: str, now: int, expired: bool, lifetime_ms: int = -1) -> Message:
    """Returns the copy for a dead-letter or expiry address, with the headers of QueueImpl.makeCopy.

    It expires after `lifetime_ms`; -1: it does not.
    """
    original = reference.message
    copy = original.copy(0)
    remember_origin(copy, original, reference.queue.name)
    properties = copy.properties
    properties.remove("_AMQ_ROUTING_TYPE")
    properties.remove("_AMQ_DUPL_ID")
    if expired:
        properties.put("_AMQ_ACTUAL_EXPIRY", now // 1_000_000)
    copy.properties_changed()
    copy.expiration = 0 if lifetime_ms < 0 else later_ms(now // 1_000_000, lifetime_ms)
    copy.address = address
    return copy
