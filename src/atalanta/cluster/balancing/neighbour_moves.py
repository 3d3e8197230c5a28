"""The moves of failover clients to neighbours in a network of brokers.

In ActiveMQ Classic a broker tells all clients to choose anew when a neighbour comes (RebalanceConnection): they drop
their connections amid their work, what they have sent without an answer is repeated elsewhere, and clients with
`priorityBackup` stay. Here each client has a place (cluster/balancing/network_places.py). It is sent there at its first
login, or later when nothing of it is unfinished, as to the members of a cluster; then its connection is closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from atalanta.cluster.balancing.movable import STAY_NS, Eligibility
from atalanta.cluster.balancing.network_places import OWN, NetworkLoads, Room, places_of
from atalanta.cluster.balancing.redirects import IDLE_NS, RETRY_NS
from atalanta.cluster.part import Part
from atalanta.wire.connection import ClientConnection
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.openwire.server.peer_brokers import ClusterMembers

if TYPE_CHECKING:
    from atalanta.wire.connection import Redirect, TransportConnection
    from atalanta.wire.openwire.server.cluster_clients import ClusterClients
    from atalanta.wire.server import WireServer

TICK: Final = "moves.tick"
TICK_NS: Final = 250_000_000
LOOK_TICKS: Final = 4  # places are looked at once a second
TELL_TICKS: Final = 20  # neighbours are told again every five seconds
NOWHERE: Final = TransportConfiguration("")


def demand_follows(address: str) -> bool:
    """Returns whether messages follow the consumers of an address: bridges bring them to the neighbour."""
    return True


class FirstPlaces(ClusterMembers):
    """The places of clients that log in for the first time, in a network."""

    def __init__(self, moves: NeighbourMoves) -> None:
        self.moves = moves

    def place_at_login(self, now: int, connection: ClientConnection) -> str | None:
        return self.moves.place_at_login(now, connection)


class NeighbourMoves(Part):
    """The clients on their way to neighbours: `pending` and `sent` are the redirects by connection.

    A client that offers no moment without unfinished work within `patience_ns` stays, and is chosen again at the time
    in `busy`. `loads` are the clients of the neighbours; `chosen`: since when a client is to be elsewhere.
    """

    def __init__(
        self,
        host: WireServer,
        connections: Mapping[int, TransportConnection],
        clients: ClusterClients,
        patience_ns: int,
    ) -> None:
        self.host = host
        self.connections = connections
        self.clients = clients
        self.peers = clients.peers
        self.patience_ns = patience_ns
        broker = host.broker
        self.node_id: str = broker.node_id
        self.timers = broker.timers
        self.trace = broker.trace
        self.leaving = broker.clients.leaving
        self.eligibility = Eligibility(broker.clients, broker.branches, False, demand_follows)
        self.loads = NetworkLoads()
        self.pending: dict[int, Redirect] = {}
        self.sent: dict[int, Redirect] = {}
        self.busy: dict[int, int] = {}
        self.chosen: dict[int, int] = {}
        self.ticks: int = 0
        self.peers.members = FirstPlaces(self)

    def start(self, now: int) -> None:
        self.peers.tell_load(0, False)
        self.timers.set(TICK, now + TICK_NS)

    def stop(self, now: int) -> None:
        for redirect in list(self.pending.values()):
            self._cancel(now, redirect)
        self.timers.cancel(TICK)

    def on_timer(self, now: int, key: str) -> None:
        self.timers.set(TICK, now + TICK_NS)
        self.ticks += 1
        if self.ticks % LOOK_TICKS == 0:
            orders = self.clients.balanced()
            self.peers.tell_load(len(orders), self.ticks % TELL_TICKS == 0)
            self._look(now, orders)
        for redirect in list(self.pending.values()):
            self._check(now, redirect)
        for conn, redirect in list(self.sent.items()):
            if conn not in self.connections:
                del self.sent[conn]
            elif now - redirect.sent_at > redirect.linger_ns:
                del self.sent[conn]
                self.host.closing.append((conn, "was sent to another broker and did not go"))

    # -- places ---------------------------------------------------------------------------------
    def place_at_login(self, now: int, connection: ClientConnection) -> str | None:
        """Returns the neighbour to which a client is sent at its first login; None if it stays."""
        order = self.clients.orders.get(connection.conn)
        if order is None or connection.can_move() is not None:
            return None
        self.loads.tell(now, self.peers.counts())
        own = len(self.clients.orders)
        room = Room(own, self.loads, order, own - 1)
        key = places_of({connection.conn: order}, room).get(connection.conn)
        if key is not None:
            self.clients.leave_out(connection.conn)
            self.loads.sent(now, key)
            self._tell(connection, key)
        return key

    def _look(self, now: int, orders: Mapping[int, Sequence[str]]) -> None:
        """Begins the redirects of the clients that are to be elsewhere, and have been so for a moment."""
        self.loads.tell(now, self.peers.counts())
        chosen: dict[int, int] = {}
        groups = list(self._groups(now, orders).values())
        staying = sum(len(group) for group in groups)
        for group in groups:
            keys = max(group.values(), key=len)  # one that is not to be moved has this broker only
            room = Room(len(orders), self.loads, keys, staying - len(group))
            room.share(self.loads)
            for redirect in self.pending.values():
                room.take(redirect.target_node)
            for conn, neighbour in places_of(group, room).items():
                chosen[conn] = since = self.chosen.get(conn, now)
                connection = self.connections.get(conn)
                if isinstance(connection, ClientConnection) and now - max(since, connection.opened) >= STAY_NS:
                    self._begin(now, connection, neighbour)
        self.chosen = chosen

    def _groups(self, now: int, orders: Mapping[int, Sequence[str]]) -> dict[str, dict[int, Sequence[str]]]:
        """Returns the clients by what brokers they are told of; one that is not to be moved wants to be here."""
        self.busy = {conn: until for conn, until in self.busy.items() if until > now}
        found: dict[str, dict[int, Sequence[str]]] = {}
        for conn, order in orders.items():
            connection = self.connections.get(conn)
            if isinstance(connection, ClientConnection) and conn not in self.pending:
                stays = conn in self.busy or connection.came_from == self.node_id
                found.setdefault(connection.reach(), {})[conn] = (OWN,) if stays else order
        return found

    # -- redirects ------------------------------------------------------------------------------
    def _begin(self, now: int, connection: ClientConnection, neighbour: str) -> None:
        if connection.can_reach(neighbour) and self.eligibility.obstacle(connection, now) is None:
            redirect = connection.begin_redirect(now, neighbour)
            redirect.on_answer = self._try
            self.pending[connection.conn] = redirect
            self.leaving[connection.conn] = True

    def _check(self, now: int, redirect: Redirect) -> None:
        connection = redirect.connection
        overdue = now - redirect.since >= self.patience_ns
        if overdue:
            self.busy[connection.conn] = now + RETRY_NS
        if (
            connection.gone
            or connection.current_redirect() is not redirect
            or not connection.can_reach(redirect.target_node)
            or overdue
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
        self.loads.sent(now, redirect.target_node)
        redirect.send(now, NOWHERE, [])
        self.sent[connection.conn] = redirect
        self._tell(connection, redirect.target_node)

    def _tell(self, connection: ClientConnection, neighbour: str) -> None:
        client = connection.client
        self.trace.event(
            "client_redirected",
            {"remote": client.remote, "client": client.client_id or "", "to": neighbour, "at": ""},
        )

    def _cancel(self, now: int, redirect: Redirect) -> None:
        connection = redirect.connection
        del self.pending[connection.conn]
        self.leaving.pop(connection.conn, None)
        if connection.current_redirect() is redirect:
            redirect.cancel(now)
