"""The acknowledgements of OpenWire clients (MessageAck; PrefetchSubscription.acknowledge of ActiveMQ Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.wire.openwire.server.requests.transactions import fail, in_transaction
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.deliveries import MessageAck
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession
    from atalanta.wire.openwire.server.sessions.subscription import Delivery, Subscription

DELIVERED: Final = 0
POISON: Final = 1
STANDARD: Final = 2
REDELIVERED: Final = 3
INDIVIDUAL: Final = 4
EXPIRED: Final = 6
ADDRESS_DELAY: Final = -1
CAUSE_CHARACTERS_MAX: Final = 1_000


def acknowledge(session: OpenWireSession, now: int, ack: MessageAck) -> None:
    """Processes MessageAck."""
    consumer_id = ack.consumer_id
    subscription = None if consumer_id is None else session.subscriptions.get(consumer_id)
    if subscription is None:
        if consumer_id is None or consumer_id not in session.watchers:
            named = consumer_id or "without an id"
            error = BrokerError(ILLEGAL_STATE, f"the consumer of an acknowledgement does not exist: {named}")
            fail(session, ack.transaction_id, error)
            if ack.response_required:
                raise error
            # What it had returned to the queue with its end (TransportConnection.processMessageAck).
        session.done(session.answers.token_for(ack))
        return
    kind = ack.ack_type
    if kind == DELIVERED or kind == REDELIVERED:
        if kind == DELIVERED:
            subscription.extend(ack.message_count)
            session.refill(subscription)
        session.done(session.answers.token_for(ack))
        return
    found = _found(subscription, ack)
    if not found:
        late = session.connection.came_back and ack.transaction_id is None and not ack.response_required
        if subscription.browser or late:
            # A listener that began before a failover ends after it: the message is delivered again. Who waits for
            # the answer is told that it was not taken.
            session.done(session.answers.token_for(ack))
            return
        _refuse(session, ack)
    if kind == POISON or kind == EXPIRED:
        _set_aside(session, now, found, kind == POISON, _cause(ack))
    elif not subscription.browser:
        in_transaction(session, now, ack.transaction_id, subscription, found)
    subscription.release(found)
    subscription.acknowledged(len(found))
    session.refill(subscription)
    session.done_when_durable(session.answers.token_for(ack))


def _found(subscription: Subscription, ack: MessageAck) -> list[Delivery]:
    """Returns the deliveries that the acknowledgement names."""
    last = ack.last_message_id
    if last is None:
        raise ProtocolError("MessageAck without LastMessageId")
    single = ack.ack_type == INDIVIDUAL or (ack.ack_type == EXPIRED and ack.first_message_id is None)
    return subscription.range(last if single else ack.first_message_id, last)


def _refuse(session: OpenWireSession, ack: MessageAck) -> None:
    """Refuses an acknowledgement of what is not delivered; its transaction must not commit."""
    named = ack.last_message_id or "without an id"
    error = BrokerError(ILLEGAL_STATE, f"Unmatched acknowledge: message {named} is not delivered")
    fail(session, ack.transaction_id, error)
    raise error


def _cause(ack: MessageAck) -> str:
    """Returns why the client could not process the message, as Java writes an exception."""
    cause = ack.poison_cause
    if cause is None:
        return ""
    return f"{cause.class_name}: {cause.message or ''}"[:CAUSE_CHARACTERS_MAX]


def _set_aside(
    session: OpenWireSession, now: int, found: list[Delivery], poison: bool, cause: str
) -> None:
    """Moves messages to the dead-letter address, or expires them; no transaction has a part in it."""
    kernel = session.kernel
    for delivery in found:
        consumer = kernel.consumers.get(delivery.part.number)
        message_id = int(delivery.reference.message.id)
        if consumer is None or message_id not in consumer.unacknowledged:
            continue  # management has moved it
        if poison:
            kernel.settle(now, delivery.part.number, message_id, True, ADDRESS_DELAY, SILENT, cause)
        else:
            kernel.expire(now, delivery.part.number, message_id)
