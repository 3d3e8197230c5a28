"""A core bridge empties a queue into an address of another broker."""

from __future__ import annotations

import itertools

import pytest

from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.message import Message
from atalanta.node.config import NodeConfig
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.message import SendContinuation, SendMessage
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import RawPeer, count, linked, node_of, queue_of, remote_consumers
from tests.cluster.core_bridges.bridge_rig import (
    BridgeRig,
    bridge,
    bridge_of,
    connected,
    source_queues,
)
from tests.cluster.links.large_client import BODY, client


def test_messages_cross_in_order_and_once(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge())
    consumer = rig.consuming(target, "inbox")
    rig.sender(source, "orders", [b"%d" % number for number in range(100)], ANYCAST, colour="red")
    rig.until(lambda: len(consumer.bodies) == 100)
    assert consumer.bodies == [b"%d" % number for number in range(100)]
    first = consumer.messages[0].message
    assert first.address == "inbox"
    assert first.properties.get("colour") == "red"
    assert not first.has_property("_AMQ_BRIDGE_DUP")
    rig.until(lambda: count(source, "orders") == 0)
    found = bridge_of(source)
    assert (found.sent, found.acknowledged) == (100, 100)


def test_without_forwarding_address_messages_keep_theirs(rig: BridgeRig) -> None:
    source = rig.single(bridge(forwarding_address=None))
    target = rig.single(queues=[queue("taken", "orders", ANYCAST)])
    rig.until(lambda: connected(source))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(target, "taken") == 1)


def test_a_filter_leaves_the_others_in_the_queue(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(filter_text="colour = 'red'"))
    producer = rig.client(source)
    for number in range(10):
        producer.publish("orders", b"%d" % number, ANYCAST, colour="red" if number % 2 else "blue")
    rig.until(lambda: count(target, "inbox") == 5)
    assert count(source, "orders") == 5


@pytest.mark.parametrize(
    ("kind", "forwarded"), [(2, ANYCAST), (-1, -1), (ANYCAST, ANYCAST), (MULTICAST, MULTICAST)]
)
def test_the_routing_type_is_passed_stripped_or_set(rig: BridgeRig, kind: int, forwarded: int) -> None:
    source, target = rig.pair(bridge(routing_type=kind))
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: bridge_of(source).acknowledged == 1)
    sent = [packet for _, packet in rig.packets(source, target) if isinstance(packet, SendMessage)]
    assert sent[0].message.routing_type == forwarded


def test_properties_of_the_transformer_are_added(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(transformer_properties={"via": "n0"}))
    consumer = rig.consuming(target, "inbox")
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: len(consumer.messages) == 1)
    assert consumer.messages[0].message.properties.get("via") == "n0"


def test_user_password_and_client_id_are_those_of_the_bridge(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(client_id="north"))
    packets = [packet for _, packet in rig.packets(source, target)]
    sessions = [packet for packet in packets if isinstance(packet, CreateSessionV2)]
    assert [(each.user, each.password, each.client_id) for each in sessions] == [
        ("user", "password", "north")
    ]


def tries(rig: BridgeRig, source: Host, target: Host) -> list[Packet]:
    return [packet for _, packet in rig.packets(source, target) if isinstance(packet, CreateSession)]


def test_a_wrong_password_is_told_and_tried_again(rig: BridgeRig) -> None:
    source = rig.single(bridge(password="wrong"))
    target = rig.single()
    rig.until(lambda: rig.events("core_bridge_refused"))
    rig.client(source).publish("orders", b"x", ANYCAST)
    times: list[int] = []
    for _ in range(5):
        rig.until(lambda: len(tries(rig, source, target)) > len(times), 40)
        times.append(rig.world.now)
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert all(after > before for before, after in itertools.pairwise(pauses))  # an operator must act
    assert count(source, "orders") == 1


def test_large_messages_cross(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge())
    consumer = client(rig, target, "inbox")
    producer = client(rig, source)
    producer.publish_large("orders", BODY)
    producer.publish("orders", b"behind", ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert consumer.bodies == [BODY, b"behind"]
    rig.until(lambda: not source.large.contents and not target.large.contents)


def test_a_damaged_large_message_goes_to_the_dead_letters_and_lets_others_by(rig: BridgeRig) -> None:
    def dead_letters(config: NodeConfig) -> None:
        config.settings.add("#", {"dead_letter_address": "dead"})

    queues = [*source_queues(), queue("dead", "dead", ANYCAST)]
    source, target = rig.pair(bridge(), change=dead_letters, queues=queues)
    target.crash()
    producer = client(rig, source)
    producer.publish_large("orders", BODY)
    rig.until(lambda: 1 in producer.answers)
    producer.publish("orders", b"behind", ANYCAST)
    (file,) = source.large.contents
    source.large.contents[file][len(BODY) // 2] ^= 1
    target.start()
    consumer = client(rig, target, "inbox")
    rig.until(lambda: count(source, "dead") == 1 and len(consumer.bodies) == 1, 60)
    assert consumer.bodies == [b"behind"]
    (event,) = rig.events("large_message_damaged")
    assert f"bytes_found={len(BODY)}" in event


def test_bodies_above_min_large_message_size_travel_in_pieces_of_it(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(min_large_message_bytes=1_000))
    consumer = client(rig, target, "inbox")
    producer = rig.client(source)
    producer.publish("orders", b"a" * 1_000, ANYCAST)
    producer.publish("orders", b"b" * 2_500, ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert consumer.bodies == [b"a" * 1_000, b"b" * 2_500]
    packets = [packet for _, packet in rig.packets(source, target)]
    pieces = [packet for packet in packets if isinstance(packet, SendContinuation)]
    assert [len(piece.body) for piece in pieces] == [1_000, 1_000, 500]


@pytest.mark.parametrize(("window", "asked"), [(-1, []), (4_000, [4_000])])
def test_the_producer_window_is_what_credits_are_asked_for(rig: BridgeRig, window: int, asked: list[int]) -> None:
    source, target = rig.pair(bridge(producer_window_bytes=window))
    rig.client(source).publish("orders", b"x" * 500, ANYCAST)
    rig.until(lambda: count(target, "inbox") == 1)
    packets = [packet for _, packet in rig.packets(source, target)]
    credits = [packet.credits for packet in packets if isinstance(packet, RequestProducerCredits)]
    assert credits == asked


def test_the_confirmation_window_limits_what_is_unanswered(rig: BridgeRig) -> None:
    config = bridge(confirmation_window_bytes=10_000, producer_window_bytes=-1)
    source, target = rig.pair(config)
    rig.network.block("n1", "n0")
    rig.sender(source, "orders", [b"x" * 1_000] * 100, ANYCAST)
    rig.run(2)
    assert 9 <= bridge_of(source).sent <= 11
    rig.network.heal()
    rig.until(lambda: count(target, "inbox") == 100, 30)


def test_without_duplicate_detection_messages_go_one_at_a_time(rig: BridgeRig) -> None:
    source, target = rig.pair(bridge(use_duplicate_detection=False, producer_window_bytes=-1))
    rig.network.block("n1", "n0")
    rig.sender(source, "orders", [b"x"] * 5, ANYCAST)
    rig.run(2)
    assert bridge_of(source).sent == 1
    rig.network.heal()
    rig.until(lambda: count(source, "orders") == 0, 30)
    sent = [packet for _, packet in rig.packets(source, target) if isinstance(packet, SendMessage)]
    assert not any(each.message.has_property("_AMQ_BRIDGE_DUP") for each in sent)


def test_concurrency_makes_bridges_with_numbers(rig: BridgeRig) -> None:
    source = rig.single(bridge(concurrency=3))
    target = rig.single()
    names = ["away-0", "away-1", "away-2"]
    rig.until(lambda: all(connected(source, name) for name in names))
    rig.sender(source, "orders", [b"x"] * 30, ANYCAST)
    rig.until(lambda: count(target, "inbox") == 30)
    assert all(bridge_of(source, name).acknowledged > 0 for name in names)


def test_two_queues_of_one_address_bring_two_copies(rig: BridgeRig) -> None:
    """Each queue had its own copy; Artemis drops the second as a repeat."""
    queues = [queue("one", "prices", MULTICAST), queue("two", "prices", MULTICAST)]
    first, second = (bridge(name, queue_name=name, routing_type=ANYCAST) for name in ("one", "two"))
    source = rig.single(first, second, queues=queues)
    target = rig.single()
    rig.until(lambda: connected(source, "one") and connected(source, "two"))
    rig.client(source).publish("prices", b"x", MULTICAST)
    rig.until(lambda: count(target, "inbox") == 2)


def test_the_forwarding_address_must_exist_before_anything_is_sent(rig: BridgeRig) -> None:
    source = rig.single(bridge(forwarding_address="later"))
    target = rig.single()
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: rig.events("core_bridge_address_missing"))
    rig.run(3)
    assert count(source, "orders") == 1 and bridge_of(source).sent == 0
    rig.client(target).publish("later", b"makes it", ANYCAST)
    rig.until(lambda: count(source, "orders") == 0)
    assert count(target, "later") == 2


def test_a_bridge_whose_queue_is_missing_waits_for_it(rig: BridgeRig) -> None:
    source = rig.single(bridge(queue_name="absent"))
    target = rig.single()
    rig.until(lambda: rig.events("core_bridge_queue_missing"))
    rig.client(source).publish("absent", b"x", ANYCAST)
    rig.until(lambda: count(target, "inbox") == 1)


def test_a_full_target_holds_the_bridge_back(rig: BridgeRig) -> None:
    source = rig.single(bridge(producer_window_bytes=2_000))
    target = rig.single(memory_bytes=20_000, change=blocking)
    rig.until(lambda: connected(source))
    rig.sender(source, "orders", [b"x" * 1_000] * 200, ANYCAST)
    rig.until(lambda: count(target, "inbox") > 10)
    rig.run(5)
    assert count(target, "inbox") < 60
    consumer = rig.consuming(target, "inbox")
    rig.until(lambda: len(consumer.bodies) == 200, 60)


def test_without_a_producer_window_a_full_target_takes_what_a_bridge_brings(rig: BridgeRig) -> None:
    """So two full nodes, each of which waits for the other, come free (docs/guide/bridges.md); clients wait as ever."""
    source = rig.single(bridge(producer_window_bytes=-1))
    target = rig.single(memory_bytes=20_000, change=blocking)
    rig.until(lambda: connected(source))
    rig.sender(source, "orders", [b"x" * 1_000] * 200, ANYCAST)
    rig.until(lambda: count(target, "inbox") == 200)
    client = rig.client(target)
    client.send(RequestProducerCredits(1_000, "inbox"))
    rig.run(2)
    assert not [each for _, each in rig.packets(target, client) if isinstance(each, ProducerCredits)]


def blocking(config: NodeConfig) -> None:
    config.settings.add("#", {"address_full_policy": "BLOCK"})


def test_messages_of_a_bridge_that_cannot_connect_are_not_redelivered_ones(rig: BridgeRig) -> None:
    """A way tried in vain is no delivery: an ordinary consumer gets them as new."""
    source, _ = rig.pair(bridge(producer_window_bytes=-1))
    rig.network.block("n1", "n0")
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: bridge_of(source).sent == 1)
    rig.until(lambda: rig.events("core_bridge_lost"), 30)
    bridge_of(source).stop(rig.world.now)
    consumer = rig.consuming(source)
    rig.until(lambda: len(consumer.messages) == 1)
    assert consumer.messages[0].delivery_count == 1


def test_a_raw_client_may_name_bridge_ids_too(rig: BridgeRig) -> None:
    """As BridgeImpl of a real Artemis does: without _AMQ_ROUTE_TO, under any user."""
    host = rig.single()
    rig.stored(host, "orders", [b"x"] * 3, ANYCAST, _AMQ_BRIDGE_DUP=b"i" * 24)
    assert count(host, "orders") == 1
    stored = queue_of(host, "orders").live()[0].message
    assert isinstance(stored, Message) and not stored.has_property("_AMQ_BRIDGE_DUP")


def test_a_target_that_answers_nothing_is_given_up_after_call_timeout(rig: BridgeRig) -> None:
    peer = RawPeer(rig, "n1")
    peer.listen()
    source = rig.single(bridge(call_timeout_ms=3_000, connection_ttl_ms=60_000))
    rig.until(lambda: peer.got(CreateSession))
    rig.until(lambda: len(peer.got(CreateSession)) > 1, 20)
    assert peer.closed and bridge_of(source).state == "started"


@pytest.mark.parametrize("policy", ["FAIL", "BLOCK"])
def test_what_a_full_target_refuses_is_kept_in_order(rig: BridgeRig, policy: str) -> None:
    def full(config: NodeConfig) -> None:
        config.settings.add("inbox", {"address_full_policy": policy, "max_size_bytes": 5_000})
        config.settings.add("#", {"dead_letter_address": "orders"})

    source = rig.single(bridge(producer_window_bytes=-1), change=full)
    target = rig.single(change=full)
    rig.until(lambda: connected(source))
    rig.sender(source, "orders", [b"%03d" % number + b"x" * 500 for number in range(60)], ANYCAST)
    rig.run(5)
    assert count(source, "orders") > 0 or policy == "BLOCK"
    consumer = rig.consuming(target, "inbox")
    rig.until(lambda: len(consumer.bodies) == 60, 120)
    assert [body[:3] for body in consumer.bodies] == [b"%03d" % number for number in range(60)]
    assert count(source, "orders") == 0


def test_a_missing_permission_holds_the_messages_until_it_is_given(rig: BridgeRig) -> None:
    source = rig.single(bridge())
    target = rig.single()
    security = node_of(target).broker.security
    security.add_rule("inbox", {"consume": ("all",)})
    rig.client(source).publish("orders", b"x", ANYCAST)
    rig.until(lambda: rig.events("core_bridge_refused"))
    assert count(source, "orders") == 1
    security.add_rule("inbox", {"send": ("all",), "consume": ("all",)})
    rig.until(lambda: count(target, "inbox") == 1)


@pytest.mark.parametrize(
    ("check_ms", "ttl_ms", "pings"), [(2_000, 60_000, 15), (30_000, 9_000, 10)]
)
def test_pings_tell_the_ttl_and_go_out_every_check_period(
    rig: BridgeRig, check_ms: int, ttl_ms: int, pings: int
) -> None:
    source, target = rig.pair(bridge(check_period_ms=check_ms, connection_ttl_ms=ttl_ms))
    rig.run(30)
    sent = [packet for _, packet in rig.packets(source, target) if isinstance(packet, Ping)]
    assert {ping.connection_ttl_ms for ping in sent} == {ttl_ms}
    assert pings - 5 <= len(sent) <= pings + 3


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("after_ms", [3, 15, 40])
def test_a_crash_in_the_middle_of_a_large_message_costs_nothing(rig: BridgeRig, victim: int, after_ms: int) -> None:
    hosts = rig.pair(bridge())
    producer = client(rig, hosts[0])
    producer.publish_large("orders", BODY)
    rig.until(lambda: 1 in producer.answers)
    rig.world.run_until(rig.world.now + after_ms * 1_000_000)
    hosts[victim].crash()
    rig.run(1)
    hosts[victim].start()
    rig.until(lambda: count(hosts[0], "orders") == 0 and count(hosts[1], "inbox") == 1, 60)
    consumer = client(rig, hosts[1], "inbox")
    rig.until(lambda: consumer.bodies == [BODY])
    rig.until(lambda: not hosts[0].large.contents and not hosts[1].large.contents)


def test_peers_of_a_cluster_are_not_told_of_a_bridge_as_of_a_consumer(rig: BridgeRig) -> None:
    """As with Artemis: who is told of it would never be told of its end."""
    settings = CoreBridgeSettings(
        [bridge(static_connectors=["n2"])], {"n2": ConnectorConfig("n2", "n2", PORT)}
    )
    members = [rig.node(peers=[1], bridges=settings), rig.node(peers=[0])]
    rig.single()
    members[0].start()
    rig.until(lambda: connected(members[0]))
    members[1].start()
    rig.until(lambda: all(linked(host) == 1 for host in members))
    assert remote_consumers(members[1], members[0], "orders") == 0
