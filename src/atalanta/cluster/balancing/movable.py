"""Conditions for the redirect of a client to another node.

The protocol does not say if a client has `reconnectAttempts`. But an Artemis client that reconnects sends
CHECK_FOR_FAILOVER first, with the id of its former node (ClientSessionFactoryImpl.getConnection), and never does so on
its first connection. So a client that sends it has reconnected once and will do so again. Python clients send it from
the start if they accept any node of the cluster.

Reasons are short texts, shown by `atalanta rebalance`; None means that the client may go.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.sessions.session_consumer import SessionConsumer
from atalanta.wire.connection import ClientConnection, Redirect, TransportConnection
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.transactions.xa import Branches

STAY_NS: Final = 2_000_000_000  # after its connection was opened a client is not redirected,
RETURNED_STAY_NS: Final = 60_000_000_000  # longer if it was redirected and came back
Follows = Callable[[str], bool]  # address -> its messages are redistributed to consumers on other nodes


def is_client(connection: TransportConnection) -> bool:
    """Returns whether a connection counts as a client: logged in, no cluster node or bridge, and not redirected yet."""
    if not isinstance(connection, ClientConnection) or connection.cluster_peer or connection.gone:
        return False
    redirect = connection.current_redirect()
    if redirect is not None and redirect.sent_at:
        return False
    return any(
        not session.identity.cluster for session in connection.client.sessions.values()
    )


class Eligibility:
    """The rules of one cluster connection. With `any_client` clients that never reconnected are eligible too.

    `connector` is the one that the cluster connection announces; `acceptors` is the number of its acceptors. `returned`
    are connections of clients that came back from where they were sent.
    """

    def __init__(self, clients: Clients, branches: Branches, any_client: bool, follows: Follows) -> None:
        self.clients = clients
        self.branches = branches
        self.any_client = any_client
        self.follows = follows
        self.connector: TransportConfiguration = TransportConfiguration("")
        self.acceptors: int = 0
        self.returned: dict[int, bool] = {}

    def prune(self, connections: Container[int]) -> None:
        """Forgets connections that have ended."""
        for conn in [conn for conn in self.returned if conn not in connections]:
            del self.returned[conn]

    def obstacle(self, connection: ClientConnection, now: int) -> str | None:
        """Returns why a client must stay, whatever it does next."""
        reason = connection.can_move()
        if reason is not None:
            return reason
        reason = self.excluded(connection)
        if reason is not None:
            return reason
        age_ns = now - connection.opened
        if age_ns < STAY_NS:
            return "just connected"
        if connection.conn in self.returned and age_ns < RETURNED_STAY_NS:
            return "came back a moment ago"
        if connection.client.temporary_queues:
            return "has temporary queues"
        for session in connection.client.sessions.values():
            reason = self._session(session, connection)
            if reason is not None:
                return reason
        return None

    def excluded(self, connection: ClientConnection) -> str | None:
        """Returns why a client is never redirected, even at its login."""
        if connection.client.stays:
            return "accepts no other node"
        if connection.came_from is None and not self.any_client:
            return "not known to reconnect"
        if connection.acceptor is not None and connection.acceptor.router is not None:
            return "placed by a connection router"
        if connection.uses_connectors() and not self._by_announced_acceptor(connection):
            return "uses an acceptor that is not announced"
        return None

    def _by_announced_acceptor(self, connection: ClientConnection) -> bool:
        """Returns whether the client uses the announced acceptor: others may be unable or not allowed to connect."""
        acceptor = connection.acceptor
        if acceptor is None:
            return True
        if self.acceptors > 1 and acceptor.port != self.connector.port:
            return False
        announced = self.connector.parameters.get("sslEnabled", "").lower() == "true"
        return announced == (acceptor.tls is not None)

    def _session(self, session: Session, connection: ClientConnection) -> str | None:
        if session.identity.cluster:
            return "a bridge of the cluster"
        for consumer in session.consumers.values():
            if consumer.browse_only:
                return "is browsing a queue"
            if session.pre_acknowledge:
                return "acknowledges before it has worked"
            reason = self._queue(consumer.queue, connection)
            if reason is not None:
                return reason
        return None

    def _queue(self, queue: Queue, connection: ClientConnection) -> str | None:
        """Returns why the messages of a queue would have no consumer without this client."""
        if queue.deleted or self._others(queue, connection):
            return None
        if not queue.spec.durable:
            return f"last consumer of {queue.name}, which ends with it"
        if self.follows(queue.spec.address):
            return None
        if queue.message_count > 0:
            return f"last consumer of {queue.name}, which has messages"
        if queue.spec.routing_type != ANYCAST:
            return f"last consumer of the subscription {queue.name}"
        if self._has_producer(queue.spec.address, connection):
            return f"last consumer of {queue.name}, which others send to here"
        return None

    def _others(self, queue: Queue, connection: ClientConnection) -> bool:
        """Returns whether the queue has other consumers, and their clients stay."""
        for consumer in queue.consumers:
            if consumer.browse_only:
                continue
            if not isinstance(consumer, SessionConsumer):
                return True
            client = consumer.session.client
            if (
                client is not connection.client
                and client.connection not in self.clients.leaving
            ):
                return True
        return False

    def _has_producer(self, address: str, connection: ClientConnection) -> bool:
        """Returns whether another client that stays has a producer for the address."""
        for client in self.clients.connected.values():
            if client is connection.client or client.connection in self.clients.leaving:
                continue
            for session in client.sessions.values():
                for producer in session.producers.values():
                    if producer.address == address:
                        return True
        return False

    def unfinished(self, redirect: Redirect) -> str | None:
        """Returns what a client with a pending redirect must finish before it may go, None if nothing is left."""
        if redirect.is_sending():
            return "is sending a large message"
        connection = redirect.connection
        for session in connection.client.sessions.values():
            reason = _unfinished(session)
            if reason is None and session.xa:
                reason = self._branch(connection)
            if reason is not None:
                return reason
        return redirect.unwritten()

    def _branch(self, connection: ClientConnection) -> str | None:
        """Returns why the client must stay: a branch of a distributed transaction must end on this node.

        Between two branches the client may go.
        """
        for branch in self.branches.by_xid.values():
            if connection.conn in branch.clients:
                return "has a distributed transaction that is not finished"
        return None


def _unfinished(session: Session) -> str | None:
    """Returns the session's open work: a transaction or deliveries. A call that waits for a message is none of it."""
    if session.branch is not None:
        return "has a transaction open"
    for transaction in session.open_transactions():
        if not transaction.empty():
            return "has a transaction open"
    for consumer in session.consumers.values():
        if consumer.unacknowledged or consumer.stream is not None:
            return "has messages that it has not acknowledged"
    return None
