"""A node in two clusters keeps the clients of each balanced over the members of that one."""

from __future__ import annotations

from atalanta.cluster.balancing.balancers import Balancers
from atalanta.cluster.balancing.management import BalanceOperations
from atalanta.cluster.balancing.movable import is_client
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.core.server.connection import CoreConnection
from tests.cluster.balancing.balancing_rig import at_node, known
from tests.cluster.balancing.constant_clients import Accounts, roam
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.several_clusters_rig import WEST_PORT, make


def balancers(host: Host) -> Balancers:
    part = node_of(host).parts["rebalance"]
    assert isinstance(part, Balancers)
    return part


def test_the_clients_of_each_cluster_go_to_its_own_members(rig: Rig) -> None:
    hosts = make(rig)
    accounts = Accounts()
    eastern = roam(rig, "n0", 6, accounts, known, period_ns=0, queue="east.orders")
    western = roam(rig, "n0", 10, accounts, known, period_ns=0, queue="west.orders", port=WEST_PORT)
    assert at_node(eastern + western, hosts) == [16, 0, 0]
    rig.until(lambda: at_node(eastern, hosts) == [3, 3, 0])
    rig.until(lambda: at_node(western, hosts) == [5, 0, 5])
    assert {one.port for one in western if one.target == "n0"} == {WEST_PORT}
    rig.run(30)
    assert accounts.redirects == 8
    assert [each.clients for each in balancers(hosts[0]).by_number] == [3, 5]


def test_clients_of_the_outer_members_go_to_the_right_door_of_the_one_in_the_middle(rig: Rig) -> None:
    hosts = make(rig)
    accounts = Accounts()
    western = roam(rig, "n2", 6, accounts, known, period_ns=0, queue="west.orders")
    rig.until(lambda: at_node(western, hosts) == [3, 0, 3])
    assert {one.port for one in western if one.target == "n0"} == {WEST_PORT}
    rig.run(30)
    assert accounts.redirects == 3


def test_an_operator_sees_and_moves_the_clients_of_the_cluster_whose_door_he_came_by(rig: Rig) -> None:
    hosts = make(rig)
    for host in hosts:
        for each in balancers(host).by_number:
            each.own.rebalance = False
    accounts = Accounts()
    eastern = roam(rig, "n0", 4, accounts, known, period_ns=0, queue="east.orders")
    western = roam(rig, "n0", 4, accounts, known, period_ns=0, queue="west.orders", port=WEST_PORT)
    rig.run(6)
    node = node_of(hosts[0])
    balance = BalanceOperations(balancers(hosts[0]))
    for name, peer in (("east", "n1"), ("west", "n2")):
        asking = next(
            conn
            for conn, connection in node.connections.items()
            if isinstance(connection, CoreConnection)
            and is_client(connection)
            and connection.acceptor is not None
            and connection.acceptor.name == name
        )
        told = balance.describe(rig.world.now, True, asking)
        assert (told["cluster"], told["clients"]) == (name, 3)
        assert told["moves"] == [
            {"node": f"node-{peer[1]}", "at": f"{peer}:{PORT}", "clients": 1, "able": 1}
        ]
        if name == "west":
            balance.balancers.of(asking).ask(rig.world.now)
    rig.until(lambda: at_node(western, hosts) == [2, 0, 2])
    rig.run(10)
    assert at_node(eastern, hosts) == [4, 0, 0]
