"""Broadcast and discovery groups while the node runs: management, and a configuration that is read again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterSettings,
    DiscoveryGroupConfig,
)
from atalanta.cluster.core_bridges.config import CoreBridgeConfig, CoreBridgeSettings
from atalanta.kernel.errors import BrokerError
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, USER
from atalanta.wire.endpoint import ConnectorConfig
from atalanta.wire.jgroups_discovery import FOLDER, HOSTS, MULTICAST, JgroupsStack
from tests.cluster.cluster_rig import Rig, count, linked, node_of
from tests.cluster.discovery.discovery_rig import at, broadcast, discovery_of, group_config

GROUP = "broadcastgroup.group"
HEARD = "discoverygroup.group"
STACKS = [
    JgroupsStack(MULTICAST, "UDP", "channel", "231.7.7.7", 45_688),
    JgroupsStack(HOSTS, "TCPPING", "channel", port=7_800, hosts=[("n0", 7_800), ("n1", 7_800)]),
    JgroupsStack(FOLDER, "FILE_PING", "channel", folder="/shared"),
]


def reload(rig: Rig, host: Host, change: Callable[[ClusterSettings], None]) -> None:
    """The node reads a file with these changes."""
    node = node_of(host)
    config = copy.copy(node.config)
    assert config.cluster is not None
    config.cluster = copy.deepcopy(config.cluster)
    change(config.cluster)
    bridges = copy.copy(node.config.bridges)
    bridges.connectors = dict(config.cluster.connectors)
    bridges.discovery_groups = config.cluster.discovery_groups
    bridges.broadcast_groups = config.cluster.broadcast_groups
    config.bridges = bridges
    node.on_reload(rig.world.now, config)
    host.flush_later()
    rig.run(0.1)


def as_now(host: Host) -> Callable[[ClusterSettings], None]:
    """A file that says again what it says now."""
    settings = node_of(host).config.cluster
    assert settings is not None
    broadcasts, groups = settings.broadcast_groups, settings.discovery_groups

    def change(fresh: ClusterSettings) -> None:
        fresh.broadcast_groups, fresh.discovery_groups = copy.deepcopy(broadcasts), copy.deepcopy(groups)

    return change


def heard(rig: Rig, host: Host, group: str = HEARD) -> list[str]:
    return sorted(row["nodeID"] for row in json.loads(rig.ask(host, group, "listHeardNodes")))


def short(settings: ClusterSettings) -> None:
    group_config(settings).refresh_timeout_ms = 3_000
    broadcast(settings).broadcast_period_ms = 500


def silent(settings: ClusterSettings) -> None:
    settings.broadcast_groups = []


def pair(rig: Rig, change: Callable[[ClusterSettings], None] = short) -> list[Host]:
    return rig.cluster(2, discovery=True, whole=change)


def test_the_resources_show_the_groups_and_what_was_heard(rig: Rig) -> None:
    hosts = pair(rig)
    assert rig.get(hosts[0], "broker", "BroadcastGroupNames") == ["group"]
    assert rig.get(hosts[0], "broker", "DiscoveryGroupNames") == ["group"]
    shown = {
        name: rig.get(hosts[0], GROUP, name)
        for name in ("Name", "BroadcastPeriod", "ConnectorPairs", "ConnectorPairsAsJSON", "GroupAddress",
                     "GroupPort", "LocalBindPort", "Started")
    }  # fmt: skip
    assert shown == {
        "Name": "group", "BroadcastPeriod": 500, "ConnectorPairs": ["n0"], "ConnectorPairsAsJSON": '["n0"]',
        "GroupAddress": "231.7.7.7", "GroupPort": 9876, "LocalBindPort": -1, "Started": True,
    }  # fmt: skip
    assert rig.get(hosts[0], HEARD, "Users") == ["cluster-connection test"]
    assert rig.get(hosts[0], HEARD, "Started") is True
    [row] = json.loads(rig.ask(hosts[0], HEARD, "listHeardNodes"))
    assert (row["nodeID"], row["connector"], row["address"]) == ("node-1", "n1", "n1:61616")
    assert 0 <= rig.world.now // 1_000_000 - row["heardAt"] <= 1_000
    assert row["lapsesAt"] - row["heardAt"] == 3_000
    for gone in ("broadcastgroup.other", "discoverygroup.other"):
        with pytest.raises(BrokerError, match="AMQ229067"):
            rig.get(hosts[0], gone, "Name")


def test_a_stopped_group_is_silent_until_it_is_started_and_messages_flow_meanwhile(rig: Rig) -> None:
    hosts = pair(rig)
    rig.ask(hosts[0], GROUP, "stop")
    rig.ask(hosts[0], GROUP, "stop")
    assert rig.get(hosts[0], GROUP, "Started") is False
    rig.run(4)
    assert heard(rig, hosts[1]) == [] and heard(rig, hosts[0]) == ["node-1"]
    reader = rig.consuming(hosts[1], known_at=hosts[0])
    rig.stored(hosts[0], "orders", [b"coffee"])
    rig.until(lambda: reader.bodies == [b"coffee"])
    rig.ask(hosts[0], GROUP, "start")
    rig.ask(hosts[0], GROUP, "start")
    rig.run(0.2)
    assert heard(rig, hosts[1]) == ["node-0"]
    rig.run(10)
    assert heard(rig, hosts[1]) == ["node-0"]


def test_a_restart_starts_a_stopped_group_and_a_reload_does_not(rig: Rig) -> None:
    hosts = pair(rig)

    def slower(settings: ClusterSettings) -> None:
        broadcast(settings).broadcast_period_ms = 700

    rig.ask(hosts[0], GROUP, "stop")
    reload(rig, hosts[0], slower)
    rig.run(4)
    assert heard(rig, hosts[1]) == [] and rig.get(hosts[0], GROUP, "BroadcastPeriod") == 700
    hosts[0].crash()
    hosts[0].start()
    rig.until(lambda: heard(rig, hosts[1]) == ["node-0"])


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.kind)
def test_a_group_of_a_jgroups_stack_is_stopped_and_started_removed_and_added(rig: Rig, stack: JgroupsStack) -> None:
    hosts = pair(rig, at(stack))
    rig.until(lambda: heard(rig, hosts[1]) == ["node-0"])
    assert rig.get(hosts[0], GROUP, "ChannelName") == "channel"
    rig.ask(hosts[0], GROUP, "stop")
    rig.until(lambda: heard(rig, hosts[1]) == [])
    assert heard(rig, hosts[0]) == ["node-1"], "it hears others all the same"
    rig.ask(hosts[0], GROUP, "start")
    rig.until(lambda: heard(rig, hosts[1]) == ["node-0"])
    again = as_now(hosts[0])
    reload(rig, hosts[0], silent)
    rig.until(lambda: heard(rig, hosts[1]) == [])
    reload(rig, hosts[0], again)
    rig.until(lambda: heard(rig, hosts[1]) == ["node-0"])
    assert len(discovery_of(hosts[0]).channels) == 1


def test_a_channel_that_no_group_uses_is_left(rig: Rig) -> None:
    hosts = pair(rig, at(STACKS[1]))

    again = as_now(hosts[0])

    def udp(settings: ClusterSettings) -> None:
        for group in (broadcast(settings), group_config(settings)):
            group.stack = None
            group.group_address, group.group_port = "231.7.7.9", 9_000

    for host in hosts:
        reload(rig, host, udp)
        assert discovery_of(host).channels == []
        assert not host.dynamic_listeners
    assert "group 231.7.7.9:9000" in {rig.get(host, GROUP, "Place") for host in hosts}
    rig.run(6)
    assert heard(rig, hosts[1]) == ["node-0"] and linked(hosts[0]) == 1
    for host in hosts:
        reload(rig, host, again)
        assert [channel.number for channel in discovery_of(host).channels] == [1]
    rig.run(6)
    assert heard(rig, hosts[1]) == ["node-0"]


def test_a_reload_removes_and_adds_a_broadcast_group(rig: Rig) -> None:
    hosts = pair(rig)
    reload(rig, hosts[0], silent)
    assert rig.get(hosts[0], "broker", "BroadcastGroupNames") == []
    rig.run(4)
    assert heard(rig, hosts[1]) == []
    reader = rig.consuming(hosts[1], known_at=hosts[0])
    rig.stored(hosts[0], "orders", [b"coffee"])
    rig.until(lambda: reader.bodies == [b"coffee"])

    def another(settings: ClusterSettings) -> None:
        settings.connectors["other"] = ConnectorConfig("other", "n0", 61_617)
        settings.broadcast_groups = [
            BroadcastGroupConfig("another", group_address="231.7.7.7", group_port=9_876, connectors=["other", "n0"])
        ]

    reload(rig, hosts[0], another)
    assert heard(rig, hosts[1]) == ["node-0"]
    assert "other" in rig.get(hosts[0], "broker", "ConnectorsAsJSON")
    assert rig.get(hosts[0], "broadcastgroup.another", "Started") is True
    assert [line for line in rig.events("broadcast_group_started") if "another" in line]


def test_a_changed_connector_is_announced_and_that_of_a_cluster_connection_stays(rig: Rig) -> None:
    def both(settings: ClusterSettings) -> None:
        short(settings)
        settings.connectors["extra"] = ConnectorConfig("extra", "n0", 1)
        broadcast(settings).connectors.append("extra")

    hosts = [rig.node(discovery=True, whole=both), rig.node(discovery=True, whole=short)]
    rig.form(*hosts)

    def moved(settings: ClusterSettings) -> None:
        settings.connectors["extra"] = ConnectorConfig("extra", "n0", 2)
        settings.connectors["n0"] = ConnectorConfig("n0", "elsewhere", 3)

    reload(rig, hosts[0], moved)
    rig.run(1)
    [row] = json.loads(rig.ask(hosts[1], HEARD, "listHeardNodes"))
    assert row["address"] == "n0:2"
    settings = node_of(hosts[0]).config.cluster
    assert settings is not None and settings.transport("n0").address == "n0:61616"


def test_a_discovery_group_is_changed_under_its_cluster_connection(rig: Rig) -> None:
    hosts = pair(rig)

    def moved(settings: ClusterSettings) -> None:
        for group in (broadcast(settings), group_config(settings)):
            group.group_address, group.group_port = "231.7.7.8", 9_877
        group_config(settings).refresh_timeout_ms = 2_000

    for host in hosts:
        reload(rig, host, moved)
    rig.run(5)
    assert [heard(rig, host) for host in hosts] == [["node-1"], ["node-0"]]
    assert rig.get(hosts[0], HEARD, "RefreshTimeout") == 2_000
    hosts[1].crash()
    rig.run(3)
    assert heard(rig, hosts[0]) == []
    hosts[1].start()
    for host in hosts[1:]:
        reload(rig, host, moved)
    rig.formed()
    assert "discovery_silent" in " ".join(rig.events("discovery_silent"))


def test_a_group_and_the_bridge_that_uses_it_come_and_go_in_one_reload(rig: Rig) -> None:
    hosts = [rig.node(discovery=True, whole=short), rig.node(discovery=True, whole=short, mode="OFF")]
    rig.form(*hosts)
    bridge = CoreBridgeConfig("far", queue_name="orders", user=USER, password=PASSWORD)
    bridge.forwarding_address = "prices"
    bridge.discovery_group = "more"
    more = DiscoveryGroupConfig("more", group_address="231.7.7.7", group_port=9_876)

    def with_bridge(settings: ClusterSettings) -> None:
        settings.discovery_groups["more"] = more
        node_of(hosts[0]).config.bridges = CoreBridgeSettings([bridge])

    reload(rig, hosts[0], with_bridge)
    rig.until(lambda: heard(rig, hosts[0], "discoverygroup.more") == ["node-1"])
    assert rig.get(hosts[0], "discoverygroup.more", "Users") == ["bridge far"]
    rig.stored(hosts[0], "orders", [b"coffee"])
    rig.until(lambda: count(hosts[1], "archive") == 1)

    def without_group(settings: ClusterSettings) -> None:
        settings.discovery_groups.pop("more", None)

    reload(rig, hosts[0], without_group)
    assert rig.get(hosts[0], "broker", "DiscoveryGroupNames") == ["group", "more"], "it is in use"
    [line] = rig.events("discovery_group_kept")
    assert "bridge far" in line
    rig.ask(hosts[0], "bridge.far", "stop")
    rig.run(1)
    reload(rig, hosts[0], without_group)
    assert len(rig.events("discovery_group_kept")) == 2, "it may be started again"
    rig.ask(hosts[0], "bridge.far", "start")
    node_of(hosts[0]).config.bridges = CoreBridgeSettings()
    reload(rig, hosts[0], without_group)
    assert rig.get(hosts[0], "broker", "DiscoveryGroupNames") == ["group"]
    assert rig.events("discovery_group_removed")


def test_a_node_that_scales_down_neither_starts_a_group_nor_takes_one_over(rig: Rig) -> None:
    hosts = pair(rig)
    rig.filled(hosts[0], [b"coffee"])
    node = node_of(hosts[0])
    assert node.scale_down is not None
    node.leave(rig.world.now)
    hosts[0].flush_later()
    rig.until(lambda: node.scale_down is not None and node.scale_down.frozen)
    rig.ask(hosts[0], GROUP, "stop")
    with pytest.raises(BrokerError, match="leaves or stops"):
        rig.ask(hosts[0], GROUP, "start")

    def more(settings: ClusterSettings) -> None:
        settings.broadcast_groups.append(
            BroadcastGroupConfig("late", group_address="231.7.7.7", group_port=9_876, connectors=["n0"])
        )

    reload(rig, hosts[0], more)
    assert rig.get(hosts[0], "broker", "BroadcastGroupNames") == ["group"]
    rig.until(lambda: count(hosts[1], "orders") == 1)
