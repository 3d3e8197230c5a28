"""Nodes that meet where the discovery protocol of a JGroups stack meets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.jgroups_discovery import (
    DNS,
    FOLDER,
    HOSTS,
    MPING,
    MULTICAST,
    JgroupsStack,
    decode_answer,
    encode_channel_message,
    encode_posted,
)
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, linked, node_of
from tests.cluster.discovery.discovery_rig import at, discovery_of

STACKS: dict[str, Callable[[], JgroupsStack]] = {
    "TCPPING": lambda: JgroupsStack(
        HOSTS, "TCPPING", "c", port=7800, port_range=5, hosts=[("n0", 7800)], host_port_range=1
    ),
    "DNS_PING": lambda: JgroupsStack(DNS, "DNS_PING", "c", port=7800, names=["headless"]),
    "FILE_PING": lambda: JgroupsStack(FOLDER, "FILE_PING", "c", folder="/shared"),
    "MPING": lambda: JgroupsStack(MPING, "MPING", "c", address="230.5.6.7", group_port=7555, port=7800, port_range=5),
    "UDP": lambda: JgroupsStack(MULTICAST, "UDP", "c", address="230.5.6.8", port=7600),
}


def rig_of(protocol: str, count: int = 3) -> Rig:
    rig = Rig()
    rig.network.names["headless"] = [(f"n{i}", 0) for i in range(count)]
    for number in range(count):
        rig.network.ips[f"n{number}"] = f"10.0.0.{number}"
        rig.node(discovery=True, whole=at(STACKS[protocol]()))
    for host in rig.hosts:
        host.start()
    return rig


def members(host: Host) -> list[str]:
    return sorted(cluster_of(host).topology.members)


@pytest.mark.parametrize("protocol", sorted(STACKS))
def test_nodes_meet_and_who_goes_silent_is_forgotten(protocol: str) -> None:
    rig = rig_of(protocol)
    rig.formed()
    assert [members(host) for host in rig.hosts] == [["node-0", "node-1", "node-2"]] * 3
    rig.run(3)
    listed = discovery_of(rig.hosts[1]).entries("group")
    assert sorted(listed) == ["node-0", "node-2"]
    assert {each.host for each in listed.values()} == {"n0", "n2"}
    rig.hosts[2].crash()
    rig.until(lambda: sorted(discovery_of(rig.hosts[1]).entries("group")) == ["node-0"])
    rig.hosts[2].start()
    rig.formed()
    assert not rig.events("node_id_shared") and not rig.events("duplicate_node_id")


@pytest.mark.parametrize("protocol", sorted(STACKS))
def test_the_log_says_whether_members_of_jgroups_are_met(protocol: str) -> None:
    rig = rig_of(protocol, 1)
    [told] = rig.events("jgroups_channel_opened")
    assert f"protocol={protocol}" in told and "members of JGroups 3.6 to 5.x hear this node" in told


@pytest.mark.parametrize("protocol", sorted(STACKS))
def test_nodes_meet_by_a_stack_whose_members_cannot_be_met(protocol: str) -> None:
    rig = Rig()
    rig.network.names["headless"] = [(f"n{i}", 0) for i in range(3)]
    for number in range(3):
        rig.network.ips[f"n{number}"] = f"10.0.0.{number}"
        stack = STACKS[protocol]()
        stack.unmet = "it is encrypted"
        rig.node(discovery=True, whole=at(stack))
    rig.form()
    assert [members(host) for host in rig.hosts] == [["node-0", "node-1", "node-2"]] * 3
    assert "it is encrypted" in rig.events("jgroups_channel_opened")[0]


@pytest.mark.parametrize("protocol", sorted(STACKS))
def test_channels_of_one_stack_are_clusters_of_their_own(rig: Rig, protocol: str) -> None:
    rig.network.names["headless"] = [(f"n{i}", 0) for i in range(4)]
    rig.network.ips.update((f"n{i}", f"10.0.0.{i}") for i in range(4))
    for index in range(4):
        stack = STACKS[protocol]()
        stack.channel = "even" if index % 2 == 0 else "odd"
        if stack.kind == HOSTS:
            stack.hosts = [("n0", 7800), ("n1", 7800)]
        rig.node(discovery=True, whole=at(stack))
    for host in rig.hosts:
        host.start()
    rig.until(lambda: all(linked(host) == 1 for host in rig.hosts))
    rig.run(5)
    assert members(rig.hosts[0]) == members(rig.hosts[2]) == ["node-0", "node-2"]
    assert members(rig.hosts[1]) == members(rig.hosts[3]) == ["node-1", "node-3"]


def test_several_nodes_of_one_machine_take_the_next_free_port(rig: Rig) -> None:
    """port_range of the transport, and of TCPPING: all are probed."""
    for _ in range(3):
        stack = STACKS["TCPPING"]()
        stack.hosts, stack.host_port_range = [("n0", 7800)], 2
        rig.node(discovery=True, whole=at(stack))
    for index, host in enumerate(rig.hosts):
        host.listeners = {PORT + index: "netty-acceptor"}
        host.address = "n0"
    # Their connectors say n0, n1 …: what they announce is reached there.
    for index, host in enumerate(rig.hosts):
        host.start()
        rig.network.listen(host, f"n{index}", PORT)
        host.listeners[PORT] = "netty-acceptor"
    rig.formed()
    ports = sorted(port for host in rig.hosts for port in host.dynamic_listeners)
    assert ports == [7800, 7801, 7802]


def test_a_stale_file_is_not_believed_and_an_unreadable_one_harms_nothing(rig: Rig) -> None:
    dead = TransportConfiguration.tcp("x", "nowhere", 1)
    announcement = encode_announcement(Announcement("dead", "u", [dead]))
    long_ago = rig.world.now // 1_000_000 - 3_600_000
    rig.network.folders["/shared/c"] = {
        "dead.atalanta": encode_posted("c", long_ago, announcement),
        "bad.atalanta": b"no such thing",
        "short.atalanta": encode_channel_message("c", b"123"),
    }
    hosts = [rig.node(discovery=True, whole=at(STACKS["FILE_PING"]())) for _ in range(2)]
    rig.form(*hosts)
    rig.run(1)
    assert list(discovery_of(hosts[0]).entries("group")) == ["node-1"]
    assert hosts[0].trace.counters["discovery_files_unreadable"] == 2
    # Whoever changes its file is there, however wrong its clock is.
    rig.network.folders["/shared/c"]["dead.atalanta"] = encode_posted("c", long_ago + 1, announcement)
    rig.run(1)
    assert sorted(discovery_of(hosts[0]).entries("group")) == ["dead", "node-1"]


def test_a_node_that_stops_takes_its_file_along() -> None:
    rig = rig_of("FILE_PING", 2)
    rig.formed()
    assert sorted(rig.network.folders["/shared/c"]) == ["node-0.atalanta", "node-1.atalanta"]
    rig.hosts[1].stop()
    assert sorted(rig.network.folders["/shared/c"]) == ["node-0.atalanta"]


@pytest.mark.parametrize(
    ("protocol", "attribute"), [("FILE_PING", "folders_fail"), ("DNS_PING", "names_fail")]
)
def test_a_place_that_fails_is_told_once_and_tried_again(rig: Rig, protocol: str, attribute: str) -> None:
    rig.network.names["headless"] = [("n0", 0), ("n1", 0)]
    setattr(rig.network, attribute, "no route")
    hosts = [rig.node(discovery=True, whole=at(STACKS[protocol]())) for _ in range(2)]
    for host in hosts:
        host.start()
    rig.run(5)
    told = [line for line in rig.events("jgroups_channel_failed") if " n0 " in line]
    assert len(told) == 1 and "no route" in told[0]
    setattr(rig.network, attribute, "")
    rig.formed()


def visit(rig: Rig, host: Host, data: bytes) -> RawVisitor:
    peer = RawVisitor(rig, "visitor")
    rig.network.dial(peer, "raw", host.name, 7800)
    rig.until(lambda: peer.conns)
    peer.write(data)
    rig.run(1)
    return peer


class RawVisitor(RawPeer):
    def __init__(self, rig: Rig, name: str) -> None:
        super().__init__(rig, name)
        self.data = b""

    def on_bytes(self, conn: int, data: bytes) -> None:
        self.data += data


def test_a_client_that_announces_nothing_is_told_who_is_there() -> None:
    rig = rig_of("TCPPING", 2)
    rig.formed()
    rig.run(2)
    peer = visit(rig, rig.hosts[0], encode_channel_message("c", b""))
    answer = decode_answer(peer.data)
    assert answer is not None and len(answer) == 2, "itself, and whom it heard"
    assert peer.closed


@pytest.mark.parametrize(
    "data",
    [
        b"beef\x00\x40\x01",
        encode_channel_message("other", b""),
        b"\xff" * 10_000,
        encode_channel_message("c", b"") + b"more",
    ],
)
def test_who_says_something_else_at_the_port_is_told_nothing(data: bytes) -> None:
    rig = rig_of("TCPPING", 1)
    peer = visit(rig, rig.hosts[0], data)
    assert peer.data == b"" and peer.closed


def test_who_says_nothing_is_let_go() -> None:
    rig = rig_of("TCPPING", 1)
    peer = visit(rig, rig.hosts[0], b"ATLME")
    rig.run(15)
    assert peer.closed and node_of(rig.hosts[0]).connections == {}
