"""Whoever may send to the notification address may send what looks like news of a member: no node ends by it."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE
from atalanta.message.codec import text_body
from atalanta.message.message import Message
from atalanta.message.properties import Int
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT
from atalanta.wire.core.client.management import answer_of
from atalanta.wire.core.packets.session import CreateSessionResponse
from atalanta.wire.core.packets.topology import ClusterTopologyV4
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.protocol_error import ProtocolError
from tests.cluster.cluster_rig import Rig, cluster_of, linked, node_of
from tests.cluster.grouping.grouping_rig import grouped_cluster, grouping_of, send_group
from tests.cluster.scale_down.scale_down_rig import begin

NEWS = "activemq.notifications"
FAR = -(1 << 40)  # passes the filter of every peer; no int of Java


def test_a_binding_at_an_impossible_distance_is_not_believed(rig: Rig) -> None:
    first, second = rig.cluster(2)
    liar = rig.client(first)
    liar.publish(
        NEWS, b"", _AMQ_NotifType="BINDING_ADDED", _AMQ_Address="prices", _AMQ_RoutingName="x",
        _AMQ_ClusterName="xnode-0", _AMQ_Binding_ID=7, _AMQ_Distance=FAR,
    )  # fmt: skip
    rig.run(1)
    assert linked(second) == 1
    assert rig.events("n1 notification_incomplete")
    record = cluster_of(second).peers[node_of(first).broker.node_id]
    assert "xnode-0" not in record.bindings.bindings


@pytest.mark.parametrize("kind", ["CONSUMER_CREATED", "CONSUMER_CLOSED"])
def test_a_consumer_at_an_impossible_distance_harms_nobody(rig: Rig, kind: str) -> None:
    first, second = rig.cluster(2)
    liar = rig.client(first)
    liar.publish(
        NEWS, b"", _AMQ_NotifType=kind, _AMQ_Address="orders", _AMQ_RoutingName="orders",
        _AMQ_ClusterName="ordersnode-0", _AMQ_Distance=FAR,
    )  # fmt: skip
    rig.run(1)
    assert linked(second) == 1


@pytest.mark.parametrize("distance", [FAR, -1, True])
def test_a_session_at_an_impossible_distance_is_not_told_on(rig: Rig, distance: int) -> None:
    first, second = rig.cluster(2)
    listener = rig.client(second)
    listener.create("news", NEWS, 0)
    listener.consume("news")
    liar = rig.client(first)
    rig.run(1)
    listener.messages.clear()
    liar.publish(
        NEWS, b"", _AMQ_NotifType="SESSION_CREATED", _AMQ_Address=NEWS, _AMQ_Distance=distance
    )
    rig.run(1)
    assert linked(second) == 1
    assert not listener.messages


@pytest.mark.parametrize("kind", ["PROPOSAL", "PROPOSAL_RESPONSE", "UNPROPOSAL"])
def test_word_of_a_group_from_an_impossible_distance_is_not_passed_on(rig: Rig, kind: str) -> None:
    hosts = grouped_cluster(rig)
    liar = rig.client(hosts[1])
    liar.publish(
        NEWS, b"", _AMQ_NotifType=kind, _AMQ_Address="", _JBM_ProposalGroupId="g.orders",
        _JBM_ProposalValue="ordersnode-1", _AMQ_Distance=FAR,
    )  # fmt: skip
    rig.run(1)
    assert [linked(host) for host in hosts] == [2, 2, 2]


def told_of(rig: Rig, host: Host, node_id: str, event_id: int, target: str) -> None:
    """A peer of the host says that there is such a member."""
    packet = ClusterTopologyV4(exit=False, node_id=node_id, event_id=event_id)
    packet.primary = TransportConfiguration.tcp("x", target, PORT)
    (record,) = cluster_of(host).peers.values()
    assert record.bridge is not None
    record.bridge.on_packet(rig.world.now, packet, 0)


@pytest.mark.parametrize("node_id", ["", "a::b"])
def test_a_member_without_a_possible_node_id_is_none(rig: Rig, node_id: str) -> None:
    first, _ = rig.cluster(2)
    told_of(rig, first, node_id, 1, "nowhere")
    rig.run(3)
    assert node_id not in cluster_of(first).topology.members
    assert linked(first) == 1


def test_a_member_whose_node_id_is_no_text_gets_messages_like_any_other(rig: Rig) -> None:
    first = rig.node(node_id="node-\ud800")
    second = rig.node()
    rig.form(first, second)
    client = rig.consuming(first)
    rig.run(0.5)
    rig.client(second).publish("orders", b"1", 1)
    rig.until(lambda: client.bodies == [b"1"])
    part = begin(rig, first)
    rig.until(part.over)
    assert part.phase == DONE


def test_a_queue_in_the_place_of_a_members_queue_does_not_keep_the_cluster_from_forming(rig: Rig) -> None:
    first = rig.node()
    second = rig.node(node_id="node-b")
    first.start()
    squatter = rig.client(first)
    squatter.create(cluster_of(first).forward_name("node-b"), "orders")
    rig.run(1)
    second.start()
    rig.until(lambda: linked(first) == 1 and linked(second) == 1)


def test_a_member_with_the_last_of_all_event_ids_may_be_lost_and_come_back(rig: Rig) -> None:
    first, second = rig.cluster(2)
    told_of(rig, first, "node-1", (1 << 63) - 1, second.name)
    second.crash()
    rig.run(20)
    second.start()
    rig.formed()


def test_a_group_for_a_queue_whose_name_is_no_text_survives_a_restart(rig: Rig) -> None:
    """Names are UTF-16, lone surrogates included."""
    hosts = grouped_cluster(rig)
    liar = rig.client(hosts[1])
    liar.publish(
        NEWS, b"", _AMQ_NotifType="PROPOSAL", _AMQ_Address="", _JBM_ProposalGroupId="g.orders",
        _JBM_ProposalValue="\ud800node-1", _AMQ_Distance=Int(0),
    )  # fmt: skip
    rig.run(1)
    assert grouping_of(hosts[0]).chosen(rig.world.now, "g.orders") == "\ud800node-1"
    hosts[0].crash()
    hosts[0].start()
    rig.formed()
    sender = rig.client(hosts[0])
    send_group(sender, "another", "body")
    rig.until(lambda: sender.answers == [1])


def test_a_peer_that_opens_its_sessions_again_gets_no_second_consumer(rig: Rig) -> None:
    first, _ = rig.cluster(2)
    (record,) = cluster_of(first).peers.values()
    assert record.bridge is not None
    record.bridge.on_packet(rig.world.now, CreateSessionResponse(136), 1)
    rig.run(1)
    assert len(record.forward.consumers) == 1
    assert linked(first) == 1


DEEP = "[" * 100_000


def deep_answer() -> Message:
    answer = Message.create("answers", text_body(DEEP), 3, False, 0, 4)
    answer.properties.put("_AMQ_OperationSucceeded", True)
    return answer


def test_an_answer_that_no_parser_takes_is_an_error_of_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="not JSON"):
        answer_of(deep_answer())


def test_the_target_of_a_departure_whose_answer_is_no_json_loses_its_link(rig: Rig) -> None:
    first, _ = rig.cluster(2)
    part = begin(rig, first)
    while part.link is None or not part.link.requests.unanswered:
        assert not part.over()
        rig.world.step()
    with pytest.raises(ProtocolError, match="not JSON"):
        part.link.requests.on_message(rig.world.now, deep_answer())
