"""The messages that a slow subscriber does not get: those beyond the pending-message-limit of its topic.

As in ActiveMQ Classic (TopicSubscription.discard), they are dead letters, once for all subscribers: durable ones by
default. With a limit of 0 they are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.publish.dead_letter_resources import SURPLUS

if TYPE_CHECKING:
    from atalanta.kernel.publish.dead_letter_resources import DeadLetterResources
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.queue.pending_limit import PendingLimit
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.settings.repository import AddressSettingsRepository

# Dead letters that are remembered: other subscribers that are as slow come to them soon.
REMEMBERED_MAX: Final = 10_000
WHY: Final = "more messages wait than pending-message-limit"


class SurplusMessages:
    """Removes what waits beyond the limit of a queue."""

    def __init__(
        self, mover: MessageMover, resources: DeadLetterResources, settings: AddressSettingsRepository
    ) -> None:
        self.mover = mover
        self.resources = resources
        self.settings = settings
        self.remembered: dict[int, bool] = {}

    def remove(self, now: int, queue: Queue, limit: PendingLimit) -> None:
        """Removes the references that the limit has set aside."""
        mover, trace = self.mover, self.mover.trace
        dropped: list[Reference] = []
        for reference in limit.take_found():
            target = self._target(now, reference) if limit.most > 0 else None
            if target is None:
                dropped.append(reference)
                continue
            queue.count_killed(1)
            message = reference.message
            lifetime_ms = self.settings.match(message.address or queue.spec.address).dead_letter_expiry_ms
            mover.move_to_address(now, reference, target, WHY, False, SURPLUS, lifetime_ms)
        trace.count("messages_dropped_pending_limit", len(dropped))
        mover.store.discard(dropped)
        if limit.is_news():
            trace.event(
                "subscription_drops_messages",
                {"address": queue.spec.address, "queue": queue.name, "limit": limit.most},
            )

    def _target(self, now: int, reference: Reference) -> str | None:
        """Returns the dead-letter address, whose queue exists then; None if the message is to be dropped."""
        message = reference.message
        settings = self.settings.match(message.address or reference.queue.spec.address)
        target = self.resources.surplus_target(settings, reference)
        if target is None or message.id in self.remembered:
            return None
        if len(self.remembered) >= REMEMBERED_MAX:
            self.remembered.clear()
        self.remembered[message.id] = True
        self.resources.for_dead_letter(now, settings, message)
        return target
