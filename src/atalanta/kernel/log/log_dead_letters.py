"""Dead letters of the log view: a message that the reader of a leased queue cannot convert.

The move is one record: the copy and the acknowledgement of the original are durable together. The reader does not get
the message again, and it does not count as lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.log.log_views import check_epoch
from atalanta.kernel.queue.delivery.origin_headers import REASON

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.log.log_views import LogViews
    from atalanta.kernel.publish.dead_letters import DeadLetters
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.queue.reference import Reference


class LogDeadLetters:
    """The moves of messages from leased queues to their dead-letter addresses."""

    def __init__(self, views: LogViews, dead_letters: DeadLetters) -> None:
        self.views = views
        self.dead_letters = dead_letters
        self.mover = dead_letters.mover

    def move(
        self,
        now: int,
        name: str,
        incarnation: str,
        group: str,
        epoch: int,
        sequence: int,
        why: str,
        endpoint: Reply,
        token: int,
    ) -> None:
        """Moves the message of a sequence; `endpoint.done(token)` when durable. A repeat changes nothing.

        The copy has the property `_AMQ_ORIG_REASON` with `why`. BrokerError FENCED for an old epoch, ILLEGAL_STATE if
        no queue of a dead-letter address takes the copy: then the message stays.
        """
        views = self.views
        store = views.store
        queue = views.queue_for(name, incarnation)
        check_epoch(queue, group, epoch)
        if sequence > queue.stable_end():
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name} ends at {queue.stable_end()}: there is no {sequence}")
        reference = views.shown_at(queue, sequence)
        if reference is None:
            store.reply_when_durable(store.journal.last, endpoint, token)
            return
        if sequence <= queue.log.acked_through:
            text = f"message {sequence} of queue {queue.name} is only retained: a replay cannot move it"
            raise BrokerError(ILLEGAL_STATE, text)
        plan = self._plan(now, reference)
        plan.message.put_property(REASON, why)
        plan.message.durable = True  # as the original is here, whatever its sender said
        batch = records.Batch()
        references = self.mover.plans.add(plan, batch)
        batch.add(records.ACKS, records.encode_acks(queue.id, [reference.message.id]))
        store.drop_from_queue_or_page(reference)
        queue.count_killed(1)
        self.mover.trace.event(
            "message_dead_lettered",
            {"queue": queue.name, "message": reference.message.id, "to": plan.message.address},
        )
        self.mover.plans.append(batch, [plan], references, endpoint, token)

    def _plan(self, now: int, reference: Reference) -> RoutingPlan:
        """Returns the routed plan of the copy."""
        queue = reference.queue
        address = queue.spec.address
        settings = self.dead_letters.settings.match(address)
        target = settings.dead_letter_address
        if target is None:
            raise BrokerError(
                ILLEGAL_STATE,
                f"queue {queue.name} has no dead-letter address: set dead-letter-address for {address}",
            )
        self.dead_letters.resources.for_dead_letter(now, settings, reference.message)
        plan = self.mover.plan_of_move(now, reference, target, False)
        if plan is None or not plan.is_routed():
            raise BrokerError(
                ILLEGAL_STATE, f"no queue takes dead letters of {queue.name}: create one at address {target}"
            )
        for route in plan.routes:
            if route.queue is queue:
                raise BrokerError(ILLEGAL_STATE, f"dead-letter address {target} of {queue.name} leads back to it")
        return plan
