"""What was delivered and not acknowledged comes back to its queue, or goes to the dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.moves import dead_letter, purge
from atalanta.kernel.reference import DONE, Reference
from atalanta.kernel.story import tell

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker


def redeliver(broker: Broker, now: int, back: list[Reference]) -> None:
    """Each at its old place, as often as the address allows deliveries; counts are stored for durable ones."""
    for reference in back:
        if reference.state == DONE or reference.queue.deleted:
            continue
        queue = reference.queue
        attempts = broker.settings_of(queue.spec.address).max_delivery_attempts
        if not queue.internal and 0 < attempts <= reference.delivery_count:
            dead_letter(broker, now, reference)
            continue
        if reference.durable and reference.delivery_count > 0:
            broker.store_delivery_count(reference)
        queue.give_back(reference)
        if broker.trace.on:
            tell(broker.trace, "story_rolled_back", reference.message, queue.name)
        broker.mark_dirty(queue)
        if queue.spec.purge_on_no_consumers and queue.consumer_count() == 0:
            purge(broker, queue, "purged without consumers")
