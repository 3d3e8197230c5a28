"""Where a core bridge connects to, how often, and what is there after long absences and crashes."""

from __future__ import annotations

import pytest

from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.cluster.core_bridges.targets import CoreBridgeTargets
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.wire.core.packets.topology import ClusterTopology
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import count, linked
from tests.cluster.core_bridges.bridge_rig import (
    BridgeRig,
    bridge,
    bridge_of,
    connected,
    target_queues,
)
from tests.cluster.pair_rig import announce


def test_a_target_away_for_hours_costs_nothing_and_keeps_order(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge())
    producer = rig.sender(source, "orders", [b"%d" % number for number in range(50)], ANYCAST)
    target.crash()
    for number in range(50, 100):
        producer.publish("orders", b"%d" % number, ANYCAST)
    rig.run(3 * 3_600)
    assert len(producer.answers) == 100
    target.start()
    rig.until(lambda: count(source, "orders") == 0, 30)
    consumer = rig.consuming(target, "inbox")
    rig.until(lambda: len(consumer.bodies) == 100)
    assert consumer.bodies == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize(("limit", "tried"), [(0, 1), (3, 4)])
def test_initial_attempts_are_used_up_and_the_bridge_stops(rig: BridgeRig, limit: int, tried: int) -> None:
    source = rig.single(bridge(initial_connect_attempts=limit))
    rig.run(20)
    assert rig.dials("n1") == tried
    assert bridge_of(source).state == "stopped" and rig.events("core_bridge_gave_up")
    rig.single()
    bridge_of(source).start(rig.world.now)
    rig.until(lambda: connected(source))


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_reconnect_attempts_count_from_the_loss(rig: BridgeRig, limit: int) -> None:
    source, target = rig.pair(bridge(reconnect_attempts=limit))
    before = rig.dials("n1")
    target.crash()
    rig.run(30)
    assert rig.dials("n1") - before == limit
    assert bridge_of(source).state == "stopped"


def test_pauses_grow_up_to_the_longest(rig: BridgeRig) -> None:
    config = bridge(
        retry_interval_ms=1_000, retry_interval_multiplier=2.0, max_retry_interval_ms=5_000
    )
    rig.single(config)
    rig.run(25)
    times = rig.dial_times("n1")
    pauses = [round(later - earlier) for earlier, later in zip(times, times[1:], strict=False)]
    assert pauses[:5] == [1, 2, 4, 5, 5]


def test_static_connectors_are_tried_in_turn(rig: BridgeRig) -> None:
    source = rig.single(bridge(static_connectors=["n3", "n1", "n2"]))
    rig.single()
    rig.until(lambda: connected(source))
    assert bridge_of(source).place() == "n1:61616"


def topology(node_id: str, *places: str) -> ClusterTopology:
    transports = [TransportConfiguration.tcp(place, place, 61616) for place in places]
    backup = transports[1] if len(transports) > 1 else None
    return ClusterTopology(
        exit=False, node_id=node_id, event_id=1, primary=transports[0], backup=backup
    )


def targets(same_node: int, ha: bool) -> CoreBridgeTargets:
    settings = CoreBridgeSettings()
    for name in ("n1", "n2"):
        settings.connectors[name] = ConnectorConfig(name, name, 61616)
    config = bridge(static_connectors=["n1", "n2"], reconnect_attempts_same_node=same_node, ha=ha)
    made = CoreBridgeTargets(config, settings)
    assert made.next() is not None
    made.connected()
    made.on_topology(topology("one", "n1", "b1"))
    made.on_topology(topology("six", "n6"))
    return made


def places(found: CoreBridgeTargets, times: int) -> list[str]:
    return [target.transport.host for target in (found.next() for _ in range(times)) if target]


@pytest.mark.parametrize(
    ("same_node", "ha", "expected"),
    [
        (3, False, ["n1", "b1", "n1", "n1", "n2", "n1"]),
        (0, False, ["n1", "n2", "n1", "n2", "n1", "n2"]),
        (-1, False, ["n1", "b1", "n1", "b1", "n1", "b1"]),
        (0, True, ["n1", "n2", "b1", "n6", "n1", "n2"]),
    ],
)
def test_the_same_node_first_then_connectors_and_with_ha_every_member(
    same_node: int, ha: bool, expected: list[str]
) -> None:
    assert places(targets(same_node, ha), 6) == expected


def test_a_node_that_scales_down_is_followed_to_its_target() -> None:
    found = targets(2, False)
    found.leaves_for("six")
    assert places(found, 3) == ["n6", "n6", "n1"]
    found.leaves_for("unknown")
    assert places(found, 1) == ["n2"]


def test_members_with_impossible_places_are_left_out() -> None:
    found = targets(0, True)
    found.on_topology(
        ClusterTopology(
            exit=False,
            node_id="bad",
            event_id=1,
            primary=TransportConfiguration.tcp("x", "x", 99_999),
        )
    )
    assert "bad" not in found.members


def test_with_ha_another_member_takes_over(rig: BridgeRig) -> None:
    """The bridge is told of n1 alone; n1 and n2 are one cluster."""
    source = rig.single(bridge(ha=True, reconnect_attempts_same_node=2))
    members = [
        rig.node(peers=[2], queues=target_queues()),
        rig.node(peers=[1], queues=target_queues()),
    ]
    for host in members:
        host.start()
    rig.until(lambda: all(linked(host) == 1 for host in members) and connected(source))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(members[0], "inbox") == 1)
    members[0].crash()
    rig.client(source).publish("orders", b"y", ANYCAST)
    rig.until(lambda: count(members[1], "inbox") == 1, 30)
    assert bridge_of(source).place() == "n2:61616"


def test_a_bridge_follows_its_target_to_the_backup_and_nothing_is_doubled(rig: BridgeRig) -> None:
    """The bridge is told of n1 alone. The answers of the last messages were lost with it."""
    source = rig.single(bridge(reconnect_attempts_same_node=-1))
    active = rig.node(peers=[], queues=target_queues())
    active.start()
    rig.until(lambda: connected(source))
    backup = rig.node(peers=[], queues=target_queues(), backup_of=1)
    announce(rig, active, backup)
    producer = rig.sender(source, "orders", [b"0"], ANYCAST)
    rig.until(lambda: count(active, "inbox") == 1)
    rig.run(1)
    rig.network.block(active.name, source.name)
    for number in range(1, 10):
        producer.publish("orders", b"%d" % number, ANYCAST)
    rig.until(lambda: count(active, "inbox") == 10)
    rig.run(1)
    active.crash()
    for number in range(10, 20):
        producer.publish("orders", b"%d" % number, ANYCAST)
    rig.run(3)
    backup.take_over(active)
    rig.until(lambda: count(source, "orders") == 0, 30)
    consumer = rig.consuming(backup, "inbox")
    rig.run(2)
    assert consumer.bodies == [b"%d" % number for number in range(20)]
    assert bridge_of(source).place() == "n2:61616"


def test_a_target_that_stops_is_waited_for(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge())
    target.stop()
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.run(5)
    target.start()
    rig.until(lambda: count(target, "inbox") == 1)
