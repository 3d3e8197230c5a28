"""URLs of activemq-client: what each option of failover:, discovery: and fanout: does with our nodes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from atalanta.client import connect, run
from tests.interop.harness.broker_xml import Shape
from tests.interop.harness.jms import PASSWORD, USER, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS
from tests.interop.harness.openwire_clients import ClientsFailed, OpenWireClients
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
Nodes = list[BrokerProcess]


@pytest.fixture(scope="module", params=CLIENTS)
def jvm(request: pytest.FixtureRequest) -> Iterator[OpenWireClients]:
    with OpenWireClients(request.param) as program:
        yield program


def nodes_of(brokers: Lineup, options: str = "") -> Nodes:
    """Two nodes without a cluster that serve OpenWire."""
    nodes = brokers.cluster("atalanta+atalanta", lambda index, ports: Shape())
    for node in nodes:
        path = node.folder / "etc" / "broker.xml"
        text = path.read_text().replace("protocols=CORE<", f"protocols=CORE,OPENWIRE{options}<")
        path.write_text(text)
        node.start()
    return nodes


def places(nodes: Nodes) -> str:
    return ",".join(f"tcp://127.0.0.1:{node.port}" for node in nodes)


def close(jvm: OpenWireClients, group: str, nodes: Nodes) -> None:
    jvm.close_all(group)
    for node in nodes:
        node.close()


def test_randomize(brokers: Lineup, jvm: OpenWireClients) -> None:
    nodes = nodes_of(brokers)
    jvm.open("first", f"failover:({places(nodes)})?randomize=false", 12)
    assert jvm.where("first", *nodes) == [12, 0, 0]
    jvm.open("any", f"failover:({places(nodes)})", 30)
    assert min(jvm.where("any", *nodes)[:2]) > 0
    jvm.close_all("any")
    close(jvm, "first", nodes)


def test_idle_links_of_backup_are_not_cut_before_login(brokers: Lineup, jvm: OpenWireClients) -> None:
    nodes = nodes_of(brokers, ";handshake-timeout=1")
    jvm.open("backup", f"failover:({places(nodes)})?randomize=false&backup=true", 5, 50)
    since = time.monotonic()
    until("the handshake-timeout has passed thrice", lambda: time.monotonic() - since > 3)
    assert "timed_out" not in nodes[1].log.read_text()
    nodes[0].kill()
    until("all are at the other", lambda: jvm.where("backup", *nodes) == [0, 5, 0])
    assert jvm.counts("backup")["failures"] == []
    close(jvm, "backup", nodes)


@pytest.mark.parametrize("uris", [False, True])
def test_priority_backup_returns(brokers: Lineup, jvm: OpenWireClients, uris: bool) -> None:
    """To the first one of the URL, or to one of priorityURIs."""
    nodes = nodes_of(brokers)
    home = nodes[1] if uris else nodes[0]
    options = f"&priorityURIs=tcp://127.0.0.1:{home.port}" if uris else ""
    url = f"failover:({places(nodes)})?randomize=false&maxReconnectDelay=500&priorityBackup=true{options}"
    jvm.open("prior", url, 4)
    expected = [4 if node is home else 0 for node in nodes]
    until("they are at home", lambda: jvm.where("prior", *nodes) == [*expected, 0])
    home.stop()
    until("they are away", lambda: jvm.where("prior", *nodes) == [*reversed(expected), 0])
    home.start()
    until("they are back", lambda: jvm.where("prior", *nodes) == [*expected, 0])
    close(jvm, "prior", nodes)


def test_max_reconnect_attempts(brokers: Lineup, jvm: OpenWireClients) -> None:
    with pytest.raises(ClientsFailed):
        jvm.open("none", f"failover:(tcp://127.0.0.1:{free_port()})?maxReconnectAttempts=2", 1)
    nodes = nodes_of(brokers)
    jvm.open("few", f"failover:({places(nodes[:1])})?maxReconnectAttempts=2", 2)
    nodes[0].kill()
    until("the application is told", lambda: len(jvm.counts("few")["failures"]) >= 2)
    close(jvm, "few", nodes)


def test_track_messages(brokers: Lineup, jvm: OpenWireClients) -> None:
    """Messages that nobody waited for are sent again behind a failover, and are not there twice."""
    nodes = nodes_of(brokers)
    where = places(nodes[:1])
    jvm.open("track", f"failover:({where})?trackMessages=true&jms.useAsyncSend=true", 4, 1)
    until("some are sent", lambda: jvm.counts("track")["sent"] > 300)
    nodes[0].kill()
    nodes[0].start()
    until("more are sent", lambda: jvm.counts("track")["sent"] > 1000)
    jvm.quiet("track")
    until("all is received", lambda: jvm.counts("track")["lost"] == 0)
    assert jvm.counts("track")["failures"] == []
    close(jvm, "track", nodes)


def test_nested_options(brokers: Lineup, jvm: OpenWireClients) -> None:
    """A node that stands still is left after nested.wireFormat.maxInactivityDuration."""
    nodes = nodes_of(brokers)
    inactivity = "nested.wireFormat.maxInactivityDuration=1000&nested.wireFormat.maxInactivityDurationInitalDelay=1000"
    jvm.open("nested", f"failover:({places(nodes)})?randomize=false&{inactivity}", 3)
    os.kill(nodes[0].pid, signal.SIGSTOP)
    until("they have left it", lambda: jvm.where("nested", *nodes) == [0, 3, 0], 15)
    os.kill(nodes[0].pid, signal.SIGCONT)
    close(jvm, "nested", nodes)


@pytest.mark.parametrize("agent", ["static", "simple"])
def test_discovery_of_named_brokers(brokers: Lineup, jvm: OpenWireClients, agent: str) -> None:
    nodes = nodes_of(brokers)
    jvm.open(agent, f"discovery:({agent}:({places(nodes)}))", 6, 20)
    until("all work", lambda: jvm.counts(agent)["received"] > 50)
    nodes[0].kill()
    until("all are at the other", lambda: jvm.where(agent, *nodes) == [0, 6, 0])
    assert jvm.counts(agent)["failures"] == []
    close(jvm, agent, nodes)


def test_discovery_by_multicast(brokers: Lineup, jvm: OpenWireClients) -> None:
    address = f"239.255.{random.randrange(1, 255)}.{random.randrange(1, 255)}:{random.randrange(20000, 30000)}"
    group = f"multicast://{address}?group=shop"
    options = f";discoveryUri={group.replace('?', '%3F').replace('=', '%3D')}%26interface%3D127.0.0.1"
    nodes = nodes_of(brokers, options)
    jvm.open("cast", f"discovery:({group}&interface=127.0.0.1&joinNetworkInterface=lo)", 6, 20)
    until("all work", lambda: jvm.counts("cast")["received"] > 50)
    nodes[0].stop()
    until("all are at the other", lambda: jvm.where("cast", *nodes) == [0, 6, 0])
    nodes[0].start()
    nodes[1].stop()
    until("all are at the first", lambda: jvm.where("cast", *nodes) == [6, 0, 0])
    close(jvm, "cast", nodes)


def test_fanout_sends_to_every_broker(brokers: Lineup, jvm: OpenWireClients) -> None:
    nodes = nodes_of(brokers)
    jvm.open("fan", f"fanout:(static:({places(nodes)}))?fanOutQueues=true&minAckCount=2", 1, 20)
    until("it works", lambda: jvm.counts("fan")["received"] > 20)
    jvm.quiet("fan")
    sent = int(jvm.counts("fan")["sent"])  # the client itself drops what came from the other broker before
    until("both have each message", lambda: min(added(node) for node in nodes) >= sent)
    assert jvm.counts("fan")["lost"] == 0
    close(jvm, "fan", nodes)


def added(node: BrokerProcess) -> int:
    """Returns how many messages the queue of the group "fan" has got."""

    async def ask() -> int:
        async with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as asking:
            found = await asking.management().get("queue.clients.fan", "MessagesAdded")
            return int(str(found))

    return run(ask())
