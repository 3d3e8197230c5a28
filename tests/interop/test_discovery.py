"""Clients that know a UDP group only: they find the nodes that announce themselves there."""

from __future__ import annotations

import random

import pytest

from atalanta.client.blocking import connect
from atalanta.client.options import Server
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER, Jms
from tests.interop.harness.lineup import Lineup
from tests.interop.jms_client import Client, start
from tests.runtime.net.ipv6_address import SIX

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def test_clients_find_nodes_by_udp(jms: Jms, brokers: Lineup, lineup: str, client: Client) -> None:
    group = (f"231.7.8.{random.randrange(1, 255)}", random.randrange(20000, 30000))
    nodes = brokers.pair(lineup, group=group)
    start(jms, nodes)
    url = f"udp://{group[0]}:{group[1]}?localBindAddress=127.0.0.1&callTimeout=15000"
    servers = [Server("127.0.0.1", node.port) for node in nodes]
    queue = "queue:" + client.name("q")
    jms("open", "udp", url, USER, PASSWORD)
    consumer = jms.consumer("udp.c", "udp", queue)
    jms.send(jms.producer("udp.p", "udp", queue), range(20))
    assert [int(text) for text in jms.collect([consumer], 20)[0]] == list(range(20))
    jms.close_all("udp")
    with connect(url, user=USER, password=PASSWORD) as connection:
        assert connection.server in servers
    nodes[0].kill()
    # Whoever is silent is found no longer: new connections go to the other node.
    for _ in range(3):
        with connect(f"{url}&initialConnectAttempts=10", user=USER, password=PASSWORD) as connection:
            assert connection.server == servers[1]
    for node in nodes:
        node.close()


@pytest.mark.skipif(not SIX, reason="no interface of this machine has an IPv6 address and a way for groups")
def test_nodes_and_clients_meet_in_an_ipv6_group(
    jms: Jms, brokers: Lineup, lineup: str, client: Client
) -> None:
    """Of the scope ff01, which never leaves the machine."""
    group = (f"ff01::77:{random.randrange(1, 9999)}", random.randrange(20000, 30000))

    def shaping(index: int, ports: list[int]) -> Shape:
        return Shape(Cluster(group=group, group_interface=SIX))

    first, second = brokers.cluster(lineup, shaping)
    nodes = (first, second)
    start(jms, nodes)
    url = f"udp://[{group[0]}]:{group[1]}?localBindAddress={SIX}&callTimeout=15000"
    queue = "queue:" + client.name("six")
    jms("open", "six", url, USER, PASSWORD)
    consumer = jms.consumer("six.c", "six", queue)
    jms.send(jms.producer("six.p", "six", queue), range(20))
    assert [int(text) for text in jms.collect([consumer], 20)[0]] == list(range(20))
    jms.close_all("six")
    with connect(url, user=USER, password=PASSWORD) as connection:
        assert connection.server in [Server("127.0.0.1", node.port) for node in nodes]
    for node in nodes:
        node.close()
