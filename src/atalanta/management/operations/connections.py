"""Connections, sessions and consumers: their lists, and how an operator closes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, INTERNAL_ERROR, BrokerError
from atalanta.kernel.routing.uuid_namespace import uuid_text
from atalanta.kernel.routing.wildcard import WildcardMatch
from atalanta.kernel.sessions.session_consumer import SessionConsumer
from atalanta.management.operations.destinations import binding_text
from atalanta.management.request.call import Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json
from atalanta.message.message import ENCODED_OVERHEAD_BYTES, MESSAGE_OVERHEAD_BYTES

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.security.security import Security
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.sessions.session_producers import SessionProducer
    from atalanta.kernel.transactions.transaction import SessionTransaction


def connection_id(client: Client) -> str:
    """Returns eight hexadecimal digits, the form of Artemis' ids."""
    return f"{client.connection:08x}"


def remote_address(client: Client) -> str:
    return client.remote


def validated_user(session: Session) -> str:
    """Returns the name that a login has proved, empty where security is off."""
    return session.identity.user if session.identity.validated else ""


def uncommitted(session: Session) -> list[SessionTransaction]:
    """Returns the transactions of the session that may have acknowledged messages: the open and the ended ones."""
    ended = session.ended_branch
    return session.open_transactions() + ([] if ended is None else [ended.transaction])


def consumer_counts(session: Session, consumer: QueueConsumer) -> dict[str, int]:
    """Returns the counts of a consumer and its times in ms (ServerConsumerImpl.ServerConsumerMetrics).

    `messagesAcknowledged` counts messages that were delivered and are no longer in transit, cancelled ones included.
    """
    held = consumer.unacknowledged.values()
    counts = consumer.counts
    return {
        "messagesInTransit": len(held),
        "messagesInTransitSize": encoded_size(len(held), sum(one.size for one in held)),
        "messagesDelivered": counts.delivered,
        "messagesDeliveredSize": encoded_size(counts.delivered, counts.delivered_bytes),
        "messagesAcknowledged": consumer.taken(),
        "messagesAcknowledgedAwaitingCommit": sum(
            reference.consumer is consumer
            for transaction in uncommitted(session)
            for reference in transaction.acknowledged
        ),
        "lastDeliveredTime": counts.delivered_at // 1_000_000,
        "lastAcknowledgedTime": counts.acknowledged_at // 1_000_000,
    }


def consumer_text(consumer: QueueConsumer) -> str:
    """Returns the text of ServerConsumerImpl.toManagementString; the consumer may be a bridge's."""
    queue = consumer.queue
    if not isinstance(consumer, SessionConsumer):
        return f"BridgeImpl [queue={queue.name}]"
    session = consumer.session
    selector = consumer.selector
    shown = "null" if selector is None else f"FilterImpl [sfilterString={selector.text}]"
    owner = f"{connection_id(session.client)}:{session.name}:{consumer.id}"
    return f"ServerConsumer [id={owner}, filter={shown}, binding={binding_text(queue)}]"


def encoded_size(count: int, size: int) -> int:
    """Returns the bytes of the CORE encoding of messages that take `size` bytes in memory (Message.getEncodeSize)."""
    return size - count * (MESSAGE_OVERHEAD_BYTES - ENCODED_OVERHEAD_BYTES)


def consumer_details(session: Session, consumer: QueueConsumer) -> dict[str, object]:
    """Returns the fields of ActiveMQServerControlImpl.toJSONObject."""
    found: dict[str, object] = {
        "consumerID": consumer.id,
        "sequentialId": consumer.sequential_id,
        "connectionID": connection_id(session.client),
        "sessionID": session.name,
        "queueName": consumer.queue.name,
        "browseOnly": consumer.browse_only,
        "creationTime": consumer.created_at // 1_000_000,
        "deliveringCount": len(consumer.unacknowledged),
        **consumer_counts(session, consumer),
        "status": "OK",
    }
    if consumer.selector is not None:
        found["filter"] = consumer.selector.text
    return found


def producer_name(session: Session, producer: SessionProducer) -> str:
    """Returns a name for the producer, unique in the cluster."""
    return f"{session.name}:{producer.address if producer.number < 0 else producer.number}"


def last_message_id(producer: SessionProducer) -> str | None:
    """Returns the UUID that the client gave to the last message, if any."""
    return None if producer.last_user_id is None else uuid_text(producer.last_user_id)


def session_details(session: Session) -> dict[str, object]:
    found: dict[str, object] = {
        "sessionID": session.name,
        "creationTime": session.created_at // 1_000_000,
        "consumerCount": len(session.consumers),
    }
    if session.identity.validated:
        found["validatedUser"] = found["principal"] = session.identity.user
    if session.metadata:
        found["metadata"] = dict(session.metadata)
    return found


def _consumers(sessions: list[Session]) -> str:
    found = [
        consumer_details(session, consumer)
        for session in sessions
        for consumer in session.consumers.values()
    ]
    return encode_json(found)


class ConnectionOperations:
    """The operations of the resource `broker` on connections, sessions, consumers and producers."""

    def __init__(self, clients: Clients, security: Security, trace: Trace) -> None:
        self.clients = clients
        self.security = security
        self.trace = trace
        self.operations: Operations = {
            "listConnectionsAsJSON": [("", self.list_connections_as_json)],
            "listConnectionIDs": [("", self.list_connection_ids)],
            "listSessions": [("s", self.list_sessions_of)],
            "listSessionsAsJSON": [("s", self.list_sessions_as_json)],
            "listAllSessionsAsJSON": [("", self.list_all_sessions_as_json)],
            "listConsumersAsJSON": [("s", self.list_consumers_of)],
            "listAllConsumersAsJSON": [("", self.list_all_consumers)],
            "listProducersInfoAsJSON": [("", self.list_producers_info)],
            "listRemoteAddresses": [("", self.list_remote_addresses), ("s", self.list_remote_addresses)],
            "closeConnectionsForAddress": [("s", self.close_connections_for_address)],
            "closeConnectionsForUser": [("s", self.close_connections_for_user)],
            "closeConsumerConnectionsForAddress": [("s", self.close_consumer_connections_for_address)],
            "closeConnectionWithID": [("s", self.close_connection_with_id)],
            "closeSessionWithID": [("ss", self.close_session_with_id), ("ssb", self.close_session_with_id)],
            "closeConsumerWithID": [("ss", self.close_consumer_with_id)],
        }

    def find_client(self, wanted: str) -> Client | None:
        for client in self.clients.connected.values():
            if connection_id(client) == wanted:
                return client
        return None

    # -- lists ----------------------------------------------------------------------------------
    def list_connections_as_json(self, call: Call, given: Parameters) -> object:
        found = [
            {
                "connectionID": connection_id(client),
                "clientAddress": remote_address(client),
                "creationTime": client.created_at // 1_000_000,
                "implementation": client.implementation,
                "sessionCount": len(client.sessions),
            }
            for client in self.clients.connected.values()
        ]
        return encode_json(found)

    def list_connection_ids(self, call: Call, given: Parameters) -> object:
        return [connection_id(client) for client in self.clients.connected.values()]

    def sessions_of(self, wanted: str) -> list[Session]:
        client = self.find_client(wanted)
        return [] if client is None else list(client.sessions.values())

    def list_sessions_of(self, call: Call, given: Parameters) -> object:
        return [session.name for session in self.sessions_of(text_of(given, 0))]

    def list_sessions_as_json(self, call: Call, given: Parameters) -> object:
        found = [session_details(session) for session in self.sessions_of(text_of(given, 0))]
        return encode_json(found)

    def list_all_sessions_as_json(self, call: Call, given: Parameters) -> object:
        return encode_json([session_details(session) for session in self.clients.sessions()])

    def list_consumers_of(self, call: Call, given: Parameters) -> object:
        return _consumers(self.sessions_of(text_of(given, 0)))

    def list_all_consumers(self, call: Call, given: Parameters) -> object:
        return _consumers(self.clients.sessions())

    def list_producers_info(self, call: Call, given: Parameters) -> object:
        found = [
            {
                "id": str(producer.id),
                "name": producer_name(session, producer),
                "connectionID": connection_id(session.client),
                "sessionID": session.name,
                "creationTime": str(producer.created_at // 1_000_000),
                "destination": producer.address,
                "lastProducedMessageID": last_message_id(producer),
                "msgSent": producer.sent,
                "msgSizeSent": producer.sent_bytes,
            }
            for session in self.clients.sessions()
            for producer in session.producers.values()
        ]
        return encode_json(found)

    def list_remote_addresses(self, call: Call, given: Parameters) -> object:
        wanted = text_of(given, 0) if given else ""
        clients = self.clients.connected.values()
        return [remote_address(one) for one in clients if wanted in remote_address(one)]

    # -- closing ---------------------------------------------------------------------------------
    def close(self, client: Client, why: str) -> None:
        self.trace.event("connection_closed_by_operator", {"why": why, "remote": client.remote})
        self.clients.close(client.connection, why)

    def close_connections_for_address(self, call: Call, given: Parameters) -> object:
        """Closes every connection whose remote address contains the text."""
        wanted = text_of(given, 0)
        closed = False
        for client in list(self.clients.connected.values()):
            if wanted in remote_address(client):
                self.close(client, f"AMQ229005: connections for {wanted} closed by management")
                closed = True
        return closed

    def close_connections_for_user(self, call: Call, given: Parameters) -> object:
        wanted = text_of(given, 0)
        closed = False
        for client in list(self.clients.connected.values()):
            if any(session.identity.user == wanted for session in client.sessions.values()):
                self.close(client, f"AMQ229108: connections for user {wanted} closed by management")
                closed = True
        return closed

    def close_consumer_connections_for_address(self, call: Call, given: Parameters) -> object:
        """Closes connections with consumers on an address that the text (with wildcards) matches."""
        wanted = text_of(given, 0)
        try:
            match = WildcardMatch(wanted, self.security.wildcard)
        except ValueError as error:
            raise BrokerError(ILLEGAL_STATE, str(error)) from error
        closed = False
        for client in list(self.clients.connected.values()):
            addresses = [
                consumer.queue.spec.address
                for session in client.sessions.values()
                for consumer in session.consumers.values()
            ]
            if any(address == wanted or match.matches(address) for address in addresses):
                why = f"AMQ229107: consumer connections for address {wanted} closed by management"
                self.close(client, why)
                closed = True
        return closed

    def close_connection_with_id(self, call: Call, given: Parameters) -> object:
        wanted = text_of(given, 0)
        client = self.find_client(wanted)
        if client is None:
            return False
        self.close(client, f"AMQ229120: connection with ID {wanted} closed by management")
        return True

    def close_session_with_id(self, call: Call, given: Parameters) -> object:
        """(connectionID, sessionID [, force]): closes the session's consumers and rolls its transaction back."""
        name = text_of(given, 1)
        for session in self.sessions_of(text_of(given, 0)):
            if session.name == name:
                for consumer_id in list(session.consumers):
                    session.disconnect_consumer(call.now, consumer_id, "closed by management")
                session.endpoint.ended_by_operator(call.now)
                return True
        return False

    def close_consumer_with_id(self, call: Call, given: Parameters) -> object:
        """(sessionID, sequentialId): closes the consumer; the ids are those of listConsumers."""
        name = text_of(given, 0)
        try:
            sequential_id = int(text_of(given, 1))
        except ValueError:
            text = f'For input string: "{text_of(given, 1)}"'
            raise BrokerError(INTERNAL_ERROR, text) from None
        for session in self.clients.sessions():
            for consumer in list(session.consumers.values()) if session.name == name else []:
                if consumer.sequential_id == sequential_id:
                    session.disconnect_consumer(call.now, consumer.id, "closed by management")
                    return True
        return False
