"""Messages that push others out of their queue: last values and rings (special.py decides which).

The end of a last value stands in the same journal record as the message that replaces it, so that a crash leaves either
the old one or the new one, never both and never none. A ring is cut when a turn ends, and once more after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel import records
from atalanta.kernel.finishing import drop_from_queue, unstore
from atalanta.kernel.story import tell

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.reference import Reference
    from atalanta.kernel.special import Special


def displace(broker: Broker, references: list[Reference], batch: records.Batch) -> None:
    """One message got its places: the journal forgets, with it, what it pushes out."""
    for reference in references:
        queue = reference.queue
        if queue.special is not None and queue.special.last_value_key is not None:
            _forget(broker, queue.special.displace(reference), batch)


def _forget(broker: Broker, displaced: list[Reference], batch: records.Batch) -> None:
    message_ids: list[int] = []
    queue_id = 0
    for reference in displaced:
        if reference.durable:
            queue_id = reference.queue.id
            message_ids.append(reference.message.id)
            unstore(broker, reference)
            reference.durable = False
    if message_ids:
        batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))


def enter(broker: Broker, special: Special, reference: Reference) -> None:
    """`reference` is in its queue: what it pushes out leaves the queue, unless a consumer has it."""
    if reference.sequence in special.displaced:
        for displaced in special.entered(reference):
            _leave(broker, special, displaced)
    if special.ring_size >= 0 and not special.overfull:
        special.overfull = True
        broker.rings.append(reference.queue)


def cut_rings(broker: Broker) -> None:
    """The turn ends: what consumers did not take and a ring has no room for goes, in one record a queue."""
    rings = broker.rings
    broker.rings = []
    for queue in rings:
        if queue.special is not None and not queue.deleted:
            discard(broker, queue.special, queue.special.beyond_ring(queue))


def discard(broker: Broker, special: Special, references: list[Reference]) -> None:
    """References of one queue that have no place in it (any more): gone now, and from the journal too."""
    if not references:
        return
    batch = records.Batch()
    _forget(broker, references, batch)
    for reference in references:
        _leave(broker, special, reference)
    broker.append_batch(batch, [], [], None, 0)


def _leave(broker: Broker, special: Special, reference: Reference) -> None:
    special.replaced += 1
    drop_from_queue(broker, reference)
    if broker.trace.on:
        tell(broker.trace, "story_replaced", reference.message, reference.queue.name)
