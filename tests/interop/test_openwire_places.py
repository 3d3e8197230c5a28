"""Where activemq-client's failover clients are: at their first login, kept from brokers, and when a broker stops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.openwire import CLIENTS
from tests.interop.harness.openwire_clients import OpenWireClients

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
TOLD = "updateClusterClients=true;updateClusterClientsOnRemove=true"
BALANCED = f"{TOLD};rebalanceClusterClients=true"


@pytest.fixture(scope="module", params=CLIENTS)
def jvm(request: pytest.FixtureRequest) -> Iterator[OpenWireClients]:
    with OpenWireClients(request.param) as program:
        yield program


class Three:
    """Three nodes of ours, as a cluster or as a network of brokers with bridges to each other."""

    def __init__(self, brokers: Lineup, kind: str, options: str, only: int = 3) -> None:
        """`options` of the acceptors; their clients are told of the first `only` nodes."""
        if kind == "network":
            self.nodes = [brokers.openwire() for _ in range(3)]
        else:
            self.nodes = brokers.cluster("+".join(["atalanta"] * 3), shaping)
        names = ",".join(node.name for node in self.nodes[:only])
        for node in self.nodes:
            path = node.folder / "etc" / "broker.xml"
            text = path.read_text().replace("protocols=CORE,OPENWIRE<", "protocols=CORE<")
            chosen = f"protocols=CORE,OPENWIRE;{options};updateClusterFilter={names}<"
            path.write_text(text.replace("protocols=CORE<", chosen))
            if kind == "network":
                others = ",".join(f"tcp://127.0.0.1:{other.port}" for other in self.nodes if other is not node)
                user = 'userName = "neighbour"\npassword = "neighbour"\n'
                (node.folder / "etc" / "atalanta.toml").write_text(f'[networks.NC]\nuri = "static:({others})"\n{user}')
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.await_ready()
        met = "network_bridge_connected" if kind == "network" else " member "
        until("they have met", lambda: all(node.log.read_text().count(met) >= 2 for node in self.nodes), 30)

    def url(self, count: int = 3, options: str = "") -> str:
        """The client's URL with the first nodes."""
        places = ",".join(f"tcp://127.0.0.1:{node.port}" for node in self.nodes[:count])
        return f"failover:({places})?maxReconnectDelay=1000{options}"


def shaping(index: int, ports: list[int]) -> Shape:
    return Shape(Cluster(tuple(port for port in ports if port != ports[index])), own="rebalance-settle-time = 1000\n")


@pytest.mark.parametrize("kind", ["network", "cluster"])
def test_the_clients_of_a_node_that_stops_are_at_the_others(brokers: Lineup, jvm: OpenWireClients, kind: str) -> None:
    """They know the others by what they were told. Then the next one stops, and the last has all."""
    three = Three(brokers, kind, TOLD)
    first, second, third = three.nodes
    jvm.open(kind, three.url(1), 8, 50)
    until("all are told", lambda: jvm.told(kind, *three.nodes)[:3] == [8, 8, 8], 30)
    first.stop()
    until("they are at the others", lambda: sum(jvm.where(kind, second, third)[:2]) == 8, 30)
    second.stop()
    until("they are at the last one", lambda: jvm.where(kind, *three.nodes) == [0, 0, 8, 0], 30)
    jvm.quiet(kind)
    assert jvm.counts(kind)["failures"] == []
    close(jvm, kind, three)


@pytest.mark.parametrize("kind", ["network", "cluster"])
def test_clients_whose_urls_begin_alike_are_spread_at_once(brokers: Lineup, jvm: OpenWireClients, kind: str) -> None:
    three = Three(brokers, kind, BALANCED)
    jvm.open(kind, three.url(options="&randomize=false"), 30)
    assert 6 <= min(jvm.where(kind, *three.nodes)[:3]) and max(jvm.where(kind, *three.nodes)[:3]) <= 12
    three.nodes[0].stop()
    until("the others have all", lambda: sum(jvm.where(kind, *three.nodes)[1:3]) == 30, 30)
    three.nodes[0].start()
    until("they are spread again", lambda: max(jvm.where(kind, *three.nodes)[:3]) <= 12, 60)
    close(jvm, kind, three)


@pytest.mark.parametrize("kind", ["network", "cluster"])
def test_nobody_is_sent_to_a_broker_that_the_filter_leaves_out(
    brokers: Lineup, jvm: OpenWireClients, kind: str
) -> None:
    three = Three(brokers, kind, BALANCED, only=2)
    for node in three.nodes[1:]:
        node.stop()
    jvm.open(kind, three.url(1), 20)
    for node in three.nodes[1:]:
        node.start()
    until("they are spread over two", lambda: min(jvm.where(kind, *three.nodes)[:2]) >= 8, 60)
    assert jvm.where(kind, *three.nodes)[2] == 0
    assert jvm.told(kind, *three.nodes)[2] == 0
    close(jvm, kind, three)


def close(jvm: OpenWireClients, group: str, three: Three) -> None:
    jvm.close_all(group)
    for node in three.nodes:
        node.close()
