"""Zones: JMS connections whose zone the node decides stay in it, leave it only when it is away, and come back."""

from __future__ import annotations

import pytest

from atalanta.client import connect, run
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.fleet import Fleet
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.running_nodes import clients

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CONNECTIONS = 12
# First where it was or was told to go, then any other for ever. A client that dials a node while that is killed waits
# until callTimeout for the answer to CHECK_FOR_FAILOVER.
AGAIN = "ha=true&reconnectAttempts=1&failoverAttempts=-1&retryInterval=100&callTimeout=5000"
TOML = """zone = "{zone}"
zone-stability-time = 3000
rebalance-any-client = true
rebalance-settle-time = 1000
[zones.east]
users = "admin"
{more}
"""


def test_a_rolling_restart_the_loss_of_a_zone_and_its_return(brokers: Lineup) -> None:
    def shaping(index: int, ports: list[int]) -> Shape:
        peers = tuple(port for port in ports if port != ports[index])
        zone = "west" if index == 2 else "east"
        return Shape(Cluster(peers), own=TOML.format(zone=zone, more=""))

    nodes = brokers.cluster("atalanta+atalanta+atalanta", shaping)
    for node in nodes:
        node.launch()
    for node in nodes:
        node.await_ready()
    know_each_other(nodes)
    east, west = nodes[:2], nodes[2]

    def at_home() -> bool:
        counts = [clients(node) for node in east]
        return sum(counts) == CONNECTIONS and max(counts) <= 8 and clients(west) == 0

    with Fleet(nodes, AGAIN, "zones", CONNECTIONS, 100) as fleet:
        until("all are in the east", at_home, 40)
        for node in nodes:
            node.stop()
            until("the others have all", lambda: total(nodes) == CONNECTIONS)
            node.start()
            know_each_other(nodes)
            until("all are in the east after a restart", at_home, 60)
        for node in east:
            node.kill()
        until("all are in the west", lambda: clients(west) == CONNECTIONS, 40)
        for node in east:
            node.start()
        know_each_other(nodes)
        until("all are back in the east", at_home, 60)
        before = fleet.counts()
        fleet.quiet()
        until("all is received", lambda: fleet.counts().lost == 0)
        # A node that was killed does not know what it had delivered: messages without a confirmed acknowledgement come
        # again, and are not marked.
        counts = fleet.counts()
        assert counts.confirmed > 500
        assert counts.failures == before.failures
    for node in nodes:
        node.close()


def know_each_other(nodes: list[BrokerProcess]) -> None:
    """Asks by a client that accepts no other node: a JMS connection without reconnectAttempts would fail."""

    async def members(node: BrokerProcess) -> int:
        async with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as asking:
            await asking.management().get("broker", "NodeID")
            return len(asking.topology)

    until("all know all", lambda: all(run(members(node)) == len(nodes) for node in nodes))


def total(nodes: list[BrokerProcess]) -> int:
    return sum(clients(node) for node in nodes if node.running)


def test_a_newcomer_is_sent_to_the_real_member_of_its_zone(brokers: Lineup, jms: Jms) -> None:
    """And stays with us while that is away."""

    def shaping(index: int, ports: list[int]) -> Shape:
        own = TOML.format(zone="west", more=f'members = "127.0.0.1:{ports[0]}"')
        return Shape(Cluster((ports[1 - index],)), own=own)

    real, ours = brokers.cluster("artemis+atalanta", shaping)
    for node in (real, ours):
        node.start()
    know_each_other([real, ours])
    url = f"tcp://127.0.0.1:{ours.port}?{AGAIN}&useTopologyForLoadBalancing=false"
    until("the zone counts", lambda: redirected(jms, ours, url), 20)
    jms("open", "there", url, USER, PASSWORD)
    jms.consumer("there.c", "there", "queue:zones.there")
    until("it is at the real node", lambda: jms.queue(real, "zones.there")[2] == 1)
    assert clients(ours) == 0
    real.stop()
    until("it has come back", lambda: clients(ours) == 1)
    jms.close_all("there")
    for node in (real, ours):
        node.close()


def redirected(jms: Jms, node: BrokerProcess, url: str) -> bool:
    """Returns whether a new connection to the node is sent elsewhere."""
    before = node.log.read_text().count("client_redirected")
    jms("open", "probe", url, USER, PASSWORD)
    jms.close_all("probe")
    return node.log.read_text().count("client_redirected") > before
