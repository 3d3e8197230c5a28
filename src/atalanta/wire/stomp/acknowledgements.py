"""ACK and NACK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.credits import give_credits
from atalanta.wire.stomp.frame import V10, V12
from atalanta.wire.stomp.transactions import ADDRESS_DELAY, transaction_of

if TYPE_CHECKING:
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession
    from atalanta.wire.stomp.subscription import Part


def _delivered(session: StompSession, frame: Frame) -> tuple[Part, int]:
    """Returns the part of a subscription and the message that ACK or NACK names. BrokerError: they do not match."""
    if session.classic and session.connection.version != V10:  # Artemis asks for none
        frame.required("id" if session.connection.version == V12 else "subscription")
    name = frame.get("id")
    if name is None or "message-id" in frame.headers:
        name = frame.required("message-id")
    part, message_id = session.delivered_as(name)
    named = frame.get("subscription")
    if named is not None and named != part.subscription.key():
        key = part.subscription.key()
        text = f"message {name[:40]!r} is delivered to subscription {key[:40]!r}, not to {named[:40]!r}"
        raise BrokerError(ILLEGAL_STATE, text)
    return part, message_id


def acknowledge(session: StompSession, now: int, frame: Frame) -> None:
    """Processes ACK."""
    part, message_id = _delivered(session, frame)
    transaction = transaction_of(session, frame)
    token = session.token_for(frame.get("receipt"))
    subscription = part.subscription
    if subscription.automatic or subscription.browser:
        session.done(token)
        give_credits(session, part, message_id, subscription.cumulative)
        return
    if transaction is not None:
        behind = session.classic and subscription.cumulative and message_id not in part.window.held
        if behind and transaction.has_acknowledged(part, message_id):
            # A later one has taken it, which in Classic shows at the commit (StompSubscription.onStompMessageAck).
            session.done(token)
            return
    kernel = session.kernel
    if transaction is not None:
        kernel.use(transaction.transaction)
    try:
        if subscription.ordered:
            _acknowledge_each(session, now, part, message_id, token)
        else:
            kernel.acknowledge(now, part.number, message_id, not subscription.cumulative, token)
    finally:
        if transaction is not None:
            kernel.use(None)
    if not subscription.ordered:
        give_credits(session, part, message_id, subscription.cumulative)


def _acknowledge_each(session: StompSession, now: int, part: Part, message_id: int, token: int) -> None:
    """Acknowledges a delivery and those before it in all parts, one by one; the last one is confirmed."""
    for each, number in part.subscription.through(part, message_id, True):
        last = each is part and number == message_id
        session.kernel.acknowledge(now, each.number, number, True, token if last else SILENT)
        give_credits(session, each, number, False)


def refuse(session: StompSession, now: int, frame: Frame) -> None:
    """Processes NACK: the message is delivered again, or goes to the dead-letter address.

    It goes there after max-delivery-attempts, or at once with `requeue:false`. In Classic it always goes at once, and
    alone, whatever the mode.
    """
    if session.connection.version == V10:
        raise ProtocolError("NACK is no command of STOMP 1.0")
    part, message_id = _delivered(session, frame)
    subscription = part.subscription
    if subscription.automatic:
        raise BrokerError(ILLEGAL_STATE, "NACK for a subscription with the mode auto: its messages are acknowledged")
    if subscription.browser:
        raise BrokerError(ILLEGAL_STATE, "NACK for a subscription with browser:true: its messages stay in the queue")
    transaction = transaction_of(session, frame)
    token = session.token_for(frame.get("receipt"))
    rejected = session.classic or frame.headers.get("requeue", "true").lower() == "false"
    if transaction is not None:
        transaction.refuse(part, message_id, rejected)
        session.done(token)
        return
    for each, number in subscription.through(part, message_id, subscription.cumulative and not session.classic):
        session.kernel.settle(now, each.number, number, rejected, ADDRESS_DELAY, SILENT)
        give_credits(session, each, number, False)
    session.done_when_durable(token)
