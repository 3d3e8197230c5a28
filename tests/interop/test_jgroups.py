"""JGroups stacks: real nodes and JMS clients of three lines meet our nodes, and log nothing because of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client.blocking import connect
from tests.interop.harness.artemis import ArtemisNode
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jgroups import CHANNEL, IPV4, DnsServer, JgroupsClient, Stack, complaints
from tests.interop.harness.jms import PASSWORD, USER, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.tools import ARTEMIS_VERSION

pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(300)]

MET_SECONDS = 10.0
BRIDGE_SECONDS = 30.0
STACKS = (
    ("UDP", "PING"), ("UDP", "MPING"), ("TCP", "TCPPING"), ("TCP", "FILE_PING"), ("TCP", "DNS_PING"), ("TCP", "MPING"),
    ("TCP_NIO2", "TCPPING"),
)  # fmt: skip
# Artemis and its JGroups; the first word of ours names the line where the likeliest one is another.
NODES = {"2.6.4": "3.6", "2.28.0": "5.2", "2.44.0": "", "2.56.0": ""}
CLIENTS = {"2.6.4": "3.6", "2.28.0": "5.2", "2.44.0": "", "2.56.0-jakarta": ""}
NO_DNS_PING = "JGroups 3.6 has no DNS_PING"


def own(line: str) -> str:
    return f'jgroups-version = "{line}"\n' if line else ""


@pytest.fixture
def dns() -> Iterator[DnsServer]:
    server = DnsServer()
    yield server
    server.close()


def node_of(brokers: Lineup, kind: str, stack: Stack, version: str, line: str) -> BrokerProcess:
    (node,) = brokers.cluster(kind, lambda index, ports: Shape(Cluster(stack=CHANNEL), own=own(line)))
    stack.write(node.folder / "etc", version)
    if isinstance(node, ArtemisNode):
        node.jvm_options = (IPV4,)
    return node


def members(node: BrokerProcess) -> int:
    with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as connection:
        text = str(connection.management().call("broker", "listNetworkTopology"))
    return text.count("primary") or text.count("live")


def met(nodes: tuple[BrokerProcess, BrokerProcess], what: str, within: float = MET_SECONDS) -> None:
    """Waits until each knows the other; both are ready."""
    begun = time.monotonic()
    while not all(members(node) == 2 for node in nodes):
        seconds = time.monotonic() - begun
        assert seconds < within, f"{what}: not within {seconds:.1f} s\n" + "\n".join(node.tail() for node in nodes)
        time.sleep(0.1)


@pytest.mark.parametrize("version", NODES)
@pytest.mark.parametrize(("transport", "discovery"), STACKS, ids=["+".join(stack) for stack in STACKS])
def test_a_real_node_meets_ours_and_logs_nothing_because_of_it(
    brokers: Lineup, dns: DnsServer, tmp_path: Path, transport: str, discovery: str, version: str
) -> None:
    if discovery == "DNS_PING" and NODES[version] == "3.6":
        pytest.skip(NO_DNS_PING)
    stack = Stack(transport, discovery, tmp_path / "shared", dns.port)
    kind = "artemis" if version == ARTEMIS_VERSION else f"artemis-{version}"
    real = node_of(brokers, kind, stack, version, "")
    # By UDP it listens first, and so needs no word of the line.
    ours = node_of(brokers, "atalanta", stack, version, "" if transport == "UDP" else NODES[version])
    with contextlib.ExitStack() as ends:
        ends.callback(real.close)
        ends.callback(ours.close)
        real.start()
        ours.start()
        met((real, ours), "at first")
        ours.kill()
        ours.start()
        # By TCP the real one's own bridge connects again: it has heard no change, and is not heard.
        met((real, ours), "ours again", MET_SECONDS if transport == "UDP" else BRIDGE_SECONDS)
        if transport == "UDP":
            until("ours has heard the line", lambda: "jgroups_version_heard" in ours.log.read_text(), MET_SECONDS)
        logs = [real.log]
        real.kill()
        real.start()
        met((real, ours), "the real one again")
        logs.append(real.log)
        time.sleep(3)  # a period or two more: it must stay quiet
        found = [line for log in logs for line in complaints(log.read_text(errors="replace"))]
        assert not found, "\n".join([*found, ours.tail(40)])


@pytest.mark.parametrize("version", CLIENTS)
@pytest.mark.parametrize(("transport", "discovery"), STACKS, ids=["+".join(stack) for stack in STACKS])
def test_a_jms_client_finds_ours(
    brokers: Lineup, dns: DnsServer, tmp_path: Path, transport: str, discovery: str, version: str
) -> None:
    if discovery == "DNS_PING" and CLIENTS[version] == "3.6":
        pytest.skip(NO_DNS_PING)
    number = version.partition("-")[0]
    stack = Stack(transport, discovery, tmp_path / "shared", dns.port)
    ours = node_of(brokers, "atalanta", stack, number, CLIENTS[version])
    ours.start()
    with contextlib.closing(ours), JgroupsClient(version, stack, tmp_path / "client") as client:
        client.found_ms()  # the JVM has loaded its classes now
        assert client.found_ms() < MET_SECONDS * 1_000
        ours.kill()
        ours.start()
        assert client.found_ms() < MET_SECONDS * 1_000
        assert not complaints(client.log()), client.log()


def test_real_nodes_of_an_encrypted_group_go_on_beside_nodes_of_ours(brokers: Lineup, tmp_path: Path) -> None:
    """The two of ours find each other, the real two each other, and a real one logs of ours what discovery.md says."""
    stack = Stack("UDP", "PING", tmp_path / "shared", encrypted=True)
    nodes = [node_of(brokers, kind, stack, ARTEMIS_VERSION, "") for kind in ("artemis", "artemis", *["atalanta"] * 2)]
    first, second, *ours = nodes
    with contextlib.ExitStack() as ends:
        for node in nodes:
            ends.callback(node.close)
        first.start()
        second.start()
        met((first, second), "the real ones", 2 * MET_SECONDS)
        for node in ours:
            node.start()
        met((ours[0], ours[1]), "ours")
        time.sleep(20)
        assert [members(node) for node in nodes] == [2, 2, 2, 2]
        second.kill()
        second.start()
        met((first, second), "the real ones again", BRIDGE_SECONDS)
        for real in (first, second):
            found = complaints(real.log.read_text(errors="replace"))
            assert len(found) <= 2, "\n".join(found)
        assert "no real member of JGroups is found by this stack: <SYM_ENCRYPT>" in ours[0].log.read_text()
