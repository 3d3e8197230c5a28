"""activemq-client's failover clients in clusters: told of the members, balanced, kept in their zones."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS
from tests.interop.harness.openwire_clients import OpenWireClients
from tests.interop.running_nodes import clients

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
Nodes = list[BrokerProcess]
BALANCED = "updateClusterClients=true;rebalanceClusterClients=true"
ZONES = """zone = "{zone}"
zone-stability-time = 3000
rebalance-settle-time = 1000
[zones.east]
client-ids = "east*"
[zones.west]
client-ids = "west*"
"""


@pytest.fixture(scope="module", params=CLIENTS)
def jvm(request: pytest.FixtureRequest) -> Iterator[OpenWireClients]:
    with OpenWireClients(request.param) as program:
        yield program


def nodes_of(brokers: Lineup, count: int, options: str = BALANCED, zones: str = "") -> Nodes:
    """Configured nodes of one cluster that serve OpenWire with these options; a letter of `zones` for each."""

    def shaping(index: int, ports: list[int]) -> Shape:
        own = "rebalance-settle-time = 1000\n"
        if zones:
            own = ZONES.format(zone={"e": "east", "w": "west"}[zones[index]])
        peers = tuple(port for port in ports if port != ports[index])
        return Shape(Cluster(peers), own=own)

    nodes = brokers.cluster("+".join(["atalanta"] * count), shaping)
    for node in nodes:
        path = node.folder / "etc" / "broker.xml"
        path.write_text(path.read_text().replace("protocols=CORE<", f"protocols=CORE,OPENWIRE;{options}<"))
    return nodes


def started(nodes: Nodes) -> Nodes:
    for node in nodes:
        node.launch()
    for node in nodes:
        node.await_ready()
    return nodes


def url(nodes: Nodes, options: str = "") -> str:
    """The client's URL with all these nodes."""
    places = ",".join(f"tcp://127.0.0.1:{node.port}" for node in nodes)
    return f"failover:({places})?maxReconnectDelay=1000" + (f"&{options}" if options else "")


def close(jvm: OpenWireClients, group: str, nodes: Nodes) -> None:
    jvm.close_all(group)
    for node in nodes:
        node.close()


@pytest.mark.parametrize("options", ["randomize=true", "randomize=false", "backup=true", "priorityBackup=true"])
def test_clients_spread_after_a_second_node_joins(brokers: Lineup, jvm: OpenWireClients, options: str) -> None:
    first, second = nodes = nodes_of(brokers, 2)
    first.start()
    jvm.open("spread", url([first], options), 10)
    second.start()
    until("half of them are at the other", lambda: jvm.where("spread", *nodes) == [5, 5, 0], 60)
    until("each is told of both", lambda: jvm.told("spread", *nodes) == [10, 10, 0])
    close(jvm, "spread", nodes)


def test_the_original_is_stopped_and_started(brokers: Lineup, jvm: OpenWireClients) -> None:
    """Its clients know the other one by what they were told, and the original from the other one."""
    first, second = nodes = nodes_of(brokers, 2)
    started(nodes)
    until("they know each other", lambda: both_told(jvm, nodes), 30)
    jvm.open("original", url([first]), 8, 50)
    until("they are spread", lambda: jvm.where("original", *nodes) == [4, 4, 0], 60)
    first.stop()
    until("all are at the second", lambda: jvm.where("original", *nodes) == [0, 8, 0], 30)
    first.start()
    until("they are spread again", lambda: jvm.where("original", *nodes) == [4, 4, 0], 60)
    settled(jvm, "original")
    close(jvm, "original", nodes)


def both_told(jvm: OpenWireClients, nodes: Nodes) -> bool:
    probe = f"probe{time.monotonic_ns()}"  # the client id of the one before may still be in use
    jvm.open(probe, url(nodes[:1]), 1)
    told = jvm.told(probe, *nodes)
    jvm.close_all(probe)
    return told[: len(nodes)] == [1] * len(nodes)


def settled(jvm: OpenWireClients, group: str) -> None:
    """Everything that was sent has arrived, and no application saw a failure."""
    jvm.quiet(group)
    until("all is received", lambda: jvm.counts(group)["lost"] == 0, 60)
    counts = jvm.counts(group)
    assert counts["sent"] > 100
    assert counts["failures"] == []


def test_only_brokers_whose_name_passes_the_filter(brokers: Lineup, jvm: OpenWireClients) -> None:
    nodes = nodes_of(brokers, 3)
    for node in nodes:
        path = node.folder / "etc" / "broker.xml"
        allowed = f"{nodes[0].name},{nodes[1].name[:-1]}[{nodes[1].name[-1]}]"
        path.write_text(path.read_text().replace(BALANCED, f"updateClusterClients=true;updateClusterFilter={allowed}"))
    started(nodes)
    until("two are told", lambda: both_told(jvm, nodes[:2]), 30)
    jvm.open("filter", url(nodes[:1]), 4)
    nodes[0].stop()
    until("all are at the second", lambda: jvm.where("filter", *nodes) == [0, 4, 0, 0], 30)
    assert jvm.told("filter", *nodes)[2] == 0
    close(jvm, "filter", nodes)


@pytest.mark.parametrize("on_remove", [False, True])
def test_a_node_that_has_gone_is_told_on_remove(brokers: Lineup, jvm: OpenWireClients, on_remove: bool) -> None:
    nodes = nodes_of(brokers, 3, f"updateClusterClients=true;updateClusterClientsOnRemove={str(on_remove).lower()}")
    started(nodes)
    jvm.open("remove", url(nodes[:1]), 3)
    until("all are told", lambda: jvm.told("remove", *nodes) == [3, 3, 3, 0], 30)
    nodes[1].stop()
    if on_remove:
        until("its end is told", lambda: jvm.told("remove", *nodes) == [3, 0, 3, 0], 30)
    nodes[1].start()
    until("all are told", lambda: jvm.told("remove", *nodes) == [3, 3, 3, 0], 30)
    close(jvm, "remove", nodes)


def test_thirty_clients_are_balanced_after_a_rolling_restart(brokers: Lineup, jvm: OpenWireClients) -> None:
    nodes = started(nodes_of(brokers, 3))
    until("they know each other", lambda: both_told(jvm, nodes), 30)
    jvm.open("rolling", url(nodes), 30, 200)
    for node in nodes:
        node.stop()
        until("the others have all", lambda: sum(jvm.where("rolling", *nodes)[:3]) == 30, 30)
        node.start()

    def balanced() -> bool:
        found = jvm.where("rolling", *nodes)
        return sum(found[:3]) == 30 and max(found[:3]) <= 12

    until("each has at most 1.2 times the mean", balanced, 30)
    until("the nodes count them", lambda: sum(clients(node) for node in nodes) == 30)
    settled(jvm, "rolling")
    close(jvm, "rolling", nodes)


@pytest.mark.parametrize("randomize", ["true", "false"])
def test_zones_with_priority_backup(brokers: Lineup, jvm: OpenWireClients, randomize: str) -> None:
    """Two nodes in the east, one in the west: balanced inside the east, in the west while that is away, and back."""
    nodes = started(nodes_of(brokers, 3, zones="eew"))
    until("they know each other", lambda: both_told(jvm, nodes), 30)
    east = ",".join(f"tcp://127.0.0.1:{node.port}" for node in nodes[:2])
    options = f"randomize={randomize}&priorityBackup=true&priorityURIs={east}"
    jvm.open("east", url(nodes, options), 8, 200)
    jvm.open("west", url([nodes[2], *nodes[:2]], f"randomize={randomize}&priorityBackup=true"), 4)
    home = [4, 4, 0, 0]
    until("the east is balanced", lambda: jvm.where("east", *nodes) == home, 60)
    until("the west has its own", lambda: jvm.where("west", *nodes) == [0, 0, 4, 0], 30)
    nodes[0].stop()
    until("they stay in the east", lambda: jvm.where("east", *nodes) == [0, 8, 0, 0], 30)
    nodes[1].kill()
    until("they are in the west", lambda: jvm.where("east", *nodes) == [0, 0, 8, 0], 30)
    for node in nodes[:2]:
        node.start()
    until("they are back, and balanced", lambda: jvm.where("east", *nodes) == home, 90)
    until("the west has its own", lambda: jvm.where("west", *nodes) == [0, 0, 4, 0], 30)
    settled(jvm, "east")
    jvm.close_all("west")
    close(jvm, "east", nodes)


def test_zones_of_clients_without_priority_backup(brokers: Lineup, jvm: OpenWireClients) -> None:
    nodes = started(nodes_of(brokers, 3, zones="eew"))
    until("they know each other", lambda: both_told(jvm, nodes), 30)
    jvm.open("east", url(nodes), 8, 200)
    until("the east is balanced", lambda: jvm.where("east", *nodes) == [4, 4, 0, 0], 60)
    for node in nodes[:2]:
        node.stop()
    until("they are in the west", lambda: jvm.where("east", *nodes) == [0, 0, 8, 0], 30)
    for node in nodes[:2]:
        node.start()
    until("they are back, and balanced", lambda: jvm.where("east", *nodes) == [4, 4, 0, 0], 90)
    settled(jvm, "east")
    close(jvm, "east", nodes)
