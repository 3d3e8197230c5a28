"""Core bridges while the node runs: management, reload, queues and transformers that come and go, discovery."""

from __future__ import annotations

import json
from typing import Any

import pytest

from atalanta.cluster.config import DiscoveryGroupConfig
from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.cluster.core_bridges.definition import config_of, definition_of
from atalanta.cluster.core_bridges.targets import CoreBridgeTargets
from atalanta.cluster.native_config import OwnBridge
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.divert_config import ADD_HEADERS
from atalanta.message.message import Message
from atalanta.node.config import NodeConfig
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.session import SessionClose
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import parse_connector
from tests.cluster.cluster_rig import count, node_of
from tests.cluster.core_bridges.bridge_rig import (
    BridgeRig,
    bridge,
    bridge_of,
    connected,
    source_queues,
)

JSON = {
    "name": "made",
    "queue-name": "orders",
    "forwarding-address": "inbox",
    "user": "user",
    "password": "password",
    "static-connectors": ["n1"],
    "retry-interval": "500",
    "routing-type": "PASS",
}


def shown(rig: BridgeRig, host: Host, name: str) -> dict[str, object]:
    attributes = node_of(host).management.controls["bridge"].attributes
    return {key: rig.get(host, f"bridge.{name}", key) for key in attributes}


def test_attributes_are_those_of_artemis(rig: BridgeRig) -> None:
    source, _ = rig.pair(bridge(filter_text="x > 1"))
    rig.client(source).publish("orders", b"x", ANYCAST, x=2)
    rig.until(lambda: bridge_of(source).acknowledged == 1)
    found = shown(rig, source, "away")
    assert found["QueueName"] == "orders" and found["ForwardingAddress"] == "inbox"
    assert found["FilterString"] == "x > 1" and found["StaticConnectors"] == ["n1"]
    assert (found["Started"], found["Connected"]) == (True, True)
    assert (found["MessagesPendingAcknowledgement"], found["MessagesAcknowledged"]) == (1, 1)


def test_stopped_it_keeps_its_messages_and_started_it_sends_them(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge())
    rig.ask(source, "broker", "stopBridge", "away")
    rig.until(lambda: bridge_of(source).state == "stopped")
    assert any(isinstance(packet, SessionClose) for _, packet in rig.packets(source, target))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.run(3)
    assert count(target, "inbox") == 0
    rig.ask(source, "broker", "startBridge", "away")
    rig.until(lambda: count(target, "inbox") == 1)


def test_what_is_on_its_way_may_arrive_before_it_stops(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(producer_window_bytes=-1, pending_ack_timeout_ms=4_000))
    rig.network.block("n1", "n0")
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: bridge_of(source).sent == 1)
    rig.ask(source, "broker", "stopBridge", "away")
    rig.run(1)
    assert bridge_of(source).state == "stopping" and bridge_of(source).link is not None
    rig.network.heal()
    rig.until(lambda: bridge_of(source).state == "stopped")
    assert (count(source, "orders"), count(target, "inbox")) == (0, 1)


def test_after_pending_ack_timeout_it_stops_all_the_same_and_repeats_later(rig: BridgeRig) -> None:
    config = bridge(
        producer_window_bytes=-1, pending_ack_timeout_ms=1_000, connection_ttl_ms=60_000
    )
    source, target = rig.pair(config)
    rig.network.block("n1", "n0")
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: bridge_of(source).sent == 1)
    rig.ask(source, "broker", "stopBridge", "away")
    rig.until(lambda: bridge_of(source).state == "stopped", 3)
    assert count(source, "orders") == 1
    rig.network.heal()
    rig.ask(source, "broker", "startBridge", "away")
    rig.until(lambda: count(source, "orders") == 0)
    assert count(target, "inbox") == 1


def test_management_makes_bridges_that_survive_a_restart(rig: BridgeRig) -> None:
    source, target = rig.single(), rig.single()
    rig.ask(source, "broker", "createBridge", json.dumps(JSON))
    rig.until(lambda: connected(source, "made"))
    rig.run(1)
    source.crash()
    source.start()
    rig.until(lambda: connected(source, "made"))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(target, "inbox") == 1)
    rig.ask(source, "broker", "destroyBridge", "made")
    rig.run(1)
    source.crash()
    source.start()
    rig.run(1)
    assert rig.get(source, "broker", "BridgeNames") == []


def test_the_older_forms_of_create_bridge(rig: BridgeRig) -> None:
    source = rig.single()
    rig.single()
    rig.ask(source, "broker", "createBridge", "old", "orders", "inbox", None, None, 500, 1.0, -1, -1, True,
        1_000_000, 30_000, "n1", False, False, "user", "password")  # fmt: skip
    rig.ask(source, "broker", "createBridge", "newer", "archive", "inbox", "x > 1", ADD_HEADERS, {"a": "b"},
        500, 1.0, 3, 4, True, 1_000_000, 5_000, 30_000, "n1", False, True, "user", "password")  # fmt: skip
    rig.until(lambda: connected(source, "old") and connected(source, "newer"))
    config = bridge_of(source, "newer").config
    assert config.transformer_properties == {"a": "b"} and config.producer_window_bytes == 5_000
    assert (config.initial_connect_attempts, config.reconnect_attempts, config.ha) == (3, 4, True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"static-connectors": ["absent"]}, "no connector absent"),
        ({"static-connectors": None}, "needs connectors"),
        ({"queue-name": ""}, "needs a queue-name"),
        ({"filter-string": "x ="}, "invalid filter"),
        ({"concurrency": 0}, "concurrency"),
        ({"confirmation-window-size": 1 << 31}, "more than 2147483647"),
        ({"min-large-message-size": 1 << 31}, "more than 2147483647"),
        ({"producer-window-size": 1 << 31}, "more than 2147483647"),
        ({"connection-ttl": 1 << 63}, "more than"),
        ({"retry-interval": "soon"}, "not a number"),
        ({"retry-interval-multiplier": 0}, "0 is not above 0"),
        ({"nonsense": 1}, "nonsense"),
        ({"transformer-configuration": {"class-name": "os.system"}}, "is Java"),
        ({"discovery-group-name": "absent"}, "no discovery-group absent"),
    ],
)
def test_what_cannot_be_made_is_refused(rig: BridgeRig, change: dict[str, object], why: str) -> None:
    source = rig.single()
    with pytest.raises(BrokerError, match=why):
        rig.ask(source, "broker", "createBridge", json.dumps({**JSON, **change}))
    assert not rig.get(source, "broker", "BridgeNames")


@pytest.mark.parametrize("multiplier", [1e10, float("inf")])
def test_pauses_that_grow_beyond_all_numbers_are_the_longest_one(rig: BridgeRig, multiplier: float) -> None:
    source = rig.single()
    given = {**JSON, "retry-interval-multiplier": multiplier, "max-retry-interval": 1_000}
    rig.ask(source, "broker", "createBridge", json.dumps(given))
    rig.run(60)
    assert rig.dials("n1") >= 50
    rig.single()
    rig.until(lambda: connected(source, "made"))


def test_a_definition_comes_back_as_it_was() -> None:
    config = bridge(
        filter_text="a = 1",
        transformer_class=ADD_HEADERS,
        transformer_properties={"k": "v"},
        routing_type=-1,
        client_id="me",
    )
    assert config_of(json.loads(json.dumps(definition_of(config)))) == config


def settings_with(*configs: Any) -> CoreBridgeSettings:
    rig = BridgeRig()
    host = rig.single()
    made = node_of(host).config.bridges
    made.bridges = list(configs)
    return made


def test_a_reload_makes_changes_and_ends_bridges(rig: BridgeRig) -> None:
    kept, gone, changed = bridge("kept"), bridge("gone"), bridge("changed")
    source = rig.single(kept, gone, changed)
    rig.single()
    rig.until(lambda: all(connected(source, name) for name in ("kept", "gone", "changed")))
    before = bridge_of(source, "kept")
    fresh = settings_with(bridge("kept"), bridge("changed", filter_text="x = 1"), bridge("new"))
    node_of(source).bridges.reload(rig.world.now, fresh)
    source.flush_later()
    rig.until(lambda: all(connected(source, name) for name in ("kept", "changed", "new")))
    assert bridge_of(source, "kept") is before
    bridges = node_of(source).bridges
    assert list(bridges.by_name) == ["kept", "changed", "new"]
    assert bridge_of(source, "changed").config.filter_text == "x = 1"
    rig.until(lambda: len(bridges.by_number) == 3)


def test_a_bridge_goes_and_comes_with_its_queue(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge())
    ask_broker = node_of(source).broker
    ask_broker.queue_registry.delete(rig.world.now, "orders", "by a test")
    source.flush_later()
    rig.until(lambda: bridge_of(source).link is None)
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(target, "inbox") == 1)


def test_prefix_and_suffix_are_put_around_the_address(rig: BridgeRig) -> None:
    own = CoreBridgeSettings(own={"away": OwnBridge("eu.", ".copy")})
    source = rig.single(bridge(forwarding_address=None), own=own)
    target = rig.single(queues=[queue("taken", "eu.orders.copy", ANYCAST)])
    rig.until(lambda: connected(source))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(target, "taken") == 1)


def shout(message: Message) -> None:
    message.body = message.body.upper()
    message.properties.put("by", "shout")


def test_a_python_function_transforms_messages(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(), own=CoreBridgeSettings(transforms={"away": shout}))
    consumer = rig.consuming(target, "inbox")
    rig.client(source).publish("orders", b"quiet", ANYCAST)
    rig.until(lambda: consumer.bodies == [b"QUIET"])
    assert consumer.messages[0].message.properties.get("by") == "shout"


def choosy(message: Message) -> None:
    if message.body == b"bad":
        raise ValueError("no")


def dead_letters(config: NodeConfig) -> None:
    config.settings.add("#", {"dead_letter_address": "dead"})


def test_what_a_function_refuses_goes_to_the_dead_letters(rig: BridgeRig) -> None:
    own = CoreBridgeSettings(transforms={"away": choosy})
    queues = [*source_queues(), queue("dead", "dead", ANYCAST)]
    source, target = rig.pair(bridge(), own=own, change=dead_letters, queues=queues)
    rig.sender(source, "orders", [b"a", b"bad", b"b"], ANYCAST)
    rig.until(lambda: count(target, "inbox") == 2 and count(source, "dead") == 1)
    assert rig.events("core_bridge_transformer_failed")


def test_without_dead_letters_what_a_function_refuses_holds_up_the_bridge(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(), own=CoreBridgeSettings(transforms={"away": choosy}))
    rig.sender(source, "orders", [b"a", b"bad", b"b"], ANYCAST)
    rig.run(10)
    assert (count(target, "inbox"), count(source, "orders")) == (1, 2)


def test_targets_are_found_by_a_discovery_group(rig: BridgeRig) -> None:
    def listening(config: NodeConfig) -> None:
        group = DiscoveryGroupConfig("group", group_address="231.7.7.7", group_port=9876)
        config.bridges.discovery_groups["group"] = group

    config = bridge(static_connectors=[], discovery_group="group", forwarding_address=None, ha=True)
    source = rig.single(config, change=listening)
    rig.run(3)
    assert not connected(source)
    target = rig.node(discovery=True, queues=[queue("taken", "orders", ANYCAST)])
    target.start()
    rig.until(lambda: connected(source))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(target, "taken") == 1)


TLS = "?sslEnabled=true;trustStorePath=t.p12"


@pytest.mark.parametrize(
    ("static", "announced", "connector"),
    [("", False, ""), (TLS, False, "n1"), (TLS, True, "n1"), ("", True, "theirs (TLS)")],
)
def test_members_that_were_learnt_get_no_password_in_plain_text(
    static: str, announced: bool, connector: str
) -> None:
    settings = CoreBridgeSettings(connectors={"n1": parse_connector("n1", f"tcp://n1:1{static}")})
    targets = CoreBridgeTargets(bridge(static_connectors=["n1"], ha=True), settings)
    learnt = TransportConfiguration.tcp("theirs", "other", 2)
    if announced:
        learnt.put("sslEnabled", "true")
    targets.members["other"] = [learnt]
    first, second = targets.next(), targets.next()
    assert first is not None and second is not None
    assert (first.connector, second.connector) == ("n1" if static else "", connector)


def test_metrics_have_the_figures_of_bridges(rig: BridgeRig) -> None:
    source, _ = rig.pair(bridge())
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: bridge_of(source).acknowledged == 1)
    text = "".join(node_of(source).management.metrics())
    assert 'atalanta_bridge_connected{broker="n0",bridge="away"} 1\n' in text
    assert 'atalanta_bridge_messages_acknowledged_total{broker="n0",bridge="away"} 1\n' in text


@pytest.mark.parametrize(
    "operation",
    ["listConsumers", "listAllConsumersAsJSON", "listQueues", "listNetworkTopology"],
)
def test_lists_of_the_broker_do_not_mind_a_consumer_without_a_client(rig: BridgeRig, operation: str) -> None:
    source, _ = rig.pair(bridge())
    given: list[object] = ["", 1, 100] if operation in ("listConsumers", "listQueues") else []
    assert isinstance(rig.ask(source, "broker", operation, *given), str)
    assert isinstance(rig.ask(source, "queue.orders", "listConsumersAsJSON"), str)
