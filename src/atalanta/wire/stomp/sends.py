"""SEND, and the messages that wait for room at full addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import BrokerError
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.named_destinations import ADVISORY_PREFIX, all_destinations, make_temporary
from atalanta.wire.stomp.sent_message import sent_body, sent_message, wants_schedule
from atalanta.wire.stomp.transactions import transaction_of
from atalanta.wire.stomp.transformation import TRANSFORMATION, check_transformation
from atalanta.wire.waiting_requests import WaitingRequest

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.wire.stomp.destination import Destination
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession, StompTransaction

SEND_RIGHT: Final = "send"
PRODUCER: Final = ""  # a connection is one producer
COPY_BYTES: Final = 1_024  # that a copy of a waiting message counts beside its body


def send(session: StompSession, now: int, frame: Frame) -> bool:
    """Sends a message; a composite destination gets one copy for each part, all or none.

    Returns False if it has to wait: it is given again when the input is released.
    """
    destinations = all_destinations(session, now, frame, "destination-type")
    transaction = transaction_of(session, frame)
    if len(destinations) > 1:
        _check_rights(session, destinations)
    if TRANSFORMATION in frame.headers:
        check_transformation(frame)
    room = len(frame.body)
    lanes = _lanes_before(session, destinations, transaction) if session.waiting.lanes else []
    full: str | None = "" if lanes else None  # in order behind those that wait
    for destination in destinations:
        if destination.name.startswith(ADVISORY_PREFIX):
            raise ProtocolError(f"SEND to {destination.text[:100]}: only the broker sends advisories")
        if full is None and not session.may_send(destination.name, room):
            full = destination.name
    size = room + (frame.head_size() + COPY_BYTES) * len(destinations)
    if full is not None:
        if len(lanes) > 1 or "receipt" not in frame.headers or not session.waiting.may_add(PRODUCER, size):
            session.stop_for_room(now, full, frame)
            return False
        _check_rights(session, destinations)
    kernel = session.kernel
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
    if session.stopper is not None:
        session.end_stop()
    if full is None:
        _deliver(session, now, transaction, messages, token)
    else:
        lane = session.take_lane(lanes[0] if lanes else None, destinations, transaction)
        session.set_aside(now, lane, WaitingMessage(session, transaction, messages, token, room, size, full))
    return True


def _check_rights(session: StompSession, destinations: list[Destination]) -> None:
    for destination in destinations:
        session.kernel.check(SEND_RIGHT, destination.name)


def _deliver(
    session: StompSession,
    now: int,
    transaction: StompTransaction | None,
    messages: list[Message],
    token: int,
) -> None:
    """Sends the messages of a frame."""
    kernel = session.kernel
    if transaction is not None:
        kernel.use(transaction.transaction)
    try:
        for message in messages:
            kernel.send(now, message, token)
            kernel.producers.count_unnamed(now, message)
    finally:
        if transaction is not None:
            kernel.use(None)


# -- full addresses -------------------------------------------------------------------------------
class WaitingMessage(WaitingRequest):
    """The messages of a SEND that wait for `room` bytes at each of their addresses."""

    def __init__(
        self,
        session: StompSession,
        transaction: StompTransaction | None,
        messages: list[Message],
        token: int,
        room: int,
        size: int,
        address: str,
    ) -> None:
        super().__init__(PRODUCER, size, address)
        self.session = session
        self.transaction = transaction
        self.messages = messages
        self.token = token
        self.room = room

    def proceed(self, now: int) -> bool:
        session = self.session
        try:
            for message in self.messages:
                if not session.may_send(message.address, self.room):
                    self.address = message.address
                    return False
            _deliver(session, now, self.transaction, self.messages, self.token)
        except BrokerError as error:
            self.refuse(error)
        return True

    def refuse(self, error: BrokerError) -> None:
        self.session.failed(self.token, error)


def _lanes_before(
    session: StompSession, destinations: list[Destination], transaction: StompTransaction | None
) -> list[str]:
    """Returns the lanes in which something waits that is before this message: that of its transaction, which takes
    effect at the end, or those of its destinations.
    """
    waiting = session.waiting.lanes
    if transaction is not None and transaction.lane in waiting:
        return [transaction.lane]
    lanes = dict.fromkeys([session.lanes.get(destination.name, "") for destination in destinations])
    return [lane for lane in lanes if lane in waiting]
