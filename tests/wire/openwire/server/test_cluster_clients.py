"""What failover clients are told of other brokers, at the login and later, and how they are sent to one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atalanta.config.acceptors import parse_acceptor
from atalanta.wire.connection import ClientConnection
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.openwire.commands.connections import ConnectionControl, ConnectionInfo
from atalanta.wire.openwire.commands.identifiers import ConnectionId, SessionId
from atalanta.wire.openwire.commands.producers import SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.server.connection import OpenWireConnection
from atalanta.wire.openwire.server.peer_brokers import ClusterMembers, PeerBroker, ToldMembers
from atalanta.wire.uri import UriError
from tests.wire.openwire.server.openwire_rig import OPTIONS, OpenWireClient, OpenWireServer

OWN = "tcp://me:61616"
A, B, C = (PeerBroker(name, (f"tcp://{name}:61616", f"ssl://{name}:61617")) for name in ("a", "b", "c"))


class Members(ClusterMembers):
    """A cluster with a plan; `near` and `far` are its members."""

    def __init__(self, *near: PeerBroker, far: tuple[PeerBroker, ...] = (), planned: bool = True) -> None:
        self.planned = planned
        self.near, self.far = list(near), list(far)
        self.sends_to: str | None = None

    def place_at_login(self, now: int, connection: ClientConnection) -> str | None:
        return self.sends_to

    def own(self, connection: ClientConnection) -> PeerBroker | None:
        return PeerBroker("me", (OWN, "ssl://me:61617"))

    def told_to(self, now: int, connection: ClientConnection) -> ToldMembers:
        return ToldMembers(self.near, self.far, True)

    def of_node(self, connection: ClientConnection, node_id: str) -> PeerBroker | None:
        return next((each for each in self.near if each.name == node_id), None)


def serving(options: str, members: ClusterMembers | None = None) -> OpenWireServer:
    server = OpenWireServer(acceptor=parse_acceptor("a", f"tcp://0.0.0.0:61616?{options}"))
    if members is not None:
        server.openwire.node_clients.peers.members = members
    return server


def logged_in(
    server: OpenWireServer, name: str, version: int = 12, **more: bool
) -> tuple[OpenWireClient, list[ConnectionControl]]:
    """A failover client, and what it was told before the answer to its login."""
    client = OpenWireClient(server, name, replace(OPTIONS, version=version))
    client.greet()
    info = ConnectionInfo(ConnectionId(client.id), name, "admin", "admin", manageable=True, fault_tolerant=True)
    for key, value in more.items():
        setattr(info, key, value)
    client.send(info, True)
    server.verify()
    *told, answer = client.output()
    assert type(answer) is Response
    assert all(isinstance(each, ConnectionControl) for each in told)
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    return client, told  # type: ignore[return-value]


def told(client: OpenWireClient) -> list[str]:
    return [each.connected_brokers or "" for each in client.of_kind(ConnectionControl)]


def test_a_client_is_told_of_the_members_before_the_answer_to_its_login() -> None:
    server = serving("updateClusterClients=true", Members(A, B))
    _, (control,) = logged_in(server, "x")
    assert control.connected_brokers == f"{OWN},tcp://a:61616,tcp://b:61616"
    assert not control.rebalance_connection


def test_nobody_is_told_without_the_option_and_old_clients_never_are() -> None:
    assert logged_in(serving("", Members(A)), "x")[1] == []
    assert logged_in(serving("updateClusterClients=true", Members(A)), "x", version=5)[1] == []
    assert logged_in(serving("updateClusterClients=true", Members(A)), "x", manageable=False)[1] == []


def test_each_client_has_another_broker_in_front_where_clients_are_balanced() -> None:
    server = serving("rebalanceClusterClients=true", Members(A, B, far=(C,)))
    lists = [logged_in(server, f"x{number}")[1][0].connected_brokers for number in range(3)]
    assert [(text or "").split(",")[0] for text in lists] == [OWN, "tcp://a:61616", "tcp://b:61616"]
    assert all((text or "").endswith(",tcp://c:61616") for text in lists)


def test_only_brokers_whose_name_passes_the_filter_are_told() -> None:
    server = serving("updateClusterClients=true&updateClusterFilter=a.*,%20c", Members(A, B, C))
    assert logged_in(server, "x")[1][0].connected_brokers == f"{OWN},tcp://a:61616,tcp://c:61616"
    with pytest.raises(UriError, match="updateClusterFilter: '\\*a' is no regular expression"):
        parse_acceptor("a", "tcp://h:1?updateClusterFilter=b,*a")


def test_a_broker_that_is_alone_or_stops_is_no_news() -> None:
    """A client that held a list of this broker alone would wait for it, although others are there."""
    members = Members()
    server = serving("updateClusterClients=true&updateClusterClientsOnRemove=true", members)
    client, first = logged_in(server, "x")
    assert first == []
    peers = server.openwire.node_clients.peers
    members.near += [A, B]
    peers.changed(server.now)
    assert told(client) == [f"{OWN},tcp://a:61616,tcp://b:61616"]
    members.near.clear()
    peers.changed(server.now)
    assert told(client) == []
    members.near.append(A)
    server.broker.stop()
    peers.changed(server.now)
    assert told(client) == []


@pytest.mark.parametrize("on_remove", [False, True])
def test_news_come_at_once_and_losses_where_they_are_wanted(on_remove: bool) -> None:
    members = Members(A)
    option = "&updateClusterClientsOnRemove=true" if on_remove else ""
    server = serving(f"updateClusterClients=true{option}", members)
    peers = server.openwire.node_clients.peers
    client, _ = logged_in(server, "x")
    plain, _ = logged_in(server, "y", fault_tolerant=False)
    members.near.append(B)
    peers.changed(server.now)
    assert told(client) == [f"{OWN},tcp://a:61616,tcp://b:61616"]
    peers.changed(server.now)
    assert told(client) == []
    members.near.remove(A)
    peers.changed(server.now)
    assert told(client) == ([f"{OWN},tcp://b:61616"] if on_remove else [])
    assert told(plain) == []


def test_neighbours_of_a_network_are_told_and_a_client_has_its_place_in_front() -> None:
    server = serving("rebalanceClusterClients=true&updateClusterFilter=n|c")
    clients = server.openwire.node_clients.cluster_clients
    peers = server.openwire.node_clients.peers
    peers.tell(server.now, "NC", PeerBroker("n", ("tcp://n:61616?transport.useInactivityMonitor=false",)))
    peers.tell(server.now, "NO", A)
    placed: dict[str, list[int]] = {}
    for number in range(20):
        client, (control,) = logged_in(server, f"x{number}")
        assert not control.rebalance_connection and control.connected_brokers is not None
        first, *others = control.connected_brokers.split(",")
        assert "tcp://n:61616" in (first, *others) and len(others) == 1
        placed.setdefault(first, []).append(client.conn)
    at_neighbour = placed.pop("tcp://n:61616")
    (own,) = placed.values()
    assert 4 <= len(own) <= 16
    assert [conn for conn, order in clients.balanced().items() if order == ["NC", ""]] == at_neighbour
    peers.tell(server.now, "NC2", C)
    (news,) = client.of_kind(ConnectionControl)
    assert "tcp://c:61616" in (news.connected_brokers or "")
    assert {key for order in clients.balanced().values() for key in order} == {"", "NC", "NC2"}


def test_a_neighbour_is_told_of_the_acceptor_for_clients_and_not_of_the_one_for_its_bridge() -> None:
    """Its own clients are told of this node by that address (BrokerService.getDefaultSocketURIString of Classic)."""
    bridges = parse_acceptor("bridges", "tcp://0.0.0.0:61627")
    clients = parse_acceptor("clients", "tcp://0.0.0.0:61616?updateClusterClients=true")
    server = OpenWireServer(acceptor=bridges)
    server.openwire.node_clients.peers.use_acceptors([bridges, clients])
    client = OpenWireClient(server, "x")
    client.greet()
    assert (client.broker.broker_url or "").endswith(":61616")
    server.openwire.node_clients.peers.use_acceptors([bridges])
    other = OpenWireClient(server, "y")
    other.greet()
    assert (other.broker.broker_url or "").endswith(":61627")


def test_a_client_is_sent_to_its_place_at_its_first_login_only() -> None:
    members = Members(A, B)
    members.sends_to = "b"
    server = serving("rebalanceClusterClients=true", members)
    _, (order,) = logged_in(server, "x")
    assert order.rebalance_connection and (order.connected_brokers or "").startswith("tcp://b:61616?")
    _, (control,) = logged_in(server, "y", failover_reconnect=True)
    assert not control.rebalance_connection
    _, (control,) = logged_in(server, "z", fault_tolerant=False)
    assert not control.rebalance_connection


def connection_of(server: OpenWireServer, client: OpenWireClient) -> OpenWireConnection:
    found = server.connection(client.conn)
    assert isinstance(found, OpenWireConnection)
    return found


def moved(server: OpenWireServer, client: OpenWireClient) -> list[ConnectionControl]:
    """Sends a client to the member `a`; returns its orders."""
    connection = connection_of(server, client)
    assert connection.can_move() is None and connection.can_reach("a") and not connection.can_reach("z")
    redirect = connection.begin_redirect(server.now, "a")
    assert redirect.unwritten() is None
    redirect.send(server.now, TransportConfiguration(""), [])
    return client.of_kind(ConnectionControl)


def test_the_order_names_the_target_often_and_what_waits_for_an_answer_is_not_executed_behind_it() -> None:
    server = serving("rebalanceClusterClients=true", Members(A, B))
    client, _ = logged_in(server, "x")
    (order,) = moved(server, client)
    assert order.rebalance_connection and not order.reconnect_to
    brokers = (order.connected_brokers or "").split(",")
    names = [each for each in brokers if each.partition("?")[0] == "tcp://a:61616"]
    assert brokers[: len(names)] == names and len(set(names)) == len(names) == 20
    assert sorted(brokers[len(names) :]) == ["tcp://b:61616", OWN]
    client.send(client.message("repeated there", "q"), True)
    client.send(client.message("one way", "q"))
    assert client.output() == []
    other = server.openwire_client("reader")
    other.consume("q")
    assert other.texts() == ["one way"]


def test_a_client_that_has_come_back_is_known() -> None:
    server = serving("rebalanceClusterClients=true", Members(A))
    client, _ = logged_in(server, "x")
    assert connection_of(server, client).came_from == ""
    moved(server, client)
    server.lost(client.conn)
    again, _ = logged_in(server, "x", failover_reconnect=True)
    assert connection_of(server, again).came_from == server.broker.node_id


def test_why_a_client_stays() -> None:
    server = serving("updateClusterClients=true", Members(A))
    client, _ = logged_in(server, "x")
    assert connection_of(server, client).can_move() == "uses an acceptor without rebalanceClusterClients"
    server = serving("rebalanceClusterClients=true", Members(A))
    plain, _ = logged_in(server, "x", fault_tolerant=False)
    assert connection_of(server, plain).can_move() == "has no failover: in its URL"
    client, _ = logged_in(server, "y")
    client.temporary_queue()
    assert connection_of(server, client).can_move() == "has temporary destinations"


def test_a_response_of_a_client_is_ignored() -> None:
    """FailoverTransport sends one behind a reconnect for a command that was under way."""
    server = serving("")
    client, _ = logged_in(server, "x")
    client.send(Response(7))
    assert client.output() == []
    client.consume("q")


def test_a_list_that_is_too_long_for_a_text_is_cut() -> None:
    many = [PeerBroker(f"b{number}", (f"tcp://{'x' * 200}{number:03}:1",)) for number in range(300)]
    server = serving("rebalanceClusterClients=true", Members(A, *many))
    client, (control,) = logged_in(server, "x")
    assert 25_000 < len(control.connected_brokers or "") <= 30_000
    (order,) = moved(server, client)
    assert (order.connected_brokers or "").count("tcp://a:61616?") == 60
