"""The frames of a client that has logged in. A refusal is a BrokerError or ProtocolError: ERROR, then the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError, Postponed
from atalanta.kernel.routing.uuid_namespace import uuid_text
from atalanta.kernel.security.resource_limits import check_name
from atalanta.kernel.sessions.subscription_queue import end_queue, temporary_queue
from atalanta.wire.connection import ProtocolError
from atalanta.wire.stomp.frame import V10
from atalanta.wire.stomp.sent_message import sent_message, wants_schedule
from atalanta.wire.stomp.session import StompTransaction
from atalanta.wire.stomp.subscription import (
    DURABLE_NAMES,
    UNLIMITED,
    Subscription,
    mode_of,
    window_of,
)
from atalanta.wire.stomp.subscription_queue import durable_queue_name, queue_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.wire.stomp.destination import Destination
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession

ADDRESS_DELAY: Final = -1  # of the next attempt, as the address settings have it
PRIORITY: Final = 4
NO_LOCAL: Final = ("no-local", "activemq.noLocal")


def answer(session: StompSession, now: int, frame: Frame) -> bool:
    """Processes a frame. Returns False if it has to wait: it is given again when the input is released."""
    command = frame.command
    if command == "SEND":
        return _send(session, now, frame)
    if command == "ACK":
        _acknowledge(session, now, frame)
    elif command == "NACK":
        _refuse(session, now, frame)
    elif command == "SUBSCRIBE":
        _subscribe(session, now, frame)
    elif command == "UNSUBSCRIBE":
        _unsubscribe(session, now, frame)
    elif command == "BEGIN":
        _begin(session, frame)
    elif command == "COMMIT":
        _commit(session, now, frame)
    elif command == "ABORT":
        _abort(session, now, frame)
    elif command == "DISCONNECT":
        session.disconnect(now, frame.get("receipt"))
    else:
        raise ProtocolError(f"{command} on a connection that has logged in already")
    return True


# -- sending --------------------------------------------------------------------------------------
def _send(session: StompSession, now: int, frame: Frame) -> bool:
    destination = _destination(session, now, frame, "destination-type")
    transaction = _transaction(session, frame)
    if not session.may_send(destination.name, len(frame.body)):
        session.stop_input()
        return False
    reply_to = frame.get("reply-to")
    if reply_to is not None:
        _make_temporary(session, now, reply_to)
        reply_to = session.names.jms_name(reply_to)
    scheduler = session.connection.host.scheduler_of(session.connection.acceptor)
    message = sent_message(frame, destination, reply_to, scheduler, now)
    kernel = session.kernel
    if not scheduler.on and wants_schedule(frame):
        scheduler.pass_over(session.connection.host.broker.trace, kernel.client.client_id or "")
    token = session.token_for(frame.get("receipt"))
    if transaction is None:
        kernel.send(now, message, token)
    else:
        kernel.use(transaction.transaction)
        try:
            kernel.send(now, message, token)
        finally:
            kernel.use(None)
    kernel.producers.count_unnamed(now, message)
    return True


def _destination(session: StompSession, now: int, frame: Frame, kind: str) -> Destination:
    """Returns the destination of the frame; `kind`: the header that may choose its routing type."""
    text = frame.required("destination")
    check_name(text)
    _make_temporary(session, now, text)
    return session.names.find(text, frame.get(kind))


def _make_temporary(session: StompSession, now: int, text: str) -> None:
    """Creates the queue behind a `/temp-queue/` name when the connection first uses it."""
    if session.names.wants_temporary(text):
        name = uuid_text(session.kernel.services.queue_registry.ids.uuid())
        temporary_queue(session.kernel, now, name)
        session.names.add_temporary(text, name)


# -- consuming ------------------------------------------------------------------------------------
def _subscribe(session: StompSession, now: int, frame: Frame) -> None:
    for name in NO_LOCAL:
        if frame.flag(name):
            raise ProtocolError(f"SUBSCRIBE: the header {name} is not supported: use a selector on a property of yours")
    sub_id = frame.get("id")
    if sub_id is None and session.connection.version != V10:
        raise ProtocolError("SUBSCRIBE without the header id")
    key = frame.required("destination") if sub_id is None else sub_id
    if key in session.subscriptions:
        raise BrokerError(ILLEGAL_STATE, f"there is a subscription {key[:40]!r} already")
    mode = mode_of(frame)
    window = window_of(frame, mode, session.window_bytes)
    destination = _destination(session, now, frame, "subscription-type")
    kernel = session.kernel
    durable_name = frame.first(DURABLE_NAMES)
    queue = queue_for(kernel, now, destination, frame.get("selector"), durable_name)
    number = session.take_consumer_number()
    subscription = Subscription(
        sub_id, number, destination, mode, window, queue.name if queue.own else None
    )
    session.consumers[number] = subscription
    try:
        kernel.create_consumer(now, number, queue.name, queue.selector, False, PRIORITY)
    except BrokerError:
        del session.consumers[number]
        raise
    session.subscriptions[key] = subscription
    session.done_when_durable(session.token_for(frame.get("receipt")))
    kernel.add_credits(number, UNLIMITED if window.size == UNLIMITED else window.size)


def _unsubscribe(session: StompSession, now: int, frame: Frame) -> None:
    """Ends a subscription, by its id or destination. With the name of a durable one its queue is deleted, too."""
    durable_name = frame.first(DURABLE_NAMES)
    key = frame.get("id")
    if key is None:
        key = frame.get("destination")
    subscription = None if key is None else session.subscriptions.pop(key, None)
    if subscription is not None:
        session.consumers.pop(subscription.consumer_id, None)
        session.kernel.close_consumer(now, subscription.consumer_id)
        own_queue = subscription.own_queue
        if own_queue is not None and session.has_queue(own_queue):  # it may be deleted with its last consumer
            end_queue(session.kernel, now, own_queue)
    elif durable_name is None:
        raise BrokerError(ILLEGAL_STATE, f"there is no subscription {(key or '')[:40]!r}")
    if durable_name is not None:
        session.kernel.delete_queue(now, durable_queue_name(session.kernel, durable_name))
    session.done_when_durable(session.token_for(frame.get("receipt")))


def _delivered(session: StompSession, frame: Frame) -> tuple[Subscription, int]:
    """Returns the subscription and message that ACK or NACK names."""
    name = frame.get("id")
    if name is None or "message-id" in frame.headers:
        name = frame.required("message-id")
    return session.subscription_of(name)


def _acknowledge(session: StompSession, now: int, frame: Frame) -> None:
    subscription, message_id = _delivered(session, frame)
    transaction = _transaction(session, frame)
    token = session.token_for(frame.get("receipt"))
    if subscription.automatic:
        session.done(token)
        return
    kernel = session.kernel
    number = subscription.consumer_id
    individual = not subscription.cumulative
    if transaction is None:
        kernel.acknowledge(now, number, message_id, individual, token)
    else:
        kernel.use(transaction.transaction)
        try:
            kernel.acknowledge(now, number, message_id, individual, token)
        finally:
            kernel.use(None)
    _give_credits(session, subscription, message_id)


def _give_credits(session: StompSession, subscription: Subscription, message_id: int) -> None:
    _add_credits(session, subscription, subscription.window.give_back(message_id, subscription.cumulative))


def _give_credits_alone(session: StompSession, subscription: Subscription, message_id: int) -> None:
    """Gives the credits of one message, whatever the mode."""
    if subscription.consumer_id in session.consumers:
        _add_credits(session, subscription, subscription.window.give_back(message_id, False))


def _add_credits(session: StompSession, subscription: Subscription, credits: int) -> None:
    if credits > 0 and subscription.window.size != UNLIMITED:
        session.kernel.add_credits(subscription.consumer_id, credits)


def _refuse(session: StompSession, now: int, frame: Frame) -> None:
    """Processes NACK: the message is delivered again, or goes to the dead-letter address.

    It goes there after max-delivery-attempts, or at once with `requeue:false`.
    """
    if session.connection.version == V10:
        raise ProtocolError("NACK is no command of STOMP 1.0")
    subscription, message_id = _delivered(session, frame)
    if subscription.automatic:
        raise BrokerError(ILLEGAL_STATE, "NACK for a subscription with the mode auto: its messages are acknowledged")
    transaction = _transaction(session, frame)
    token = session.token_for(frame.get("receipt"))
    rejected = frame.headers.get("requeue", "true").lower() == "false"
    if transaction is not None:
        transaction.refuse(subscription, message_id, rejected)
        session.done(token)
        return
    for each in subscription.refused_with(message_id):
        session.kernel.settle(now, subscription.consumer_id, each, rejected, ADDRESS_DELAY, SILENT)
    _give_credits(session, subscription, message_id)
    session.done_when_durable(token)


# -- transactions ---------------------------------------------------------------------------------
def _transaction(session: StompSession, frame: Frame) -> StompTransaction | None:
    """Returns the transaction of the frame, None without the header. BrokerError for an unknown one."""
    name = frame.get("transaction")
    if name is None:
        return None
    found = session.transactions.get(name)
    if found is None:
        raise BrokerError(ILLEGAL_STATE, f"there is no transaction {name[:40]!r}")
    return found


def _begin(session: StompSession, frame: Frame) -> None:
    name = frame.required("transaction")
    if name in session.transactions:
        raise BrokerError(ILLEGAL_STATE, f"there is a transaction {name[:40]!r} already")
    session.transactions[name] = StompTransaction(session.kernel.declare())
    session.done(session.token_for(frame.get("receipt")))


def _ended(session: StompSession, frame: Frame) -> StompTransaction:
    """Returns the transaction that COMMIT or ABORT ends."""
    name = frame.required("transaction")
    found = _transaction(session, frame)
    assert found is not None
    del session.transactions[name]
    return found


def _commit(session: StompSession, now: int, frame: Frame) -> None:
    token = session.token_for(frame.get("receipt"))
    _discharge(session, now, _ended(session, frame), token)


def _discharge(session: StompSession, now: int, ended: StompTransaction, token: int) -> None:
    """Commits. If the queue of a message group is not known yet, the input waits and this is repeated."""
    kernel = session.kernel
    ended.take_dead_letters(kernel, now)
    try:
        kernel.discharge(now, ended.transaction, True, token)
    except Postponed as postponed:
        kernel.wait(now, postponed, None, _retry(session, ended, token))
        return
    for subscription, message_id in ended.dead_letters:
        _give_credits_alone(session, subscription, message_id)
    for subscription, message_id, rejected in ended.refusals:
        if subscription.consumer_id in session.consumers and message_id in subscription.window.held:
            kernel.settle(now, subscription.consumer_id, message_id, rejected, ADDRESS_DELAY, SILENT)
            _give_credits_alone(session, subscription, message_id)


def _retry(session: StompSession, ended: StompTransaction, token: int) -> Callable[[int], None]:
    """Returns the function that commits again."""
    return lambda now: _commit_again(session, now, ended, token)


def _commit_again(session: StompSession, now: int, ended: StompTransaction, token: int) -> None:
    try:
        _discharge(session, now, ended, token)
    except BrokerError as error:
        session.failed(token, error)


def _abort(session: StompSession, now: int, frame: Frame) -> None:
    ended = _ended(session, frame)
    session.kernel.discharge(now, ended.transaction, False, session.token_for(frame.get("receipt")))
