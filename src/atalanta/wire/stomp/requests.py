"""The frames of a client that has logged in. A refusal is a BrokerError or ProtocolError: ERROR, then the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import ProtocolError
from atalanta.wire.stomp.acknowledgements import acknowledge, refuse
from atalanta.wire.stomp.named_destinations import ADVISORY_PREFIX, all_destinations, make_temporary
from atalanta.wire.stomp.sent_message import sent_body, sent_message, wants_schedule
from atalanta.wire.stomp.subscribers import subscribe, unsubscribe
from atalanta.wire.stomp.transactions import abort, begin, commit, transaction_of
from atalanta.wire.stomp.transformation import TRANSFORMATION, check_transformation

if TYPE_CHECKING:
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession

SEND_RIGHT: Final = "send"


def answer(session: StompSession, now: int, frame: Frame) -> bool:
    """Processes a frame. Returns False if it has to wait: it is given again when the input is released."""
    command = frame.command
    if command == "SEND":
        return _send(session, now, frame)
    if command == "ACK":
        acknowledge(session, now, frame)
    elif command == "NACK":
        refuse(session, now, frame)
    elif command == "SUBSCRIBE":
        subscribe(session, now, frame)
    elif command == "UNSUBSCRIBE":
        unsubscribe(session, now, frame)
    elif command == "BEGIN":
        begin(session, frame)
    elif command == "COMMIT":
        commit(session, now, frame)
    elif command == "ABORT":
        abort(session, now, frame)
    elif command == "DISCONNECT":
        session.disconnect(now, frame.get("receipt"))
    else:
        raise ProtocolError(f"{command} on a connection that has logged in already")
    return True


def _send(session: StompSession, now: int, frame: Frame) -> bool:
    """Sends a message; a composite destination gets one copy for each part, all or none."""
    destinations = all_destinations(session, now, frame, "destination-type")
    transaction = transaction_of(session, frame)
    kernel = session.kernel
    if len(destinations) > 1:
        for destination in destinations:
            kernel.check(SEND_RIGHT, destination.name)
    if TRANSFORMATION in frame.headers:
        check_transformation(frame)
    for destination in destinations:
        if destination.name.startswith(ADVISORY_PREFIX):
            raise ProtocolError(f"SEND to {destination.text[:100]}: only the broker sends advisories")
        if not session.may_send(destination.name, len(frame.body)):
            return False
    reply_to = frame.get("reply-to")
    if reply_to is not None:
        make_temporary(session, now, reply_to)
        reply_to = session.names.jms_name(reply_to)
    scheduler = session.connection.host.scheduler_of(session.connection.acceptor)
    own_id = f"STOMP{kernel.services.queue_registry.ids.uuid().hex()}" if session.options.message_ids else ""
    body = sent_body(frame)
    messages = [
        sent_message(frame, body, each, reply_to, scheduler, now, session.classic, own_id) for each in destinations
    ]
    if not scheduler.on and wants_schedule(frame):
        scheduler.pass_over(session.connection.host.broker.trace, kernel.client.client_id or "")
    token = session.token_for(frame.get("receipt"), len(messages))
    if transaction is not None:
        kernel.use(transaction.transaction)
    try:
        for message in messages:
            kernel.send(now, message, token)
            kernel.producers.count_unnamed(now, message)
    finally:
        if transaction is not None:
            kernel.use(None)
    return True
