"""Senders that wait for a decision: transactions, XA, large messages, lost connections, and what peers say."""

from __future__ import annotations

import pytest

from atalanta.cluster.grouping.config import LOCAL, REMOTE, GroupingHandlerConfig
from atalanta.cluster.grouping.handler import UNPROPOSAL
from atalanta.kernel.broker.notifications import Properties
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.properties import Byte, Int, PropertyValue
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.session import SessionClose
from atalanta.wire.core.packets.transaction import Commit, Rollback
from tests.cluster.cluster_rig import Client, Rig, count, node_of
from tests.cluster.connection.overlapping_rig import StompUser
from tests.cluster.grouping.grouping_rig import (
    bodies_at,
    group_stored,
    grouped_cluster,
    grouping_of,
    handler,
    holders,
    pins_of,
    send_group,
)
from tests.cluster.links.large_client import LargeClient


class Transacted(Client):
    transacted = True


def test_a_transaction_with_many_new_groups_is_one(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    sender = rig.connected(hosts[1], Transacted)
    for number in range(30):
        send_group(sender, f"g{number % 10}", str(number))
    sender.send(Commit(correlation=99))
    rig.until(lambda: 99 in sender.answers)
    assert len(pins_of(hosts[0])) == 10
    rig.run(1)
    assert sum(count(host, "orders") for host in hosts) == 30


def test_what_a_core_bridge_repeats_is_known_although_its_group_had_to_be_decided(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    bridge = rig.client(hosts[1])
    for _ in range(2):
        bridge.publish("orders", b"once", ANYCAST, _AMQ_GROUP_ID="red", _AMQ_BRIDGE_DUP=b"1" * 24)
        rig.until(lambda: len(bridge.answers) == bridge.number)
    rig.run(1)
    assert sum(count(host, "orders") for host in hosts) == 1


@pytest.mark.parametrize("later", [False, True])
def test_a_transaction_that_waits_for_a_group_keeps_what_bridges_wrote(rig: Rig, later: bool) -> None:
    """Also of its other messages: they are prepared again with the one that has to wait."""
    hosts = grouped_cluster(rig)
    sender = rig.connected(hosts[1], Transacted)
    if later:
        send_group(sender, "red", "grouped")
    sender.publish("orders", b"once", ANYCAST, _AMQ_BRIDGE_DUP=b"1" * 24)
    if not later:
        send_group(sender, "red", "grouped")
    sender.send(Commit(correlation=99))
    rig.until(lambda: 99 in sender.answers)
    repeats = rig.client(hosts[1])
    repeats.publish("orders", b"once", ANYCAST, _AMQ_BRIDGE_DUP=b"1" * 24)
    rig.until(lambda: repeats.answers == [1])
    rig.run(1)
    held = sorted(body for host in hosts for body in bodies_at(host))
    assert held == [b"grouped", b"once"]


def test_a_transaction_without_a_decision_is_rolled_back(rig: Rig) -> None:
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 1_000))
    sender = rig.connected(hosts[1], Transacted)
    hosts[0].crash()
    send_group(sender, "red", "1")
    sender.publish("orders", b"2")
    sender.send(Commit(correlation=99))
    rig.until(lambda: sender.errors)
    assert sender.errors[0].correlation == 99
    hosts[0].start()
    rig.formed()
    sender.publish("orders", b"3")
    sender.send(Commit(correlation=100))
    rig.until(lambda: 100 in sender.answers)
    assert [body for host in hosts for body in bodies_at(host)] == [b"3"]


def test_a_large_message_waits_as_a_whole(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    sender = rig.connected(hosts[1], LargeClient)
    assert isinstance(sender, LargeClient)
    hosts[0].crash()
    sender.publish_large("orders", b"y" * 300_000, "red")
    rig.run(1)
    assert grouping_of(hosts[1]).questions
    assert not sender.answers
    assert len(hosts[1].large.files()) == 1
    hosts[0].start()
    rig.until(lambda: sender.answers == [1])
    reader = rig.connected(hosts[1], LargeClient)
    reader.consume("orders")
    rig.until(lambda: reader.bodies == [b"y" * 300_000])
    rig.until(lambda: not hosts[1].large.files())


def test_who_leaves_while_it_waits_is_forgotten(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    hosts[0].crash()
    sender = rig.client(hosts[1])
    send_group(sender, "red", "1")
    sender.send(SessionClose())
    rig.run(0.5)
    assert grouping_of(hosts[1]).questions
    sender.kill()
    rig.run(1)
    assert not grouping_of(hosts[1]).questions
    hosts[0].start()
    rig.formed()
    rig.run(6)
    assert holders(hosts) == []


def test_a_rollback_after_the_wait_is_taken_up_in_order(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    sender = rig.connected(hosts[1], Transacted)
    send_group(sender, "red", "1")
    sender.send(Commit(correlation=50))
    send_group(sender, "red", "2")
    sender.send(Rollback())
    send_group(sender, "red", "3")
    sender.send(Commit(correlation=51))
    rig.until(lambda: 51 in sender.answers)
    assert bodies_at(hosts[1]) == [b"1", b"3"]


def test_a_response_to_somebody_else_decides_for_us_too(rig: Rig) -> None:
    """A real LOCAL handler names no alternative in what it answers to the first."""
    hosts = grouped_cluster(rig)
    node = node_of(hosts[0])
    grouping = grouping_of(hosts[0])
    node.broker.router.grouping = None  # a LOCAL node that we play
    sender = rig.client(hosts[2])
    send_group(sender, "red", "1")
    rig.run(0.1)
    grouping.say(rig.world.now, "PROPOSAL_RESPONSE", "red.orders", "ordersnode-1", None, 0)
    hosts[0].flush_later()
    rig.until(lambda: sender.answers)
    rig.until(lambda: holders(hosts) == ["n1"])


def test_an_answer_counts_from_its_request_on_however_late_it_comes(rig: Rig) -> None:
    """A LOCAL node that waited for its disk or its replicas may have freed the group meanwhile."""

    def soon(config: GroupingHandlerConfig) -> None:
        config.timeout_ms = 500
        config.group_timeout_ms = 2_000

    hosts = grouped_cluster(rig, change=soon)
    grouping = grouping_of(hosts[0])
    node_of(hosts[0]).broker.router.grouping = None  # a LOCAL node that we play
    sender = rig.client(hosts[2])

    def requests() -> list[PropertyValue]:
        heard = [packet.message.properties for _, packet in rig.packets(hosts[2], hosts[0])
                 if isinstance(packet, ReceiveMessage)]  # fmt: skip
        return [each.get("_ATALANTA_Asked") for each in heard if each.get("_AMQ_NotifType") == "PROPOSAL"]

    def answer(request: PropertyValue, queue: str) -> None:
        properties: Properties = {
            "_JBM_ProposalGroupId": "red.orders", "_JBM_ProposalValue": queue, "_JBM_ProposalAltValue": queue,
            "_AMQ_Address": grouping.config.address, "_AMQ_Binding_Type": Int(0), "_AMQ_Distance": Int(0),
            "_ATALANTA_Asked": request,
        }  # fmt: skip
        grouping.notifications.publish(rig.world.now, "PROPOSAL_RESPONSE", properties)
        hosts[0].flush_later()
        rig.run(0.1)

    send_group(sender, "red", "1")
    rig.until(lambda: len(sender.errors) == 1)
    old = requests()[0]
    rig.run(3)
    answer(old, "ordersnode-1")
    send_group(sender, "red", "2")
    rig.until(lambda: len(sender.errors) == 2 or sender.answers)
    assert sender.answers == [], "the answer of 3 s ago decides nothing"
    answer(requests()[-1], "ordersnode-0")
    send_group(sender, "red", "3")
    rig.until(lambda: sender.answers)
    rig.until(lambda: bodies_at(hosts[0]) == [b"3"])
    answer(old, "ordersnode-1")
    send_group(sender, "red", "4")
    rig.until(lambda: bodies_at(hosts[0]) == [b"3", b"4"])


def test_our_responses_always_name_the_winner_as_real_nodes_want_it(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    group_stored(rig, hosts[1], "red", "1")
    heard = [
        packet.message.properties
        for _, packet in rig.packets(hosts[0], hosts[2])
        if isinstance(packet, ReceiveMessage)
    ]
    said = [each for each in heard if each.get("_AMQ_NotifType") == "PROPOSAL_RESPONSE"]
    assert len(said) == 1
    assert said[0].get("_JBM_ProposalGroupId") == "red.orders"
    assert said[0].get("_JBM_ProposalValue") == "ordersnode-1"
    assert said[0].get("_JBM_ProposalAltValue") == "ordersnode-1"
    assert (said[0].get("_AMQ_Distance"), said[0].get("_AMQ_Binding_Type")) == (0, 0)


def test_a_node_that_does_not_know_the_queue_yet_cannot_free_its_group(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    group_stored(rig, hosts[1], "red", "1")
    grouping_of(hosts[2]).say(rig.world.now, UNPROPOSAL, "red.orders", "ordersnode-1", None, 0)
    hosts[2].flush_later()
    rig.run(1)
    assert pins_of(hosts[0]) == {"red.orders": "ordersnode-1"}


def test_the_empty_text_is_a_group_too(rig: Rig) -> None:
    hosts = grouped_cluster(rig, 2)
    sender = rig.client(hosts[1])
    sender.publish("orders", b"1", _AMQ_GROUP_ID="", _AMQ_ROUTING_TYPE=Byte(ANYCAST))
    rig.until(lambda: sender.answers)
    assert pins_of(hosts[0]) == {".orders": "ordersnode-1"}


def test_each_copy_of_a_composite_message_waits_for_its_group(rig: Rig) -> None:
    queues = [queue(name, name, ANYCAST) for name in ("orders", "orders2")]
    hosts = [rig.node(queues=queues, grouping=handler(kind)) for kind in (LOCAL, REMOTE)]
    rig.form()
    names = "/queue/orders,/queue/orders2"
    sender = StompUser(rig.world, rig.network, "sender", hosts[1].name)
    sender.start()
    rig.until(lambda: sender.ready)
    for text in (b"1", b"2"):
        headers = {"destination": names, "JMSXGroupID": "red", "persistent": "true", "receipt": "r"}
        sender.frame("SEND", {**headers, "content-length": "1"}, text)
    rig.until(lambda: sender.receipts == 2)
    rig.run(1)
    for name in ("orders", "orders2"):
        assert [bodies_at(host, name) for host in hosts] == [[], [b"1", b"2"]]
