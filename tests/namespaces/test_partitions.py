"""Three nodes on three machines (network namespaces): multicast discovery, pulled cables, lost directions.

Part of `make soak`, which sets ATALANTA_SOAK; needs root and `ip`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.namespaces.network import MARKS, PORT, Namespaces, until

pytestmark = MARKS

NAMES = ["a", "b", "c"]
BROKER_XML = """<configuration><core><name>{name}</name><security-enabled>false</security-enabled>
<cluster-user>peer</cluster-user><cluster-password>secret</cluster-password>
<connectors><connector name="self">tcp://{address}:{port}</connector></connectors>
<acceptors><acceptor name="artemis">tcp://0.0.0.0:{port}</acceptor></acceptors>
<broadcast-groups><broadcast-group name="bg"><group-address>231.7.7.7</group-address><group-port>9876</group-port>
<broadcast-period>500</broadcast-period><connector-ref>self</connector-ref></broadcast-group></broadcast-groups>
<discovery-groups><discovery-group name="dg"><group-address>231.7.7.7</group-address><group-port>9876</group-port>
<refresh-timeout>5000</refresh-timeout></discovery-group></discovery-groups>
<cluster-connections><cluster-connection name="c"><connector-ref>self</connector-ref>
<check-period>1000</check-period><connection-ttl>4000</connection-ttl><call-timeout>3000</call-timeout>
<retry-interval>300</retry-interval><discovery-group-ref discovery-group-name="dg"/></cluster-connection>
</cluster-connections>
<address-settings><address-setting match="#"><redistribution-delay>0</redistribution-delay></address-setting>
</address-settings>
<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>
</core></configuration>"""
OWN = "parked-message-timeout = 3000\n"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Namespaces]:
    """Three nodes that have found each other."""
    with Namespaces(NAMES) as made:
        for name in NAMES:
            etc = tmp_path / name / "etc"
            etc.mkdir(parents=True)
            text = BROKER_XML.format(name=name, address=made.address(name), port=PORT)
            (etc / "broker.xml").write_text(text)
            (etc / "atalanta.toml").write_text(OWN)
            made.start(name, tmp_path / name / "log", "-m", "atalanta", "run", str(etc / "broker.xml"))
        whole(made)
        yield made


def whole(network: Namespaces) -> None:
    """Every node tells of all three."""
    wanted = [f"{network.address(name)}:{PORT}" for name in NAMES]
    until("every node tells of all", lambda: all(told(network, name) == wanted for name in NAMES))


def told(network: Namespaces, name: str) -> list[str]:
    client = network.client(name, "members", f"tcp://127.0.0.1:{PORT}")
    out, _ = client.process.communicate(timeout=30)
    if client.process.returncode:
        return []
    found: list[str] = json.loads(out)
    return found


def test_nodes_find_each_other_by_multicast_and_share(network: Namespaces) -> None:
    consumers = [network.client(name, "receive", network.url(name), "orders", 60, 15) for name in ("b", "c")]
    network.client("a", "send", network.url("a"), "orders", 0, 60).result()
    got = [consumer.result() for consumer in consumers]
    assert sorted(got[0] + got[1]) == list(range(60))


def test_a_pulled_cable_and_what_was_parked_for_that_node(network: Namespaces) -> None:
    there = network.client("c", "receive", network.url("c"), "orders", 20, 40)
    network.client("a", "send", network.url("a"), "orders", 0, 20).result()
    first = there.result()
    assert sorted(first) == list(range(20))
    network.pull("c")
    here = network.client("b", "receive", network.url("b"), "orders", 30, 60)
    network.client("a", "send", network.url("a"), "orders", 20, 30).result()
    until("c is gone at a", lambda: len(told(network, "a")) == 2)
    assert sorted(here.result()) == list(range(20, 50))
    network.plug("c")
    whole(network)
    again = network.client("c", "receive", network.url("c"), "orders", 20, 30)
    network.client("b", "send", network.url("b"), "orders", 50, 20).result()
    assert sorted(again.result()) == list(range(50, 70))


def test_one_direction_lost(network: Namespaces) -> None:
    consumer = network.client("c", "receive", network.url("c"), "orders", 120, 90)
    network.client("a", "send", network.url("a"), "orders", 0, 40).result()
    network.drop("a", "c")
    network.client("a", "send", network.url("a"), "orders", 40, 40).result()
    until("c is gone at a", lambda: f"{network.address('c')}:{PORT}" not in told(network, "a"))
    network.restore("a", "c")
    whole(network)
    network.client("a", "send", network.url("a"), "orders", 80, 40).result()
    assert sorted(consumer.result()) == list(range(120))
