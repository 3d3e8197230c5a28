"""Messages that a core bridge may have sent come once, also when they then move to another node."""

from __future__ import annotations

import pytest

from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.kernel.queue.delivery.bridge_origin import shown
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.management.request.json_text import message_map
from atalanta.message.internal_headers import ORIGIN
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import Client, Rig, count, linked, node_of, queue_of
from tests.cluster.core_bridges.bridge_rig import bridge, bridge_of, connected
from tests.cluster.scale_down.scale_down_rig import begin, held, leave

BODIES = [b"%d" % number for number in range(5)]


def settings() -> CoreBridgeSettings:
    made = CoreBridgeSettings()
    made.bridges = [bridge(static_connectors=["n2"], producer_window_bytes=-1)]
    made.connectors = {"n2": ConnectorConfig("n2", "n2", PORT)}
    return made


class Members:
    """n0 and n1 are members, with bridges of `orders` to n2, which is none."""

    def __init__(self, second: bool = True, delay_ms: int = 0) -> None:
        rig = self.rig = Rig()
        mode = "OFF_WITH_REDISTRIBUTION"
        for bridges in (settings(), settings() if second else None):
            rig.node(peers=[1, 0], mode=mode, delay_ms=delay_ms, bridges=bridges)
        rig.node(peers=[], queues=[queue("inbox", "inbox", ANYCAST)])
        for host in rig.hosts:
            host.start()
        self.first, self.second, self.target = rig.hosts
        rig.until(lambda: linked(self.first) == 1 and linked(self.second) == 1)
        rig.until(lambda: connected(self.first) and (not second or connected(self.second)))

    def publish(self, host: Host, **properties: object) -> Client:
        return self.rig.stored(host, "orders", BODIES, ANYCAST, **properties)

    def sent_without_an_answer(self) -> None:
        """The target has what n0 sent, and n0 does not know."""
        self.rig.network.block("n2", "n0")
        self.publish(self.first)
        self.rig.until(lambda: count(self.target, "inbox") == len(BODIES))
        assert count(self.first, "orders") == len(BODIES)

    def attract(self, host: Host) -> None:
        """Somebody there wants `orders`, and takes none: other nodes know nothing of the consumers that bridges are."""
        self.rig.client(host).send(CreateConsumer(consumer_id=0, queue="orders"))

    def stop_bridge(self, host: Host, stop: bool = True) -> None:
        found = bridge_of(host)
        (found.stop if stop else found.start)(self.rig.world.now)
        host.flush_later()
        self.rig.run(0.2)


def test_redistributed_messages_are_no_others_for_the_bridge_there() -> None:
    members = Members()
    rig = members.rig
    members.sent_without_an_answer()
    rig.until(lambda: bridge_of(members.first).link is None)
    members.attract(members.second)
    rig.until(lambda: bridge_of(members.second).acknowledged == len(BODIES), 60)
    rig.network.heal()
    rig.run(5)
    assert held(members.target, "inbox") == BODIES
    assert not node_of(members.target).broker.origins.seen


def test_messages_of_a_node_that_left_are_no_others_for_the_bridge_there() -> None:
    members = Members(delay_ms=-1)
    rig = members.rig
    members.sent_without_an_answer()
    leave(rig, members.first)
    rig.until(lambda: bridge_of(members.second).acknowledged == len(BODIES), 60)
    assert held(members.target, "inbox") == BODIES
    assert count(members.second, "orders") == 0


def test_a_bridge_that_is_stopped_and_started_while_messages_move_brings_them_once() -> None:
    members = Members(delay_ms=-1)
    rig = members.rig
    members.stop_bridge(members.second)
    members.sent_without_an_answer()
    members.stop_bridge(members.first)  # waits for answers
    part = begin(rig, members.first)
    members.stop_bridge(members.second, False)
    rig.until(part.over, 60)
    members.stop_bridge(members.second)
    members.stop_bridge(members.second, False)
    rig.until(lambda: count(members.second, "orders") == 0, 60)
    assert held(members.target, "inbox") == BODIES


@pytest.mark.parametrize("crash", [False, True])
def test_messages_that_return_to_their_bridge_are_the_same(crash: bool) -> None:
    """From a node without that bridge, also after a crash of it."""
    members = Members(second=False)
    rig = members.rig
    members.sent_without_an_answer()
    leave(rig, members.first)
    assert held(members.second, "orders") == BODIES
    if crash:
        members.second.crash()
        members.second.start()
    rig.network.heal()
    members.first.start()
    members.attract(members.first)
    rig.until(lambda: bridge_of(members.first).acknowledged == len(BODIES), 60)
    assert held(members.target, "inbox") == BODIES
    arrived = queue_of(members.target, "inbox").live()
    assert not any(each.message.has_property(ORIGIN) for each in arrived)


def test_a_departure_that_goes_on_after_a_crash_tells_the_ids() -> None:
    members = Members(second=False)
    rig = members.rig
    members.sent_without_an_answer()
    part = node_of(members.first).scale_down
    assert part is not None
    node_of(members.first).leave(rig.world.now)
    members.first.flush_later()
    rig.until(lambda: part.frozen)
    members.first.crash()
    rig.network.heal()
    members.first.start()
    rig.until(lambda: count(members.second, "orders") == len(BODIES), 60)
    rig.run(1)
    members.first.stop()
    members.first.start()
    members.attract(members.first)
    rig.until(lambda: bridge_of(members.first).acknowledged == len(BODIES), 60)
    assert held(members.target, "inbox") == BODIES


@pytest.mark.parametrize("moves", ["leaves", "redistributes"])
def test_what_a_bridge_sent_that_is_no_longer_configured_is_known_too(moves: str) -> None:
    """The configuration lost it at a restart, before its messages move."""
    members = Members(delay_ms=0 if moves == "redistributes" else -1)
    rig = members.rig
    members.sent_without_an_answer()
    bridges = node_of(members.first).config.bridges
    for _ in range(2):
        members.first.crash()
        bridges.bridges = []
        rig.network.heal()
        members.first.start()
        rig.until(lambda: linked(members.first) == 1)
    assert count(members.first, "orders") == len(BODIES)
    if moves == "leaves":
        leave(rig, members.first)
    else:
        members.attract(members.second)
    rig.until(lambda: bridge_of(members.second).acknowledged == len(BODIES), 60)
    rig.run(1)
    assert held(members.target, "inbox") == BODIES


def test_a_queue_whose_bridge_is_gone_and_that_is_empty_is_forgotten() -> None:
    members = Members(second=False)
    rig = members.rig
    assert node_of(members.first).broker.values.has("bridged.orders")
    node_of(members.first).config.bridges.bridges = []
    for known in (False, False):
        members.first.stop()
        members.first.start()
        rig.until(lambda: linked(members.first) == 1)
        assert node_of(members.first).broker.values.has("bridged.orders") is known
        assert node_of(members.first).broker.origins.bridged == {}


def test_clients_and_readers_are_not_shown_where_a_message_was() -> None:
    members = Members(delay_ms=-1)
    rig = members.rig
    members.stop_bridge(members.second)
    members.sent_without_an_answer()
    leave(rig, members.first)
    moved = queue_of(members.second, "orders").references[0].message
    assert moved.has_property(ORIGIN)
    assert ORIGIN not in message_map(moved, -1)
    assert not shown(moved).has_property(ORIGIN) and shown(moved).id == moved.id
    consumer = rig.consuming(members.second)
    rig.until(lambda: len(consumer.bodies) == len(BODIES))
    assert consumer.bodies == BODIES
    names = [list(each.message.properties.entries) for each in consumer.messages]
    assert names == [["_AMQ_ROUTING_TYPE"]] * len(BODIES)


def test_what_a_client_says_of_it_counts_for_nothing() -> None:
    members = Members()
    members.publish(members.first, **{ORIGIN: bytes(24)})
    members.rig.until(lambda: count(members.target, "inbox") == len(BODIES))
    assert held(members.target, "inbox") == BODIES
