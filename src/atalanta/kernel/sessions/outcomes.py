"""The outcomes of one delivery: accepted, released to its queue, or rejected to the dead-letter address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.reference import DELIVERING

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session

ACCEPT: Final = 0
RELEASE: Final = 1  # the delivery does not count as an attempt
REJECT: Final = 2  # the message can never be processed


def give_up(
    session: Session, now: int, consumer_id: int, message_id: int, outcome: int, token: int
) -> None:
    """Releases or rejects a delivery outside of transactions; `endpoint.done(token)` follows when that is durable.

    BrokerError ILLEGAL_STATE if the message is not delivered to the consumer.
    """
    consumer = session.consumer(consumer_id)
    reference = consumer.unacknowledged.pop(message_id)
    if reference is None:
        raise BrokerError(
            ILLEGAL_STATE, f"message {message_id} is not delivered to consumer {consumer_id}"
        )
    broker = session.broker
    if outcome == REJECT:
        if reference.state == DELIVERING or consumer.queue.has(reference):
            broker.dead_letters.move(now, reference, "rejected by its consumer")
    elif reference.state == DELIVERING:
        reference.delivery_count -= 1
        broker.redelivery.redeliver(now, [reference], False)
    elif consumer.queue.keeps_messages:
        consumer.look_again(reference.sequence)
        broker.dispatches.mark_dirty(consumer.queue)
    broker.store.reply_when_durable(broker.journal.last, session.endpoint, token)
