"""The brokers that failover clients are told of: ConnectionControl with ConnectedBrokers.

As TransportConnector of ActiveMQ Classic: at the login, and when brokers come or go. A client that is told a list takes
it in addition to the URIs of its own URL (FailoverTransport, getConnectList). It reconnects only if the list has other
URIs than the one before, and RebalanceConnection is set. That is left to the plan of the cluster; in a network of
brokers, each client has a place and is sent there (cluster/balancing/network_places.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.commands.connections import ConnectionControl
from atalanta.wire.openwire.server.peer_brokers import uri_at

if TYPE_CHECKING:
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.openwire.server.peer_brokers import PeerBroker, PeerBrokers
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

VERSION_MIN: Final = 6  # ConnectionControl names brokers since this version of OpenWire
KEPT_MAX: Final = 1_000
LIST_CHARACTERS_MAX: Final = 30_000  # a text has at most 32,766 bytes
# A client that is sent away takes the target with four times the probability of all other brokers together, those of
# its own URL included, which may be as many as OWN_URIS.
NAMES_FOR_EACH: Final = 4
NAMES_MAX: Final = 60
OWN_URIS: Final = 3
TIMEOUT_MS: Final = 2_000  # of an attempt to connect; those to a dead host add up


def scheme_of(connection: OpenWireOutput) -> str:
    """Returns the scheme by which a client came."""
    acceptor = connection.acceptor
    return "ssl" if acceptor is not None and acceptor.tls is not None else "tcp"


def can_be_told(connection: OpenWireOutput) -> bool:
    """Returns whether the version of a client has lists of brokers."""
    return connection.decoder.format.options.version >= VERSION_MIN


def joined(uris: list[str]) -> str:
    """Returns a list of URIs as text. Those beyond LIST_CHARACTERS_MAX are left out."""
    text = ""
    for uri in uris:
        if len(text) + len(uri) >= LIST_CHARACTERS_MAX:
            break
        text += f",{uri}" if text else uri
    return text


def weight(client: str, name: str) -> bytes:
    """Returns the weight of a broker for a client: its place is the broker with the lowest one (rendezvous hashing)."""
    return blake2b(f"{client} {name}".encode(errors="replace"), digest_size=8).digest()


class AcceptorList:
    """The brokers that clients of one acceptor are told of. `kept` are URIs of brokers that were there once."""

    def __init__(self, acceptor: AcceptorConfig, peers: PeerBrokers) -> None:
        self.peers = peers
        options = acceptor.options(OpenWireAcceptor)
        self.rotates: bool = options.rebalance_cluster_clients
        self.forgets: bool = options.update_cluster_clients_on_remove
        self.patterns = [re.compile(part.strip()) for part in options.update_cluster_filter.split(",") if part.strip()]
        self.kept: dict[str, bool] = {}
        self.passed: dict[str, bool] = {}  # whether a broker passes the filter, by name
        self.turn: int = 0

    def matches(self, peer: PeerBroker) -> bool:
        """Returns whether clients may be told of a broker, and sent there (updateClusterFilter)."""
        if not self.patterns:
            return True
        found = self.passed.get(peer.name)
        if found is None:
            found = any(each.fullmatch(peer.name) for each in self.patterns)
            if len(self.passed) < KEPT_MAX:
                self.passed[peer.name] = found
        return found

    def own_uri(self, connection: OpenWireOutput) -> str:
        """Returns the URI of this node for a client."""
        scheme = scheme_of(connection)
        own = self.peers.members.own(connection)
        uri = None if own is None else own.uri_for(scheme)
        if uri is None:
            acceptor, local = connection.acceptor, connection.client.local
            uri = f"{scheme}://{local}" if acceptor is None else uri_at(acceptor, local)
        return uri

    def uris(self, now: int, connection: OpenWireOutput) -> list[str]:
        """Returns the URIs for a client: those in its zone first, rotated for each client if clients are balanced."""
        members = self.peers.members
        own = self.own_uri(connection)
        if members.planned:
            neighbours = self.peers.neighbours.values()
            told = members.told_to(now, connection)
            near = self._turned([own] if told.own_near else [], told.near, connection)
            far = self._turned([] if told.own_near else [own], [*told.far, *neighbours], connection)
            found = list(dict.fromkeys([*near, *far]))
        else:
            found = self._placed(own, connection)
        for uri in found:
            if len(self.kept) < KEPT_MAX:
                self.kept[uri] = True
        if not self.forgets:
            scheme = scheme_of(connection)
            found += [uri for uri in self.kept if uri not in found and uri.startswith(f"{scheme}://")]
        self.turn += 1
        return found

    def order(self, connection: OpenWireOutput) -> list[str]:
        """Returns the keys of the brokers of a network, "" for this one, where no plan of a cluster counts clients.

        If clients are balanced, names and client id decide. The order is the same at all brokers, and each broker is in
        front for about an equal part of the clients.
        """
        scheme = scheme_of(connection)
        names = {"": connection.host.broker.config.name}
        known = {self.own_uri(connection): True}
        for key, peer in self.peers.neighbours.items():
            uri = peer.uri_for(scheme)
            if uri is not None and uri not in known and self.matches(peer):
                known[uri] = True
                names[key] = peer.name
        client = connection.client.client_id or ""
        return sorted(names, key=lambda key: weight(client, names[key])) if self.rotates else list(names)

    def _placed(self, own: str, connection: OpenWireOutput) -> list[str]:
        """Returns the URIs of a network, in the order of the client."""
        scheme = scheme_of(connection)
        found: list[str] = []
        for key in self.order(connection):
            uri = self.peers.neighbours[key].uri_for(scheme) if key else own
            if uri is not None:
                found.append(uri)
        return found

    def _turned(self, first: list[str], peers: Iterable[PeerBroker], connection: OpenWireOutput) -> list[str]:
        """Returns the URIs, with another one in front for each client."""
        scheme = scheme_of(connection)
        found = list(first)
        for peer in peers:
            uri = peer.uri_for(scheme)
            if uri is not None and self.matches(peer):
                found.append(uri)
        at = self.turn % len(found) if self.rotates and found else 0
        return found[at:] + found[:at]


class ClusterClients:
    """The clients of a node that are told of other brokers, by connection; `known`: the last list of each.

    `orders`: the brokers for each of those that are balanced (AcceptorList.order).
    No client is told what would make it wait for this node: not that it is alone, and nothing of the links that end
    because the node stops or leaves.
    """

    def __init__(self, peers: PeerBrokers) -> None:
        self.peers = peers
        self.lists: dict[str, AcceptorList] = {}
        self.clients: dict[int, OpenWireOutput] = {}
        self.known: dict[int, list[str]] = {}
        self.orders: dict[int, list[str]] = {}
        peers.on_change = self.on_change

    def balanced(self) -> dict[int, list[str]]:
        """Returns the clients that may be sent to a neighbour, with their orders of brokers."""
        for conn, connection in self.clients.items():
            if conn not in self.orders:
                self._order(connection)
        return self.orders

    def leave_out(self, conn: int) -> None:
        """Leaves out a client that is about to go, until the clients are looked at again."""
        self.orders.pop(conn, None)

    def _order(self, connection: OpenWireOutput) -> None:
        brokers = self.list_of(connection)
        if brokers is not None and brokers.rotates:
            self.orders[connection.conn] = brokers.order(connection)

    def list_of(self, connection: OpenWireOutput) -> AcceptorList | None:
        """Returns the list of a client's acceptor; None if its clients are told nothing."""
        acceptor = connection.acceptor
        if acceptor is None:
            return None
        options = acceptor.options(OpenWireAcceptor)
        if not options.update_cluster_clients and not options.rebalance_cluster_clients:
            return None
        found = self.lists.get(acceptor.name)
        if found is None:
            found = AcceptorList(acceptor, self.peers)
            self.lists[acceptor.name] = found
        return found

    def may_be_told(self, connection: OpenWireOutput, peer: PeerBroker) -> bool:
        """Returns whether a client may be told of a broker, and sent there."""
        brokers = self.list_of(connection)
        return brokers is not None and brokers.matches(peer)

    def greet(self, now: int, connection: OpenWireOutput, fault_tolerant: bool) -> None:
        """Tells a client that has logged in."""
        brokers = self.list_of(connection)
        if brokers is None or not can_be_told(connection):
            return
        members = self.peers.members
        if fault_tolerant:
            self.clients[connection.conn] = connection
            self._order(connection)
            target = None if connection.came_back else members.place_at_login(now, connection)
            uri = None if target is None else connection.uri_of_node(target)
            if uri is not None:
                self.send_to(now, connection, uri)
                return
        self._tell(now, connection, brokers)

    def forget(self, conn: int) -> None:
        """Forgets a client that has gone, or was sent elsewhere."""
        self.clients.pop(conn, None)
        self.known.pop(conn, None)
        self.orders.pop(conn, None)

    def send_to(self, now: int, connection: OpenWireOutput, uri: str) -> None:
        """Sends a client to the broker of that URI, with the others as its alternatives (redirect.py)."""
        brokers = self.list_of(connection)
        others = [] if brokers is None else [each for each in brokers.uris(now, connection) if each != uri]
        count = NAMES_FOR_EACH * (len(others) + OWN_URIS)
        names = [f"{uri}?connectionTimeout={TIMEOUT_MS + number}" for number in range(min(count, NAMES_MAX))]
        connection.tell(ConnectionControl(connected_brokers=joined([*names, *others]), rebalance_connection=True))

    def farewell(self, connection: OpenWireOutput) -> None:
        """Tells a client of this node, which stops or leaves, its successor in place of this node, if it has one."""
        brokers = self.list_of(connection)
        if brokers is None or connection.conn not in self.clients:
            return
        successor = self.peers.members.successor(connection)
        uri = None if successor is None else successor.uri_for(scheme_of(connection))
        if successor is not None and uri is not None and brokers.matches(successor):
            own = brokers.own_uri(connection)
            others = [each for each in self.known.get(connection.conn, []) if each not in (uri, own)]
            connection.tell(ConnectionControl(connected_brokers=joined([uri, *others])))

    def on_change(self, now: int) -> None:
        """Tells the clients whose list has changed."""
        self.orders.clear()
        for connection in list(self.clients.values()):
            broker = connection.host.broker
            brokers = self.list_of(connection)
            if brokers is not None and not broker.stopping:
                self._tell(now, connection, brokers)

    def _tell(self, now: int, connection: OpenWireOutput, brokers: AcceptorList) -> None:
        """Tells a client what has changed."""
        uris = brokers.uris(now, connection)
        if len(uris) > 1 and sorted(uris) != sorted(self.known.get(connection.conn, [])):
            self.known[connection.conn] = uris
            connection.tell(ConnectionControl(connected_brokers=joined(uris)))
