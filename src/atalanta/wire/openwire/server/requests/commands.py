"""The commands of a client that has logged in. A refusal is a BrokerError; ProtocolError ends the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.security.security import CREATE_NON_DURABLE_QUEUE
from atalanta.kernel.sessions.session_queues import not_named
from atalanta.kernel.sessions.subscription_queue import temporary_queue
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    KeepAliveInfo,
    RemoveInfo,
)
from atalanta.wire.openwire.commands.consumers import (
    ConsumerControl,
    ConsumerInfo,
    MessagePull,
    RemoveSubscriptionInfo,
)
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.identifiers import ConsumerId, ProducerId, SessionId
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.commands.transactions import TransactionInfo
from atalanta.wire.openwire.conversion.destination import is_queue, is_temporary, name_of
from atalanta.wire.openwire.conversion.text_bounds import check_texts
from atalanta.wire.openwire.server.advisories.temporary_destinations import TemporaryOwner
from atalanta.wire.openwire.server.requests.acknowledgements import acknowledge
from atalanta.wire.openwire.server.requests.consumers import (
    add_consumer,
    control,
    pull,
    remove_consumer,
    remove_durable,
)
from atalanta.wire.openwire.server.requests.sends import add_producer, end_transaction, send
from atalanta.wire.openwire.server.requests.subscription_queue import queue_for
from atalanta.wire.openwire.server.requests.transactions import ENDS, answer_transaction
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession

ADD: Final = 0
REMOVE: Final = 1
TEMPORARY_MAX: Final = 10_000  # of one connection
# Others hear of them, or of what they name.
ANNOUNCED: Final = (ProducerInfo, SessionInfo, RemoveSubscriptionInfo)
# What a broker of a network sends, and what no client of ours is to send.
NOT_SUPPORTED: Final = {
    codes.BROKER_INFO: "a bridge sends its BrokerInfo before it logs in",
    codes.CONTROL_COMMAND: "ControlCommand is not supported: stop the node by its own command",
}


def answer(session: OpenWireSession, now: int, command: Command) -> bool:
    """Processes a command. Returns False if it has to wait: it is given again when the input is released."""
    if isinstance(command, OpenWireMessage):
        return send(session, now, command)
    if isinstance(command, MessageAck):
        acknowledge(session, now, command)
    elif isinstance(command, TransactionInfo):
        if session.waiting.lanes and command.kind in ENDS:
            return end_transaction(session, now, command)
        answer_transaction(session, now, command)
    elif isinstance(command, MessagePull):
        pull(session, now, command)
    else:
        advisories = session.dispatches.advisories
        wildcard_queues = session.dispatches.wildcard_queues
        before, looked = advisories.watchers.sent, wildcard_queues.looked
        _answer_change(session, now, command)
        advisories.watchers.pace(session.connection, before)
        wildcard_queues.pace(session.connection, looked)
    return True


def _answer_change(session: OpenWireSession, now: int, command: Command) -> None:
    """Processes a command of which advisories may tell."""
    if isinstance(command, ConsumerInfo):
        check_texts(command)
        add_consumer(session, now, command)
    elif isinstance(command, RemoveInfo):
        _remove(session, now, command)
    elif isinstance(command, DestinationInfo):
        check_texts(command)
        _change_destination(session, now, command)
    else:
        _answer_rare(session, now, command)


def _answer_rare(session: OpenWireSession, now: int, command: Command) -> None:
    """Processes the commands that come once in the life of something."""
    if isinstance(command, ANNOUNCED):
        check_texts(command)
    if isinstance(command, ProducerInfo):
        add_producer(session, command)
    elif isinstance(command, SessionInfo):
        if command.session_id is None:
            raise ProtocolError("SessionInfo without SessionId")
        if command.session_id not in session.sessions:
            session.add_session(command.session_id)
        session.done(session.answers.token_for(command))
    elif isinstance(command, ConsumerControl):
        control(session, now, command)
    elif isinstance(command, RemoveSubscriptionInfo):
        remove_durable(session, now, command)
    elif isinstance(command, KeepAliveInfo):
        if command.response_required:
            session.connection.answer(KeepAliveInfo(command.command_id))
    elif isinstance(command, (ConnectionControl, Response)):
        # FailoverTransport sends what it has tracked again behind a reconnect: for some of it an empty Response.
        session.done(session.answers.token_for(command))
    elif command.code() == codes.FLUSH_COMMAND:
        session.done_when_durable(session.answers.token_for(command))
    else:
        name = command.__class__.__name__
        raise BrokerError(ILLEGAL_STATE, NOT_SUPPORTED.get(command.code(), f"{name} is no command of a client"))


# -- destinations ---------------------------------------------------------------------------------
def _change_destination(session: OpenWireSession, now: int, info: DestinationInfo) -> None:
    """Processes DestinationInfo. All watchers hear of a temporary destination before the answer."""
    destination = info.destination
    name = name_of(destination)
    assert destination is not None
    kernel = session.kernel
    if info.operation_type == ADD:
        if not is_temporary(destination):
            if is_queue(destination):
                queue_for(kernel, now, session.target(destination), None)
        elif name not in session.temporary:
            _add_temporary(session, now, info)
    elif info.operation_type == REMOVE:
        if is_temporary(destination):
            _remove_temporary(session, now, name)
        elif is_queue(destination):
            kernel.delete_queue(now, name)
    else:
        raise ProtocolError(f"DestinationInfo with operation {info.operation_type}")
    session.done_when_durable(session.answers.token_for(info))


def _add_temporary(session: OpenWireSession, now: int, info: DestinationInfo) -> None:
    destination = info.destination
    assert destination is not None
    name = name_of(destination)
    if len(session.temporary) >= TEMPORARY_MAX:
        raise BrokerError(ILLEGAL_STATE, f"a connection has at most {TEMPORARY_MAX} temporary destinations")
    kernel, connection = session.kernel, session.connection
    temporary = session.dispatches.advisories.temporary
    if not kernel.client.bridge:
        _check_name(session, now, name)
    owner = temporary.owners.get(name)
    if owner is None:
        temporary_queue(kernel, now, name, ANYCAST if is_queue(destination) else MULTICAST)
    elif owner.kernel.client.bridge and not kernel.client.bridge and temporary.kinds[name] == destination.code():
        # Its creator has come from the other broker. What waits for the bridge to go there is for the creator here.
        kernel.take_over_queue(now, owner.kernel, name)
        owner.output.temporary_taken(now, destination)
    else:
        raise BrokerError(ILLEGAL_STATE, f"temporary destination {name} belongs to another connection")
    session.temporary[name] = True
    temporary.add(destination, TemporaryOwner(connection, kernel, session.connection_id, info.broker_path))


def _check_name(session: OpenWireSession, now: int, name: str) -> None:
    """Raises BrokerError SECURITY for a name that clients of other connections make.

    Of two connections that tell the same id the first one has the names.
    """
    connection_id, dispatches = session.connection_id.value or "", session.dispatches
    first = dispatches.correlations.is_first(session.connection.conn, connection_id)
    if first and session.kernel.client.names(name):
        return
    text = not_named(name)
    if not first:
        text = f"{text}, and another client is here with the id of this one, {connection_id}"
    kernel = session.kernel
    raise kernel.services.permissions.refusal(now, kernel.identity, CREATE_NON_DURABLE_QUEUE, name, text)


def _remove_temporary(session: OpenWireSession, now: int, name: str) -> None:
    if name not in session.temporary:
        return
    address = session.kernel.services.queue_registry.addresses.by_name.get(name)
    for queue in [] if address is None else address.queues():
        if queue.consumer_count() > 0:
            raise BrokerError(ILLEGAL_STATE, f"temporary destination {name} still has consumers")
    if name in session.kernel.services.queue_registry.by_name:
        session.kernel.delete_queue(now, name)
    del session.temporary[name]
    session.dispatches.advisories.temporary.remove(name)


# -- removals -------------------------------------------------------------------------------------
def _remove(session: OpenWireSession, now: int, info: RemoveInfo) -> None:
    """Processes RemoveInfo. The end of the connection itself is not handled here."""
    removed = info.object_id
    last_delivered = info.last_delivered_sequence_id
    if isinstance(removed, ConsumerId):
        remove_consumer(session, now, removed, last_delivered)
    elif isinstance(removed, ProducerId):
        _remove_producer(session, removed)
    elif isinstance(removed, SessionId):
        remove_session(session, now, removed, last_delivered)
    else:
        named = removed or "nothing"
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"RemoveInfo of {named}: it is no part of a connection")
    session.done_when_durable(session.answers.token_for(info))


def remove_session(session: OpenWireSession, now: int, removed: SessionId, last_delivered: int) -> None:
    """Closes a session with its consumers and producers."""
    session.sessions.pop(removed, None)
    for consumer_id in [*session.subscriptions, *session.watchers]:
        if consumer_id.session_id == removed.value:
            remove_consumer(session, now, consumer_id, last_delivered)
    for producer_id in list(session.producers.by_id):
        if producer_id.session_id == removed.value:
            _remove_producer(session, producer_id)


def _remove_producer(session: OpenWireSession, producer_id: ProducerId) -> None:
    session.producers.remove(producer_id)
    session.dispatches.advisories.producers.remove(session.connection.conn, producer_id)


def remove_all(session: OpenWireSession, now: int, last_delivered: int) -> None:
    """Closes all consumers: the client closes its connection in order."""
    for consumer_id in [*session.subscriptions, *session.watchers]:
        remove_consumer(session, now, consumer_id, last_delivered)
