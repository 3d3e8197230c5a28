"""A plan's message gets its places: references in its queues, charged, and a record in the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.memory.address_memory import DROP, FAIL
from atalanta.kernel.queue.delivery.origin_headers import name_origin
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.trace import places, tell

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.delivery.plan import Plan
    from atalanta.kernel.queue.queue import Queue


def add_to_batch(broker: Broker, plan: Plan, batch: records.Batch) -> list[Reference]:
    """References for the plan's routes; adds the MESSAGE (or DUPLICATES) record when something is durable."""
    message = plan.message
    message.id = broker.take_message_id()
    if plan.origin is not None:
        name_origin(message, plan.origin.message)
    references: list[Reference] = []
    stored: list[Reference] = []
    # A message for later has no place in its queues yet (kernel/queue/delivery/scheduled.py).
    scheduled_ms = message.scheduled_ms
    later = scheduled_ms != 0 and scheduled_ms > broker.now // 1_000_000
    for planned in plan.routes:
        queue = planned.queue
        sequence = 0 if later else queue.take_sequence()
        reference = Reference(message, queue, sequence, planned.route_to)
        queue.pending += 1
        references.append(reference)
        if reference.durable:
            stored.append(reference)
        if broker.memory.charge(reference):
            over_limit(broker, queue)
    if message.large is not None:
        broker.large.hold(message.large, len(references))
    if stored:
        message.references = stored
        broker.messages[message.id] = message
        broker.stored_bytes += stored[0].size
        record = encode_message_record(message, stored, plan.duplicates)
        batch.add(records.MESSAGE, record)
    elif plan.duplicates and broker.config.persist_id_cache:
        for cache_name, duplicate_id in plan.duplicates:
            batch.add(
                records.DUPLICATES,
                records.encode_duplicates(cache_name, message.id, [duplicate_id]),
            )
    if broker.trace.on:
        tell(broker.trace, "story_routed", message, places(references))
    if plan.diverted is not None:
        for copy in plan.diverted:
            references.extend(add_to_batch(broker, copy, batch))
    return references


def over_limit(broker: Broker, queue: Queue) -> None:
    """The address of a queue, or the node, is full."""
    account = queue.account
    if account.policy in (FAIL, DROP):
        broker.memory.refuse(account)
    elif queue.paged is None:
        broker.paging.start(queue)
