"""The messages that OpenWire clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.wire.openwire.bodies import InflatedTooLarge
from atalanta.wire.openwire.conversion.destination import (
    Route,
    is_advisory,
    name_of,
    parts_of,
    text_of_destination,
)
from atalanta.wire.openwire.conversion.message_id import same_producer
from atalanta.wire.openwire.conversion.sent_message import sent_message
from atalanta.wire.openwire.server.requests.subscription_queue import check_exists
from atalanta.wire.openwire.server.requests.transactions import answer_transaction, fail, send_in
from atalanta.wire.openwire.server.sessions.answers import Answer
from atalanta.wire.openwire.server.sessions.errors import MessageRefused
from atalanta.wire.openwire.server.sessions.inflations import Inflation
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.waiting_requests import WaitingRequest

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ProducerId
    from atalanta.wire.openwire.commands.messages import OpenWireMessage
    from atalanta.wire.openwire.commands.producers import ProducerInfo
    from atalanta.wire.openwire.commands.transactions import TransactionId, TransactionInfo
    from atalanta.wire.openwire.conversion.destination import BrokerDestination
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession

MESSAGE_BYTES: Final = 1_024  # that Message.getSize of activemq-client adds to the body


def add_producer(session: OpenWireSession, info: ProducerInfo) -> None:
    """Processes ProducerInfo: its user may send to its destination, if it has one."""
    if info.producer_id is None:
        raise ProtocolError("ProducerInfo without ProducerId")
    connection_id = info.producer_id.connection_id
    if connection_id != session.connection_id.value and not session.sender.bridge:
        text = f"Cannot add a producer to a connection that had not been registered: {connection_id}"
        raise BrokerError(ILLEGAL_STATE, text)
    if info.producer_id not in session.producers.by_id:
        if info.destination is not None:
            _check_destination(session, info, info.destination)
        session.producers.add(info.producer_id, info)
        if info.destination is not None:
            advisories = session.dispatches.advisories
            advisories.producers.add(session.connection.conn, info.producer_id, info, info.destination)
    session.done(session.answers.token_for(info))


def _check_destination(session: OpenWireSession, info: ProducerInfo, destination: ActiveMQDestination) -> None:
    """Raises BrokerError unless the user may send to the destination of a producer.

    FailoverTransport registers producers again without asking for an answer, perhaps before the owner of a temporary
    destination has come back. Such a producer counts: its messages are checked one by one.
    """
    for target in _targets(session, parts_of(destination)):
        if target.temporary:
            try:
                check_exists(session.kernel, target)
            except BrokerError:
                if info.response_required:
                    raise
                continue
        session.kernel.check("send", target.name())
        if info.response_required and target.routing_type == ANYCAST and not target.temporary:
            _check_queue(session, target)


def _check_queue(session: OpenWireSession, target: BrokerDestination) -> None:
    """Raises BrokerError for a queue that is not there, and is not created automatically (OpenWireUtil of Artemis)."""
    registry = session.kernel.services.queue_registry
    name = target.queue or target.address
    if name not in registry.by_name and target.address not in registry.addresses.by_name:
        settings = registry.addresses.settings.match(target.address)
        if not (settings.auto_create_queues and settings.auto_create_addresses):
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {target.address} does not exist")


def _targets(session: OpenWireSession, parts: list[ActiveMQDestination]) -> list[BrokerDestination]:
    """Returns the targets of the parts of a destination."""
    found = [session.target(part) for part in parts]
    names: dict[str, bool] = {}
    for target in found:
        target.again = target.name() in names
        names[target.name()] = True
    return found


def send(session: OpenWireSession, now: int, command: OpenWireMessage) -> bool:
    """Processes a message. Returns False if it has to wait: it is given again when the input is released."""
    try:
        if not _send(session, now, command):
            return False
        if session.stopper is not None:
            session.end_stop()
        return True
    except BrokerError as error:
        session.inflation = None
        session.end_stop()
        fail(session, command.transaction_id, error)
        raise


def _send(session: OpenWireSession, now: int, command: OpenWireMessage) -> bool:
    """Sends a message; a composite destination gets one copy for each part."""
    route = _route(session, command.destination)
    _check_producer(session, command)
    targets = route.targets
    _check_temporary(session, targets)
    if len(targets) > 1:  # all parts or none: the client sends again what is refused
        for target in targets:
            session.kernel.check("send", target.name())
    size = room = len(command.content or b"") + len(command.marshalled_properties or b"")
    inflation: Inflation | None = None
    if command.compressed and command.content:
        inflation = _inflation(session, now, command, targets)
        if not inflation.done:
            return False
        room += inflation.inflater.size
    full: str | None = None
    if session.waiting.lanes and lane_of(command) in session.waiting.lanes:
        full = ""  # in order behind those that wait
    else:
        for target in targets:
            if not session.may_send(target.name(), room):
                full = target.name()
                break
    held = (held_bytes(command) + room - size + MESSAGE_BYTES) * len(targets)
    if full is not None and not _may_be_set_aside(session, command, held):
        session.stop_for_room(now, full, command)
        return False
    original = route.destination if len(targets) > 1 else command.original_destination
    if inflation is None:
        messages = _converted(session, now, command, targets, original)
    else:
        messages = _converted_inflated(session, now, command, targets, original, inflation)
    if full is not None:
        for target in targets:
            session.kernel.check("send", target.name())
    token = _token(session, command, size, len(messages))
    if full is not None:
        request = WaitingMessage(session, command, targets, messages, token, room, held, full)
        session.set_aside(now, lane_of(command), request)
        return True
    _deliver(session, now, command.transaction_id, messages, token)
    return True


def _deliver(
    session: OpenWireSession, now: int, transaction_id: TransactionId | None, messages: list[Message], token: int
) -> None:
    """Sends the messages of a command."""
    try:
        for message in messages:
            send_in(session, now, transaction_id, message, token)
            session.kernel.producers.count_unnamed(now, message)
    except BrokerError:
        session.answers.forget(token)
        raise


# -- full addresses -------------------------------------------------------------------------------
class WaitingMessage(WaitingRequest):
    """The messages of a command that wait for `room` bytes at each address; `transaction_id` is that of the command."""

    def __init__(
        self,
        session: OpenWireSession,
        command: OpenWireMessage,
        targets: list[BrokerDestination],
        messages: list[Message],
        token: int,
        room: int,
        size: int,
        address: str,
    ) -> None:
        super().__init__(_producer_of(command), size, address)
        self.session = session
        self.command_id = command.command_id
        self.wanted = command.response_required
        self.transaction_id = command.transaction_id
        self.targets = targets
        self.messages = messages
        self.token = token
        self.room = room

    def proceed(self, now: int) -> bool:
        session = self.session
        try:
            for target in self.targets:
                if not session.may_send(target.name(), self.room):
                    self.address = target.name()
                    return False
            _check_temporary(session, self.targets)
            _deliver(session, now, self.transaction_id, self.messages, self.token)
        except BrokerError as error:
            self.refuse(error)
        return True

    def refuse(self, error: BrokerError) -> None:
        session = self.session
        session.answers.forget(self.token)
        fail(session, self.transaction_id, error)
        session.connection.refuse(self.command_id, self.wanted, error)


class WaitingEnd(WaitingRequest):
    """The end of a transaction with a message that waits for room."""

    def __init__(self, session: OpenWireSession, info: TransactionInfo) -> None:
        super().__init__("", 0, "")
        self.session = session
        self.info = info

    def proceed(self, now: int) -> bool:
        info = self.info
        try:
            answer_transaction(self.session, now, info)
        except BrokerError as error:
            self.session.connection.refuse(info.command_id, True, error)
        return True


def held_bytes(command: OpenWireMessage) -> int:
    """Returns the bytes that a command takes while it waits, without an inflated body."""
    size = len(command.content or b"") + len(command.marshalled_properties or b"")
    for text in (command.correlation_id, command.jms_type, command.group_id, command.user_id):
        size += len(text or "")
    reply_to = command.reply_to
    return size if reply_to is None else size + len(reply_to.physical_name or "")


def lane_of(command: OpenWireMessage) -> str:
    """Returns the lane of a message: the client's session, whose order is kept."""
    producer_id = command.producer_id
    return "" if producer_id is None else f"{producer_id.connection_id}:{producer_id.session_id}"


def _producer_of(command: OpenWireMessage) -> str:
    producer_id = command.producer_id
    return "" if producer_id is None else f"{lane_of(command)}:{producer_id.value}"


def _may_be_set_aside(session: OpenWireSession, command: OpenWireMessage, size: int) -> bool:
    """Returns whether a message may wait while its connection goes on: its sender waits for an answer, or keeps to a
    window (Queue.send). Others have nothing but the connection that stops them."""
    if not session.connection.sets_aside():
        return False
    if not command.response_required:
        producer = None if command.producer_id is None else session.producers.by_id.get(command.producer_id)
        if producer is None or producer.window_size <= 0:
            return False
    return session.waiting.may_add(_producer_of(command), size)


def end_transaction(session: OpenWireSession, now: int, info: TransactionInfo) -> bool:
    """Processes the end of a transaction, behind its messages. Returns False if it has to wait, as `send`."""
    lanes: list[str] = []
    ends = False
    for lane, requests in session.waiting.lanes.items():
        for request in requests:
            if isinstance(request, WaitingEnd):
                ends = ends or request.info.transaction_id == info.transaction_id
            elif isinstance(request, WaitingMessage) and request.transaction_id == info.transaction_id:
                if lane not in lanes[-1:]:
                    lanes.append(lane)
    if not lanes:
        answer_transaction(session, now, info)
        return True
    if len(lanes) > 1 or ends or not info.response_required:
        session.stop_input()
        return False
    session.set_aside(now, lanes[0], WaitingEnd(session, info))
    return True


def _check_producer(session: OpenWireSession, command: OpenWireMessage) -> None:
    """Raises MessageRefused unless the client has the producer of the message, and that of its id (Queue.send).

    Whoever knows the id of another client's message must not send in its name: that one's would be taken for a repeat.
    A bridge brings the messages of other clients.
    """
    if session.sender.bridge:
        return
    producer_id, message_id = command.producer_id, command.message_id
    if producer_id is not None and session.producers.has(producer_id):
        owner = None if message_id is None else message_id.producer_id
        if owner is None or same_producer(owner, producer_id) or owner in session.producers.by_id:
            return
    assert command.destination is not None
    text = f"Cannot send message to {text_of_destination(command.destination)} with invalid (null) producer state"
    raise MessageRefused(ILLEGAL_STATE, text)


def _inflation(
    session: OpenWireSession, now: int, command: OpenWireMessage, targets: list[BrokerDestination]
) -> Inflation:
    """Returns the inflation of a compressed body. If it is not done, the input is held until it is.

    MessageRefused: it becomes too large. DecodeError: it is damaged. Rights come first: the work is for those who may
    send.
    """
    inflation = session.inflation
    try:
        if inflation is None or inflation.command is not command:
            for target in targets:
                session.kernel.check("send", target.name())
            inflation = session.inflations.begin(now, session, command, session.sender.body_bytes_max)
            session.inflation = inflation
        if inflation.done:
            inflation.check()
    except InflatedTooLarge as error:
        text = f"a compressed body: {error.text}; send it without compression, or in several messages"
        raise MessageRefused(ILLEGAL_STATE, text) from None
    return inflation


def _converted_inflated(
    session: OpenWireSession,
    now: int,
    command: OpenWireMessage,
    targets: list[BrokerDestination],
    original: ActiveMQDestination | None,
    inflation: Inflation,
) -> list[Message]:
    """Returns the messages of a command with its body inflated; the command is as before then."""
    content = command.content
    try:
        command.content, command.compressed = inflation.content(), False
        return _converted(session, now, command, targets, original)
    finally:
        command.content, command.compressed = content, True
        session.inflation = None


def _check_temporary(session: OpenWireSession, targets: list[BrokerDestination]) -> None:
    """Raises MessageRefused for a temporary destination that has ended."""
    try:
        for target in targets:
            check_exists(session.kernel, target)
    except BrokerError as error:
        raise MessageRefused(error.code, error.text) from None


def _converted(
    session: OpenWireSession,
    now: int,
    command: OpenWireMessage,
    targets: list[BrokerDestination],
    original: ActiveMQDestination | None,
) -> list[Message]:
    """Returns the broker's messages, one for each target. MessageRefused: what is in it is not supported."""
    try:
        return [sent_message(command, target, session.sender, now // 1_000_000, original) for target in targets]
    except BrokerError as error:
        raise MessageRefused(error.code, error.text) from None


def _route(session: OpenWireSession, destination: ActiveMQDestination | None) -> Route:
    """Returns the route of a destination: usually that of the last message, as its client sends a destination once."""
    sender = session.sender
    last = sender.last_route
    if last is not None and last.destination is destination:
        return last
    name_of(destination)
    assert destination is not None
    if is_advisory(destination):
        raise ProtocolError(f"{destination.physical_name}: only the broker sends advisories")
    route = Route(destination, _targets(session, parts_of(destination)))
    sender.last_route = route
    return route


def _token(session: OpenWireSession, command: OpenWireMessage, size: int, parts: int) -> int:
    """Returns the token of the answer: a Response, or a ProducerAck for a producer with a window."""
    producer_id: ProducerId | None = None
    if not command.response_required:
        producer = None if command.producer_id is None else session.producers.by_id.get(command.producer_id)
        if producer is None or producer.producer_id is None or producer.window_size <= 0:
            return SILENT
        producer_id = producer.producer_id
    answer = Answer(command.command_id)
    if producer_id is not None:
        answer.confirm_bytes(producer_id, size + MESSAGE_BYTES)
    answer.parts = parts
    return session.answers.add(answer)
