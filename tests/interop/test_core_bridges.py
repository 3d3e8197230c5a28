"""Core bridges between two brokers that are in no cluster together, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.interop.harness.broker_xml import USERS, Cluster, Shape
from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import KINDS, Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.jms_client import Client

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

Pair = tuple[BrokerProcess, BrokerProcess]
ADD_HEADERS = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"
ADDRESSES = "".join(
    f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>'
    for name in ("plain.out", "plain.in", "red.out", "red.in")
)


def bridge(name: str, more: str = "") -> str:
    return f"""<bridge name="{name}">
      <queue-name>{name}.out</queue-name><forwarding-address>{name}.in</forwarding-address>{more}
      <retry-interval>500</retry-interval><reconnect-attempts>-1</reconnect-attempts>
      <user>admin</user><password>{USERS["admin"][0]}</password>
      <static-connectors><connector-ref>other</connector-ref></static-connectors>
    </bridge>"""


RED = f"""<filter string="colour = 'red'"/>
  <transformer><class-name>{ADD_HEADERS}</class-name><property key="via" value="bridge"/></transformer>"""


def shaping(index: int, ports: list[int]) -> Shape:
    bridges = bridge("plain") + bridge("red", RED)
    core = f"<bridges>{bridges}</bridges>"
    return Shape(core=core, addresses=ADDRESSES, connectors=(("other", ports[1 - index]),))


@pytest.fixture(scope="module")
def pair(lineup: str, brokers: Lineup) -> Iterator[Pair]:
    """Two running brokers, each with two bridges to the other."""
    first, second = brokers.cluster(lineup, shaping)
    for node in (first, second):
        node.launch()
    for node in (first, second):
        node.await_ready()
    yield first, second
    for node in (first, second):
        node.close()


@pytest.fixture(params=["first-to-second", "second-to-first"])
def way(request: pytest.FixtureRequest, pair: Pair) -> Pair:
    """The pair as (where messages are sent, where they are consumed)."""
    return pair if request.param == "first-to-second" else (pair[1], pair[0])


def emptied(jms: Jms, node: BrokerProcess, name: str) -> None:
    until(f"{name} is empty", lambda: jms.queue(node, name)[1] == 0)


def test_messages_cross_in_order(client: Client, way: Pair) -> None:
    consumer = client.consumer(way[1], "queue:plain.in")
    client.jms.send(client.producer(way[0], "queue:plain.out"), range(200))
    assert client.numbers([consumer], 200) == [list(range(200))]
    emptied(client.jms, way[0], "plain.out")


def test_large_messages_cross(client: Client, way: Pair) -> None:
    consumer = client.consumer(way[1], "queue:plain.in")
    client.jms.send(client.producer(way[0], "queue:plain.out"), range(5), length=250_000)
    assert client.numbers([consumer], 5) == [list(range(5))]
    emptied(client.jms, way[0], "plain.out")


def test_the_filter_leaves_the_others_and_the_transformer_adds_its_header(
    client: Client, way: Pair
) -> None:
    consumer = client.consumer(way[1], "queue:red.in", "via = 'bridge'")
    producer = client.producer(way[0], "queue:red.out")
    for n in range(20):
        client.jms.send(producer, range(n, n + 1), colour="red" if n % 2 else "blue")
    assert client.numbers([consumer], 10) == [list(range(1, 20, 2))]
    assert client.jms.queue(way[0], "red.out")[1] == 10
    left = client.consumer(way[0], "queue:red.out", "colour = 'blue'")
    assert client.numbers([left], 10) == [list(range(0, 20, 2))]


def test_a_target_that_is_killed_gets_everything_once_and_in_order(
    client: Client, pair: Pair
) -> None:
    for source, target in (pair, (pair[1], pair[0])):
        producer = client.producer(source, "queue:plain.out")
        client.jms.send(producer, range(100))
        target.kill()
        client.jms.send(producer, range(100, 200))
        target.start()
        consumer = client.consumer(target, "queue:plain.in")
        assert client.numbers([consumer], 200) == [list(range(200))]
        emptied(client.jms, source, "plain.out")
        client.close()


def with_ha(index: int, ports: list[int]) -> Shape:
    """The first is alone, with a bridge to the second; the second and the third are one cluster."""
    if index == 0:
        text = bridge("plain", "<ha>true</ha>").replace(
            "<retry-interval>",
            "<reconnect-attempts-same-node>2</reconnect-attempts-same-node><retry-interval>",
        )
        core = f"<bridges>{text}</bridges>"
        return Shape(core=core, addresses=ADDRESSES, connectors=(("other", ports[1]),))
    return Shape(Cluster((ports[3 - index],), load_balancing="OFF"), addresses=ADDRESSES)


def test_with_ha_our_bridge_goes_on_to_another_real_member(
    brokers: Lineup, jms: Jms, client: Client
) -> None:
    """A real Artemis 2.44 does not, whatever its manual says: it forgets the topology and tries its connectors."""
    source, first, second = nodes = brokers.cluster("atalanta+artemis+artemis", with_ha)
    for node in nodes:
        node.launch()
    for node in nodes:
        node.await_ready()
    until("both are members", lambda: len(jms.topology(first)) == len(jms.topology(second)) == 2)
    producer = client.producer(source, "queue:plain.out")
    client.jms.send(producer, range(10))
    emptied(jms, source, "plain.out")
    first.kill()
    client.jms.send(producer, range(10, 20))
    consumer = client.consumer(second, "queue:plain.in")
    assert client.numbers([consumer], 10) == [list(range(10, 20))]
    for node in nodes:
        node.close()


USER = f"<user>admin</user><password>{USERS['admin'][0]}</password>"


def userless(index: int, ports: list[int]) -> Shape:
    """The first has a bridge without a user, and one with."""
    if index == 1:
        return Shape(addresses=ADDRESSES)
    without = bridge("plain").replace(USER, "")
    assert without != bridge("plain")
    core = f"<bridges>{without}{bridge('red')}</bridges>"
    return Shape(core=core, addresses=ADDRESSES, connectors=(("other", ports[1]),))


@pytest.mark.parametrize("kind", KINDS)
def test_a_bridge_without_a_user_is_refused_by_our_node_until_it_has_one(
    kind: str, brokers: Lineup, jms: Jms, client: Client
) -> None:
    """The other bridges of that node go on: a real Artemis would stop them at a refusal of the cluster user."""
    source, target = nodes = brokers.cluster(f"{kind}+atalanta", userless)
    path = target.folder / "etc" / "broker.xml"
    alone = re.sub("<cluster-(user|password)>.*</cluster-(user|password)>", "", path.read_text())
    assert "<cluster-" not in alone
    path.write_text(alone)
    target.start()
    source.start()
    client.jms.send(client.producer(source, "queue:plain.out"), range(10))
    until("the target refuses the bridge", lambda: "give the bridge a <user>" in target.log.read_text())
    client.jms.send(client.producer(source, "queue:red.out"), range(5))
    assert client.numbers([client.consumer(target, "queue:red.in")], 5) == [list(range(5))]
    assert jms.queue(source, "plain.out")[1] == 10
    source.stop()
    mended = source.folder / "etc" / "broker.xml"
    name = "<queue-name>plain.out</queue-name>"
    mended.write_text(mended.read_text().replace(name, name + USER, 1))
    source.start()
    assert client.numbers([client.consumer(target, "queue:plain.in")], 10) == [list(range(10))]
    for node in nodes:
        node.close()
