"""Restarts and takeovers in a row under real JMS clients with scheduled, expiring and grouped messages.

Nothing comes before its time, nothing that lives longer than its way is lost, and what lives shorter expires: the clock
of a successor is as right as that of its predecessor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atalanta.client.blocking import connect
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.instants import BRIEF, Instants
from tests.interop.harness.jms import PASSWORD, USER, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS
from tests.interop.harness.replicated_group import OPTIONS, ReplicatedGroup, hand_over, role

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SHARED = "<ha-policy><shared-store>{member}</shared-store></ha-policy>"
MEMBERS = ("<primary/>", "<backup><allow-failback>false</allow-failback></backup>")
TAKEOVERS = 6
LEASE_MS = 1_000  # so the clock would run ahead by six seconds, and the delays are shorter
PROTOCOLS = ("core", "openwire")


def clients_of(protocol: str, nodes: list[BrokerProcess]) -> Instants:
    """Clients that know the URLs of all these nodes."""
    servers = ",".join(f"tcp://127.0.0.1:{node.port}" for node in nodes)
    if protocol == "core":
        return Instants(CLIENTS[1], f"({servers})?{OPTIONS}")
    return Instants(CLIENTS[0], f"failover:({servers})?initialReconnectDelay=50&maxReconnectDelay=200")


def serve_openwire(nodes: list[BrokerProcess]) -> None:
    """Lets nodes that have not been started serve OpenWire, too."""
    for node in nodes:
        path = node.folder / "etc" / "broker.xml"
        path.write_text(path.read_text().replace("protocols=CORE<", "protocols=CORE,OPENWIRE<"))


def ended(load: Instants, serves: BrokerProcess) -> None:
    """Ends the load; what lived for a second has expired, and nobody has seen it."""
    load.over()
    with connect(f"tcp://127.0.0.1:{serves.port}", user=USER, password=PASSWORD) as connection:
        management = connection.management()
        until("the brief ones have expired", lambda: management.get("queue." + BRIEF, "messageCount") == 0, 30)


@pytest.fixture
def store_pair(brokers: Lineup) -> Iterator[list[BrokerProcess]]:
    """Two members with one data folder."""

    def shaping(index: int, ports: list[int]) -> Shape:
        core = SHARED.format(member=MEMBERS[index])
        return Shape(Cluster((ports[1 - index],)), core=core, own=f"[ha]\nlease_ms = {LEASE_MS}\n")

    nodes = brokers.cluster("atalanta+atalanta", shaping)
    data = nodes[0].folder / "data"
    data.mkdir(exist_ok=True)
    (nodes[1].folder / "data").symlink_to(data)
    serve_openwire(nodes)
    nodes[0].start()
    nodes[1].launch()
    await_passive(nodes[1])
    yield nodes
    for node in nodes:
        node.close()


def active_of(nodes: list[BrokerProcess], other_than: BrokerProcess | None = None) -> BrokerProcess:
    """Returns the node that serves, when there is one."""
    found: list[BrokerProcess] = []

    def one() -> bool:
        found[:] = [node for node in nodes if node is not other_than and role(node) == "active"]
        return len(found) == 1

    until("one node serves", one, 60)
    return found[0]


def await_passive(node: BrokerProcess) -> None:
    until(f"{node.name} waits", lambda: role(node) == "passive", 60)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_six_takeovers_of_a_replicated_group(brokers: Lineup, tmp_path: Path, protocol: str) -> None:
    (tmp_path / "locks").mkdir()
    manager = f'kind = "file"\nlocks-folder = "{tmp_path / "locks"}"\n'
    ways: list[Callable[[BrokerProcess], None]] = [BrokerProcess.kill, hand_over]
    with ReplicatedGroup(brokers, manager, lease_ms=LEASE_MS) as group:
        serve_openwire(group.members)
        group.start()
        with clients_of(protocol, group.members) as load:
            load.working(50)
            for number in range(TAKEOVERS):
                leaves = group.active()
                ways[number % len(ways)](leaves)
                group.active(other_than=leaves)
                load.working(50)
                if not leaves.running:
                    leaves.launch()
                group.until_synced()
            ended(load, group.active())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_six_takeovers_of_a_shared_store(store_pair: list[BrokerProcess], protocol: str) -> None:
    ways: list[Callable[[BrokerProcess], None]] = [BrokerProcess.kill, hand_over]
    with clients_of(protocol, store_pair) as load:
        load.working(50)
        for number in range(TAKEOVERS):
            leaves = active_of(store_pair)
            ways[number % len(ways)](leaves)
            active_of(store_pair, other_than=leaves)
            load.working(50)
            if not leaves.running:
                leaves.launch()
            await_passive(leaves)
        ended(load, active_of(store_pair))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_restarts_of_a_node_that_is_alone(brokers: Lineup, protocol: str) -> None:
    node = brokers.single("atalanta")
    serve_openwire([node])
    node.start()
    try:
        with clients_of(protocol, [node]) as load:
            for end in (BrokerProcess.kill, BrokerProcess.stop, BrokerProcess.kill):
                load.working(50)
                end(node)
                node.start()
            load.working(50)
            ended(load, node)
    finally:
        node.close()
