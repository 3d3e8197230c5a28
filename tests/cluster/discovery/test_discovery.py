"""Broadcast and discovery groups: every parameter does what it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.cluster.config import BroadcastGroupConfig, ClusterSettings
from atalanta.cluster.discovery.discovery import DiscoveryListener
from atalanta.cluster.topology.topology import Member
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.core.broadcast_datagram import (
    Announcement,
    decode_announcement,
    encode_announcement,
)
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, linked, node_of
from tests.cluster.discovery.discovery_rig import broadcast, discovery_of, group_config

GROUP = "231.7.7.7:9876"


class Tapped:
    """Every datagram of the rig: (source, group, when in ms since the tap, data)."""

    def __init__(self, rig: Rig) -> None:
        self.sent: list[tuple[str, str, int, bytes]] = []
        start = rig.world.now
        multicast = rig.network.multicast

        def tap(source: Host, group: str, data: bytes) -> None:
            since_ms = (rig.world.now - start) // 1_000_000
            self.sent.append((source.name, group, since_ms, data))
            multicast(source, group, data)

        rig.network.multicast = tap  # type: ignore[method-assign,assignment]

    def times(self, source: str, group: str = GROUP) -> list[int]:
        return [at for name, where, at, _ in self.sent if (name, where) == (source, group)]


def started(rig: Rig, change: Callable[[ClusterSettings], None], count: int = 2) -> list[Host]:
    hosts = [rig.node(discovery=True, whole=change) for _ in range(count)]
    for host in hosts:
        host.start()
    return hosts


def test_the_first_announcement_goes_out_at_once_and_then_one_each_broadcast_period() -> None:
    def slow(settings: ClusterSettings) -> None:
        broadcast(settings).broadcast_period_ms = 700

    rig = Rig()
    tapped = Tapped(rig)
    started(rig, slow, 1)
    rig.run(3)
    assert tapped.times("n0") == [0, 700, 1400, 2100, 2800]


def test_a_node_announces_itself_in_several_groups_and_is_found_in_each() -> None:
    def second(settings: ClusterSettings) -> None:
        own = settings.cluster_connections[0].connector
        settings.broadcast_groups.append(
            BroadcastGroupConfig(
                "other",
                group_address="231.7.7.8",
                group_port=9877,
                connectors=[own],
                broadcast_period_ms=500,
            )
        )

    def elsewhere(settings: ClusterSettings) -> None:
        group_config(settings).group_address = "231.7.7.8"
        group_config(settings).group_port = 9877

    rig = Rig()
    tapped = Tapped(rig)
    hosts = [
        rig.node(discovery=True, whole=second),
        rig.node(discovery=True, whole=elsewhere),
        rig.node(discovery=True),
    ]
    rig.form(*hosts)
    rig.run(5)
    assert list(discovery_of(hosts[1]).entries("group")) == ["node-0"]
    assert "node-0" in discovery_of(hosts[2]).entries("group")
    assert tapped.times("n0", "231.7.7.8:9877")[:4] == [0, 500, 1000, 1500]
    assert tapped.times("n0")[:2] == [0, 2000]


def test_several_connectors_are_announced_and_the_last_is_the_one_entry_of_the_node() -> None:
    def two(settings: ClusterSettings) -> None:
        own = settings.cluster_connections[0].connector
        settings.connectors["dead"] = ConnectorConfig("dead", "nowhere", 1)
        broadcast(settings).connectors = ["dead", own]

    rig = Rig()
    tapped = Tapped(rig)
    hosts = started(rig, two)
    rig.formed()
    rig.run(3)
    announcement = decode_announcement(tapped.sent[0][3])
    assert [each.name for each in announcement.connectors] == ["dead", "n0"]
    entries = discovery_of(hosts[1]).entries("group")
    assert {node_id: each.host for node_id, each in entries.items()} == {"node-0": "n0"}


def test_a_node_that_is_silent_for_refresh_timeout_is_listed_no_longer_until_it_is_heard() -> None:
    def short(settings: ClusterSettings) -> None:
        group_config(settings).refresh_timeout_ms = 5_000
        broadcast(settings).broadcast_period_ms = 500

    rig = Rig()
    hosts = started(rig, short)
    rig.formed()
    listing = discovery_of(hosts[0])
    hosts[1].crash()
    crashed = rig.world.now
    rig.until(lambda: not listing.entries("group"))
    assert 4_300 <= (rig.world.now - crashed) // 1_000_000 <= 5_100
    assert rig.events("n0 discovery_silent group=group node=node-1")
    # Nobody dials what is not heard any more.
    assert "discovered/node-1" not in cluster_of(hosts[0]).scanner.targets
    hosts[1].start()
    rig.formed()
    assert list(listing.entries("group")) == ["node-1"]


def test_when_nobody_is_heard_for_initial_wait_timeout_it_is_told_and_the_search_goes_on() -> None:
    def patient(settings: ClusterSettings) -> None:
        group_config(settings).initial_wait_timeout_ms = 3_000

    rig = Rig()
    early, late = (rig.node(discovery=True, whole=patient) for _ in range(2))
    early.start()
    rig.run(2.9)
    assert not rig.events("discovery_no_announcement")
    rig.run(0.2)
    assert rig.events("n0 discovery_no_announcement group=group ms=3000")
    late.start()
    rig.formed()
    rig.run(5)
    assert not rig.events("n1 discovery_no_announcement"), "it heard the other one in time"


def test_local_bind_address_and_port_of_each_side_reach_the_socket() -> None:
    def bound(settings: ClusterSettings) -> None:
        broadcast(settings).local_bind_address = "10.0.0.1"
        broadcast(settings).local_bind_port = 5432
        group_config(settings).local_bind_address = "10.0.0.2"

    rig = Rig()
    host = rig.node(discovery=True, whole=bound)
    joined: list[tuple[object, ...]] = []
    host.on_join = lambda *words: joined.append(words)
    host.start()
    assert joined == [
        ("send", "broadcast/group", GROUP, "10.0.0.1", 5432),
        ("receive", "discovery/group", GROUP, "10.0.0.2", -1),
    ]


def test_a_node_found_at_a_new_address_is_dialled_there(rig: Rig) -> None:
    rig.cluster(2, discovery=True)
    cluster = cluster_of(rig.hosts[0])
    moved = TransportConfiguration.tcp("moved", "n9", 61616)
    cluster.scanner.discovered(rig.world.now, "node-1", moved)
    assert [target.host for target in cluster.scanner.targets.values()] == ["n9"]
    assert linked(rig.hosts[0]) == 1, "the connection there is stays"


def test_forged_announcements_of_one_address_are_dialled_once(rig: Rig) -> None:
    hosts = rig.cluster(2, discovery=True)
    dialled: list[str] = []
    links = node_of(hosts[0]).ports.links
    dial = links.dial_within

    def counted(key: str, host: str, port: int, timeout_ms: int) -> None:
        dialled.append(host)
        dial(key, host, port, timeout_ms)

    links.dial_within = counted  # type: ignore[method-assign]
    victim = TransportConfiguration.tcp("any", "victim", 61616)
    for number in range(700):
        forged = encode_announcement(Announcement(f"forged-{number}", "u", [victim]))
        node_of(hosts[0]).on_datagram(rig.world.now, "discovery/group", forged)
    assert dialled == ["victim"]
    rig.run(9)
    assert len(dialled) < 8, "with growing pauses: nothing ever answered there"
    rig.run(11)
    scanner = cluster_of(hosts[0]).scanner
    assert [target.host for target in scanner.targets.values()] == ["n1"], "silent ones are gone"


def test_a_member_that_was_never_reached_is_dialled_no_longer_when_it_is_gone(rig: Rig) -> None:
    """Another member had told of it."""
    hosts = rig.cluster(2, discovery=True)
    cluster = cluster_of(hosts[0])
    unreachable = TransportConfiguration.tcp("there", "nowhere", 61616)
    cluster.members.update(rig.world.now, Member("node-9", 1, unreachable, None, None, None))
    rig.run(5)
    assert "node-9" in cluster.peers, "it may be reached later"
    cluster.members.lost("node-9", 1)
    rig.run(5)
    assert sorted(cluster.peers) == ["node-1"]
    assert cluster.is_linked("node-1")


class Listening(DiscoveryListener):
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.gone: list[str] = []

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        self.heard.append(f"{node_id} at {connector.host}")

    def undiscovered(self, now: int, node_id: str) -> None:
        self.gone.append(node_id)


def test_others_may_listen_to_a_group_too_and_hear_at_once_who_is_known(rig: Rig) -> None:
    hosts = rig.cluster(2, discovery=True)
    listening = Listening()
    discovery = discovery_of(hosts[0])
    discovery.listen(rig.world.now, "group", listening, "a test")
    assert listening.heard == ["node-1 at n1"]
    hosts[1].stop()
    rig.run(11)
    assert listening.gone == ["node-1"]
    discovery.unlisten("group", listening)
    hosts[1].start()
    rig.formed()
    assert set(listening.heard) == {"node-1 at n1"}


def test_two_nodes_with_one_id_are_warned_of_on_every_node_that_hears_them(rig: Rig) -> None:
    rig.node(discovery=True)
    rig.node(discovery=True, node_id="node-0")
    rig.node(discovery=True)
    for host in rig.hosts:
        host.start()
    rig.run(12)
    assert {line.split()[1] for line in rig.events("duplicate_node_id")} == {"n0", "n1"}
    told = [line for line in rig.events("node_id_shared") if line.split()[1] == "n2"]
    assert told and "n0:61616" in told[0] and "n1:61616" in told[0]
    assert "stop one of the two" in told[0]
    rig.run(20)
    assert len([line for line in rig.events("node_id_shared") if " n2 " in line]) <= 5


def test_two_nodes_with_one_id_are_warned_of_on_every_node_without_discovery_too(rig: Rig) -> None:
    third = rig.node(peers=[])
    rig.node(peers=[0])
    rig.node(peers=[0], node_id="node-1")
    rig.hosts[0].start()
    rig.hosts[1].start()
    rig.until(lambda: linked(third) == 1)
    rig.run(2)
    rig.hosts[2].start()
    rig.run(5)
    told = [line for line in rig.events("node_id_shared") if line.split()[1] == "n0"]
    assert told and "n1:61616" in told[0] and "n2:61616" in told[0]


def test_a_restart_is_not_taken_for_a_second_node(rig: Rig) -> None:
    hosts = rig.cluster(3, discovery=True)
    for _ in range(2):
        hosts[1].crash()
        rig.run(1)
        hosts[1].start()
        rig.formed()
        rig.run(10)
    assert not rig.events("node_id_shared") and not rig.events("duplicate_node_id")


def test_a_datagram_that_cannot_be_read_is_counted_and_harms_nothing(rig: Rig) -> None:
    hosts = rig.cluster(2, discovery=True)
    for data in (b"", b"beef", bytes(500), b"\x00\x00\x00\x05" + b"\xff" * 40):
        node_of(hosts[0]).on_datagram(rig.world.now, "discovery/group", data)
    assert hosts[0].trace.counters["datagrams_unreadable"] == 4
    rig.run(3)
    assert linked(hosts[0]) == 1


@pytest.mark.parametrize("endpoint", ["end\r\npoint: x", "\u00e9"])
def test_a_connector_that_cannot_be_asked_for_core_over_http_harms_nobody(rig: Rig, endpoint: str) -> None:
    """Anybody can send datagrams."""
    hosts = started(rig, lambda settings: None)
    rig.formed()
    stranger = RawPeer(rig, "stranger")
    stranger.listen()
    connector = TransportConfiguration.tcp("x", "stranger", PORT)
    connector.put("httpUpgradeEnabled", "true")
    connector.put("httpUpgradeEndpoint", endpoint)
    announcement = encode_announcement(Announcement("stranger", "unique", [connector]))
    node_of(hosts[0]).on_datagram(rig.world.now, "discovery/group", announcement)
    rig.until(lambda: stranger.closed)
    assert stranger.packets == []
    assert linked(hosts[0]) == 1
