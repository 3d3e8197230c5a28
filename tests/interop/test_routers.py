"""Connection routers: a JMS client that comes through any node's routed door ends at the node of its key."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from atalanta.client import connect, run
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER, Jms, JmsError
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.jms_client import Client
from tests.interop.running_nodes import running
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ROUTERS = """<connection-routers>
<connection-router name="gather"><key-type>CLIENT_ID</key-type><key-filter>^[^-]+</key-filter>
<policy name="CONSISTENT_HASH"/><pool><username>admin</username><password>admin</password>
<check-period>500</check-period><quorum-size>3</quorum-size><quorum-timeout>10000</quorum-timeout>
<local-target-enabled>true</local-target-enabled><cluster-connection>interop</cluster-connection></pool>
</connection-router>
<connection-router name="partition"><key-type>USER_NAME</key-type>
<local-target-filter>guest</local-target-filter></connection-router>
</connection-routers>"""


class RoutedAcceptors:
    """The nodes, and the ports of their acceptors: one router gathers equal keys, one admits its partition only."""

    def __init__(self, nodes: list[BrokerProcess], gather: list[int], partition: list[int]) -> None:
        self.nodes = nodes
        self.gather = gather
        self.partition = partition


@pytest.fixture(scope="module")
def acceptors(trio: str, brokers: Lineup, jms: Jms) -> Iterator[RoutedAcceptors]:
    """Load balancing is off: who does not meet on one node does not meet."""
    gather = [free_port() for _ in range(3)]
    partition = [free_port() for _ in range(3)]

    def shaping(index: int, ports: list[int]) -> Shape:
        peers = tuple(port for at, port in enumerate(ports) if at != index)
        acceptors = "".join(
            f'<acceptor name="{name}">tcp://127.0.0.1:{port[index]}?protocols=CORE;router={name}</acceptor>'
            for name, port in (("gather", gather), ("partition", partition))
        )
        return Shape(Cluster(peers, load_balancing="OFF"), -1, core=ROUTERS, acceptors=acceptors)

    nodes = running(jms, brokers, trio, shaping, 3)
    yield RoutedAcceptors(nodes, gather, partition)
    for node in nodes:
        node.close()


def through(client: Client, port: int, client_id: str) -> str:
    """A connection that may be sent elsewhere."""
    options = f"clientID={client_id}&ha=true&reconnectAttempts=20&retryInterval=200"
    name = f"through.{client_id}"
    client.jms("open", name, f"tcp://127.0.0.1:{port}?{options}", USER, PASSWORD)
    return name


@pytest.mark.differs(
    "artemis", "a client may log in before it tells its client id, and is then routed by the key NULL"
)
def test_those_of_one_key_meet(client: Client, acceptors: RoutedAcceptors) -> None:
    """In the mixed line-up they come through our acceptors, for that reason; the real node is a target there."""
    ours = [at for at, node in enumerate(acceptors.nodes) if node.kind == "atalanta"]
    ports = [acceptors.gather[at] for at in ours or range(3)]
    homes = {}
    for key in ("orders of north", "flights of east", "prices of south", "alerts of the west"):
        word = key.replace(" ", "")
        queue = f"queue:{client.name(word)}"
        opened = []
        for at in range(3):
            opened.append(through(client, ports[at % len(ports)], f"{word}-{at}"))
        consumer = client.jms.consumer(f"{word}.c", opened[0], queue)
        for at in (1, 2):
            producer = client.jms.producer(f"{word}.p{at}", opened[at], queue)
            client.jms.send(producer, range(10 * at, 10 * at + 10))
        got = client.jms.receive(consumer, 20, 3000)
        assert sorted(map(int, got)) == list(range(10, 30))
        homes[key] = [
            client.jms.queue(node, queue.removeprefix("queue:"))[2] for node in acceptors.nodes
        ]
        client.jms.close_all(*opened)
    assert all(sum(consumers) == 1 for consumers in homes.values()), homes


def test_who_does_not_belong_to_the_partition_is_refused(client: Client, acceptors: RoutedAcceptors) -> None:
    for port in acceptors.partition:
        client.jms("open", f"guest.{port}", f"tcp://127.0.0.1:{port}", "guest", "guest")
        client.jms.close_all(f"guest.{port}")
        with pytest.raises(JmsError, match="rejected the connection"):
            client.jms("open", f"admin.{port}", f"tcp://127.0.0.1:{port}", USER, PASSWORD)


def managed(node: BrokerProcess, resource: str, operation: str, *given: object) -> object:
    """An operation of the node's management API; without one of its own an attribute, by its name."""

    async def ask() -> object:
        async with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as asking:
            management = asking.management()
            if operation[0].isupper():
                return await management.get(resource, operation)
            return await management.call(resource, operation, *given)

    return run(ask())


def test_management_changes_who_belongs_to_the_partition(client: Client, acceptors: RoutedAcceptors) -> None:
    router = "connectionrouter.partition"
    for node, port in zip(acceptors.nodes, acceptors.partition, strict=True):
        assert managed(node, router, "LocalTargetFilter") == "guest"
        managed(node, router, "setLocalTargetFilter", "admin")
        try:
            client.jms("open", f"in.{port}", f"tcp://127.0.0.1:{port}", USER, PASSWORD)
            client.jms.close_all(f"in.{port}")
            with pytest.raises(JmsError, match="rejected the connection"):
                client.jms("open", f"out.{port}", f"tcp://127.0.0.1:{port}", "guest", "guest")
        finally:
            managed(node, router, "setLocalTargetFilter", "guest")
        client.jms("open", f"back.{port}", f"tcp://127.0.0.1:{port}", "guest", "guest")
        client.jms.close_all(f"back.{port}")


@pytest.mark.differs(
    "artemis", "a client may log in before it tells its client id, and is then routed by the key NULL"
)
def test_management_tells_where_the_clients_of_a_key_go(client: Client, acceptors: RoutedAcceptors) -> None:
    homes = {managed(node, "broker", "NodeID"): node for node in acceptors.nodes}
    ours = [at for at, node in enumerate(acceptors.nodes) if node.kind == "atalanta"]
    for word in ("north", "eastern", "south", "wild", "west"):
        told = set()
        for node in acceptors.nodes:
            answer = managed(node, "connectionrouter.gather", "getTargetAsJSON", word)
            told.add(json.loads(str(answer))["nodeID"])
        assert len(told) == 1, f"{word}: they do not agree"
        queue = client.name(f"told.{word}")
        opened = through(client, acceptors.gather[(ours or [0])[-1]], f"{word}-told")
        client.jms.consumer(f"{word}.told", opened, f"queue:{queue}")
        assert client.jms.queue(homes[told.pop()], queue)[2] == 1
        client.jms.close_all(opened)
