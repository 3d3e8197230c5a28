"""Failures while a node leaves: nothing is lost, nothing comes twice, and what could not be moved stays."""

from __future__ import annotations

import copy

import pytest

from atalanta.cluster.connection.bridge import ClusterBridge
from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.nodes import PORT
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import Client, Rig, count, node_of, queue_of
from tests.cluster.core_bridges.bridge_rig import bridge
from tests.cluster.scale_down.scale_down_rig import begin, departure, held, stocked, to, underway

MESSAGES = [b"%d" % number for number in range(60)]


@pytest.mark.parametrize("moved", [1, 13, 30, 59])
def test_the_leaving_node_crashes_midway_and_goes_on(moved: int) -> None:
    """Messages that were under way may be at both: nobody gets them here before the target has said so."""
    rig, target, leaving = stocked(MESSAGES, 5)
    underway(rig, leaving, moved)
    leaving.crash()
    leaving.start()
    client = Client(rig.world, rig.network, "eager", leaving.name)
    client.start()
    part = departure(leaving)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    assert not client.ready
    rig.run(0.1)  # the mark of the departure goes
    leaving.stop()
    assert held(target, "orders") == MESSAGES
    leaving.start()
    rig.formed()
    assert departure(leaving).phase == "none"


def test_answers_to_the_leaving_node_take_no_room_at_the_target() -> None:
    """They filled a target with little memory that lets senders wait (BLOCK), and both waited for ever."""
    rig, target, leaving = stocked(MESSAGES, 5)
    underway(rig, leaving, 30)
    replies = [
        queue.message_count
        for queue in node_of(target).broker.queues.values()
        if queue.name.startswith("activemq.management.")
    ]
    assert replies == [0]


def test_a_new_configuration_starts_no_bridge_at_a_node_that_leaves() -> None:
    """Messages that were under way may be at the target: a bridge would give them to somebody else as well."""
    rig, target, leaving = stocked(MESSAGES, 5)
    underway(rig, leaving, 13)
    leaving.crash()
    target.crash()
    leaving.start()
    node = node_of(leaving)
    config = copy.copy(node.config)
    connectors = {"n2": ConnectorConfig("n2", "n2", PORT)}
    config.bridges = CoreBridgeSettings(
        [bridge(static_connectors=["n2"], forwarding_address="orders")], connectors
    )
    other = rig.node([])
    other.start()
    node.on_reload(rig.world.now, config)
    leaving.flush_later()
    rig.run(5)
    assert count(other, "orders") == 0
    target.start()
    rig.until(departure(leaving).over)
    assert held(target, "orders") == MESSAGES


def test_a_node_that_goes_on_leaving_makes_no_bridge_to_a_member_that_comes(rig: Rig) -> None:
    """Messages that wait for that member may be at the target, and on their way from there."""
    target, third, leaving = hosts = [rig.node(peers=[0, 1, 2], mode="OFF") for _ in range(3)]
    rig.form(*hosts)
    rig.filled(leaving, MESSAGES)
    to(leaving, "n0", 1)
    underway(rig, leaving, 13)
    leaving.crash()
    third.crash()
    rig.network.latency_ns = (20_000_000, 21_000_000)
    leaving.start()
    part = departure(leaving)
    rig.until(lambda: part.members_disconnected)
    third.start()
    while not part.over():
        assert not any(isinstance(each, ClusterBridge) for each in node_of(leaving).connections.values())
        rig.run(0.01)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == MESSAGES


def test_a_target_that_answers_in_the_turn_in_which_time_is_up_changes_nothing() -> None:
    rig, _, leaving = stocked(MESSAGES, 5)
    part = begin(rig, leaving)
    while part.link is None or not part.link.requests.unanswered:
        rig.world.step()
    link = part.link
    part.on_timer(rig.world.now, "scaledown.deadline")
    assert part.phase == FAILED
    link.requests.unanswered.popleft()(rig.world.now, True, "node-0")
    assert (part.phase, part.frozen) == (FAILED, False)


def test_a_crash_before_the_target_is_known_ends_the_departure() -> None:
    rig, target, leaving = stocked(MESSAGES, 5)
    begin(rig, leaving)
    leaving.crash()
    leaving.start()
    rig.formed()
    assert departure(leaving).phase == "none"
    assert held(leaving, "orders") == MESSAGES


def test_who_wants_to_can_serve_clients_after_a_crash_all_the_same() -> None:
    rig, target, leaving = stocked(MESSAGES, 5, own=OwnSettings(scale_down_resume=False))
    underway(rig, leaving, 13)
    leaving.crash()
    for _ in range(2):
        leaving.start()
        rig.formed()
        assert departure(leaving).phase == "none"
        leaving.stop()
    assert rig.events("scale_down_forgotten node=node-0")


def test_what_stays_for_a_reader_stays_after_a_crash_too() -> None:
    """The reader may have stored what it was shown: it must not lie at the target."""
    rig, target, leaving = stocked(MESSAGES, 5)
    departure(leaving).pinned["orders"] = queue_of(leaving, "orders").references[9].sequence
    underway(rig, leaving, 5)
    leaving.crash()
    leaving.start()
    part = departure(leaving)
    rig.until(lambda: part.over() and node_of(leaving).journal.idle())
    leaving.stop()
    assert held(target, "orders") == MESSAGES[10:]
    leaving.start()
    rig.formed()
    assert held(leaving, "orders") == MESSAGES[:10]


@pytest.mark.parametrize("moved", [0, 13, 30, 59])
def test_the_target_crashes_midway_and_comes_back(moved: int) -> None:
    rig, target, leaving = stocked(MESSAGES, 5)
    underway(rig, leaving, moved)
    target.crash()
    rig.run(2)
    target.start()
    part = departure(leaving)
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    leaving.stop()
    assert held(target, "orders") == MESSAGES


def test_what_cannot_be_moved_in_time_stays_and_is_said() -> None:
    rig, target, leaving = stocked(MESSAGES, 5)
    departure(leaving).timeout_ms = 20_000
    underway(rig, leaving, 20)
    target.crash()
    part = departure(leaving)
    rig.until(part.over, 60)
    assert part.phase == FAILED
    assert "not done within 20 s" in part.why
    left = part.queues_left()
    assert left == {"orders": len(MESSAGES) - part.moved}
    assert rig.events("scale_down_left queue=orders")
    leaving.stop()
    target.start()
    assert held(target, "orders")[: part.moved] == MESSAGES[: part.moved]
    # At most what was under way is in both places, and the target knows it again.
    leaving.start()
    rig.until(departure(leaving).over)
    assert departure(leaving).phase == DONE
    assert held(target, "orders") == MESSAGES


def test_without_anybody_to_take_over_the_node_says_so_and_keeps_its_clients(rig: Rig) -> None:
    alone = rig.node()
    alone.start()
    client = rig.client(alone)
    part = begin(rig, alone)
    rig.until(part.over)
    assert part.phase == FAILED and not part.frozen
    assert part.why == "no other member is known"
    client.publish("orders", b"still served", ANYCAST)
    rig.until(lambda: client.answers == [1])
