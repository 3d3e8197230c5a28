"""Members by DNS: addresses and SRV records, looked up again and again."""

from __future__ import annotations

import copy

import pytest

from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.cluster.discovery.dns import dns_names
from atalanta.cluster.native_config import OwnSettings
from atalanta.node.config import Ports
from atalanta.node.node import Node
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.endpoint import ConnectorConfig
from atalanta.wire.uri import UriError
from tests.cluster.cluster_rig import Rig, cluster_of, node_of

PERIOD_MS = 1_000


def node(rig: Rig, names: str) -> Host:
    """A node without static connectors and discovery group: an empty <static-connectors/>."""
    host = rig.node(peers=[], change=lambda config: config.static_connectors.clear())
    make = host.make_node

    def made(ports: Ports) -> Node:
        config = make(ports).config
        config.own.dns_discovery = names
        config.own.dns_discovery_period_ms = PERIOD_MS
        return Node(config, ports)

    host.make_node = made
    return host


def members(host: Host) -> list[str]:
    return sorted(cluster_of(host).topology.members)


@pytest.mark.parametrize("names", ["tcp://headless:61616", "srv://_core._tcp.headless"])
def test_nodes_of_a_headless_service_form_a_cluster(rig: Rig, names: str) -> None:
    port = 0 if names.startswith("tcp") else PORT
    rig.network.names = {
        "headless": [(f"n{i}", 0) for i in range(3)],
        "_core._tcp.headless": [(f"n{i}", port) for i in range(3)],
    }
    hosts = [node(rig, names) for _ in range(3)]
    rig.form(*hosts)
    assert [members(host) for host in hosts] == [["node-0", "node-1", "node-2"]] * 3
    assert rig.events(f"places=n0:{PORT} n1:{PORT} n2:{PORT}")
    assert not rig.events("duplicate_node_id"), (
        "a node that is among its own addresses is no copy of itself"
    )


def test_a_node_that_appears_in_the_name_later_is_found_and_one_that_goes_is_forgotten(rig: Rig) -> None:
    rig.network.names = {"headless": [("n0", 0)]}
    hosts = [node(rig, "tcp://headless:61616"), rig.node(peers=[1])]
    for host in hosts:
        host.start()
    rig.run(3)
    assert members(hosts[0]) == ["node-0"]
    rig.network.names["headless"] = [("n0", 0), ("n1", 0)]
    rig.run(1 + PERIOD_MS / 1000)
    assert members(hosts[0]) == ["node-0", "node-1"]
    hosts[1].crash()
    rig.network.names["headless"] = [("n0", 0)]
    rig.run(2)
    assert not [name for name in cluster_of(hosts[0]).scanner.targets if name.startswith("dns/n1")]


def test_while_the_dns_is_out_the_last_answer_counts_and_it_is_told_once(rig: Rig) -> None:
    rig.network.names = {"headless": [("n0", 0), ("n1", 0)]}
    hosts = [node(rig, "tcp://headless:61616") for _ in range(2)]
    rig.form(*hosts)
    rig.network.names_fail = "no answer within 5 s"
    hosts[1].crash()
    rig.run(5)
    hosts[1].start()
    rig.formed()
    assert members(hosts[0]) == ["node-0", "node-1"]
    told = [line for line in rig.events("dns_lookup_failed") if " n0 " in line]
    assert len(told) == 1 and "no answer within 5 s" in told[0]
    rig.network.names_fail = ""
    rig.run(2)
    assert len([line for line in rig.events("dns_answer") if " n0 " in line]) == 2


def test_a_name_that_nobody_knows_yet_is_asked_again(rig: Rig) -> None:
    hosts = [node(rig, "tcp://headless:61616") for _ in range(2)]
    for host in hosts:
        host.start()
    rig.run(3)
    assert rig.events("dns_lookup_failed name=headless why=headless is not known")
    rig.network.names = {"headless": [("n0", 0), ("n1", 0)]}
    rig.formed()


def test_after_a_stop_nobody_is_looked_up(rig: Rig) -> None:
    rig.network.names = {"headless": [("n0", 0)]}
    host = node(rig, "tcp://headless:61616")
    host.start()
    rig.run(2)
    stopped = node_of(host)
    host.stop()
    stopped.on_timer(rig.world.now, "dns.0")
    stopped.on_resolved(rig.world.now, "dns.0", [("n9", 1)], "")
    assert "dns/n9:1" not in stopped.clusters.connections[0].scanner.targets  # type: ignore[union-attr]


def test_names_are_written_as_addresses() -> None:
    found = dns_names("tcp://a, tcp://b:5 ,srv://_core._tcp.c.svc.cluster.local")
    assert [(each.name, each.port) for each in found] == [
        ("a", 61616),
        ("b", 5),
        ("_core._tcp.c.svc.cluster.local", 0),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no name"),
        ("headless", "tcp://"),
        ("udp://a:1", "not supported here"),
        ("srv://_core._tcp.a:61616", "ports of their own"),
        ("tcp://a?x=y", "takes no parameters"),
    ],
)
def test_what_is_no_name(text: str, says: str) -> None:
    with pytest.raises(UriError, match=says):
        dns_names(text)


def test_each_cluster_connection_has_names_of_its_own(rig: Rig) -> None:
    """n0 is in two clusters: n1 is found by the name of the first, n2 by that of the second."""
    rig.network.names = {"inner": [("n1", 0)], "outer": [("n2", 0)]}

    def whole(settings: ClusterSettings) -> None:
        second = copy.deepcopy(settings.cluster_connections[0])
        second.name = "second"
        second.address = "prices"
        settings.cluster_connections[0].address = "orders"
        settings.connectors["second"] = ConnectorConfig("second", "n0", 7001)
        second.connector = "second"
        settings.cluster_connections.append(second)

    own = OwnSettings(dns_by_cluster={"test": "tcp://inner:61616", "second": "tcp://outer:61616"})
    first = rig.node(peers=[], whole=whole, doors={"second": 7001}, own=own, change=nothing_static)
    others = [rig.node(peers=[], change=nothing_static) for _ in range(2)]
    for host in (first, *others):
        host.start()
    rig.run(5)
    clusters = node_of(first).clusters
    assert clusters is not None
    found = [sorted(cluster.topology.members) for cluster in clusters.connections]
    assert found == [["node-0", "node-1"], ["node-0", "node-2"]]
    assert all(cluster.has_names for cluster in clusters.connections)


def nothing_static(config: ClusterConnectionConfig) -> None:
    config.static_connectors.clear()
