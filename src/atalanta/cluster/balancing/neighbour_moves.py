"""The moves of failover clients to neighbours in a network of brokers.

In ActiveMQ Classic a broker tells all clients to choose anew when a neighbour comes (RebalanceConnection): they drop
their connections amid their work, what they have sent without an answer is repeated elsewhere, and clients with
`priorityBackup` stay. Here each client has a place (AcceptorList in wire/openwire/server/cluster_clients.py). It is
sent there when nothing of it is unfinished, as to the members of a cluster; then its connection is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from atalanta.cluster.balancing.movable import STAY_NS, Eligibility
from atalanta.cluster.balancing.redirects import IDLE_NS
from atalanta.cluster.part import Part
from atalanta.wire.connection import ClientConnection
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.wire.connection import Connection, Redirect
    from atalanta.wire.host import Host
    from atalanta.wire.openwire.server.cluster_clients import ClusterClients

TICK: Final = "moves.tick"
TICK_NS: Final = 250_000_000
NOWHERE: Final = TransportConfiguration("")


def demand_follows(address: str) -> bool:
    """Tells if messages follow the consumers of an address: bridges bring them to the neighbour."""
    return True


class NeighbourMoves(Part):
    """`chosen`: the neighbour for each client that is to go, by its connection; `pending` and `sent` are its redirects.

    A client that offers no moment without unfinished work within `patience_ns` stays.
    """

    def __init__(
        self, host: Host, connections: Mapping[int, Connection], clients: ClusterClients, patience_ns: int
    ) -> None:
        self.host = host
        self.connections = connections
        self.patience_ns = patience_ns
        broker = host.broker
        self.timers = broker.timers
        self.trace = broker.trace
        self.leaving = broker.clients.leaving
        self.eligibility = Eligibility(broker.clients, broker.branches, False, demand_follows)
        self.chosen: dict[int, tuple[str, int]] = {}
        self.pending: dict[int, Redirect] = {}
        self.sent: dict[int, Redirect] = {}
        clients.use_moves(self.choose)

    def stop(self, now: int) -> None:
        self.chosen.clear()
        for redirect in list(self.pending.values()):
            self._cancel(now, redirect)
        self.timers.cancel(TICK)

    def choose(self, now: int, conn: int, neighbour: str) -> None:
        """Records that a client is to go to a neighbour, by its key (PeerBrokers.neighbours)."""
        if conn not in self.pending and conn not in self.sent:
            self.chosen[conn] = (neighbour, now)
        self.timers.set(TICK, now + TICK_NS)

    def on_timer(self, now: int, key: str) -> None:
        for conn in list(self.chosen):
            self._begin(now, conn)
        for redirect in list(self.pending.values()):
            self._check(now, redirect)
        for conn, redirect in list(self.sent.items()):
            if conn not in self.connections:
                del self.sent[conn]
            elif now - redirect.sent_at > redirect.linger_ns:
                del self.sent[conn]
                self.host.closing.append((conn, "was sent to another broker and did not go"))
        if self.chosen or self.pending or self.sent:
            self.timers.set(TICK, now + TICK_NS)

    def _begin(self, now: int, conn: int) -> None:
        """Begins the redirect of a client that has been here for a moment."""
        neighbour, since = self.chosen[conn]
        connection = self.connections.get(conn)
        if not isinstance(connection, ClientConnection) or connection.gone:
            del self.chosen[conn]
        elif now - max(since, connection.opened) >= STAY_NS:
            del self.chosen[conn]
            if connection.can_reach(neighbour) and self.eligibility.obstacle(connection, now) is None:
                redirect = connection.begin_redirect(now, neighbour)
                redirect.notify(self._try)
                self.pending[conn] = redirect
                self.leaving[conn] = True

    def _check(self, now: int, redirect: Redirect) -> None:
        connection = redirect.connection
        if (
            connection.gone
            or connection.current_redirect() is not redirect
            or not connection.can_reach(redirect.target_node)
            or now - redirect.since >= self.patience_ns
        ):
            self._cancel(now, redirect)
        elif now - connection.last_seen >= IDLE_NS:
            self._try(redirect, now)

    def _try(self, redirect: Redirect, now: int) -> None:
        """Sends the client away if nothing of it is unfinished."""
        connection = redirect.connection
        if not connection.can_reach(redirect.target_node) or self.eligibility.unfinished(redirect) is not None:
            return
        del self.pending[connection.conn]
        redirect.send(now, NOWHERE, [])
        self.sent[connection.conn] = redirect
        client = connection.client
        self.trace.event(
            "client_redirected",
            {"remote": client.remote, "client": client.client_id or "", "to": redirect.target_node, "at": ""},
        )

    def _cancel(self, now: int, redirect: Redirect) -> None:
        connection = redirect.connection
        del self.pending[connection.conn]
        self.leaving.pop(connection.conn, None)
        if connection.current_redirect() is redirect:
            redirect.cancel(now)
