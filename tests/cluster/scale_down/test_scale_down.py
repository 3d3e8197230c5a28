"""A node leaves and gives its queues to another: in order, behind what is there, each message once."""

from __future__ import annotations

import pytest

from atalanta.cluster.config import ScaleDownConfig
from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.kernel.log.lease import ReaderLease
from atalanta.kernel.queue.reference import SCHEDULED
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.connection import REASON_SCALE_DOWN, DisconnectV3
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import Rig, both, cluster_of, count, node_of, queue_of
from tests.cluster.scale_down.scale_down_rig import (
    begin,
    bodies,
    departure,
    held,
    leave,
    send,
    subscribed,
)


def test_messages_go_to_the_other_node_in_order_behind_what_is_there(rig: Rig) -> None:
    first, second = rig.cluster(2)
    one, two = rig.client(first), rig.client(second)
    for number in range(50):
        one.publish("orders", b"first %d" % number, ANYCAST)
        two.publish("orders", b"second %d" % number, ANYCAST)
    rig.until(lambda: count(first, "orders") + count(second, "orders") == 100)
    mine, theirs = held(first, "orders"), held(second, "orders")
    part = leave(rig, first)
    assert (part.phase, part.left(), part.moved) == (DONE, 0, len(mine))
    assert bodies(rig, second, "orders") == theirs + mine
    assert node_of(second).broker.scale_down_target.nodes == {"node-0": True}


def test_what_is_not_durable_goes_too(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    client = rig.client(first)
    for number in range(10):
        send(client, "orders", b"%d" % number, durable=number % 2 == 0)
    rig.until(lambda: count(first, "orders") == 10)
    leave(rig, first)
    found = [
        (bytes(each.message.body), each.durable) for each in queue_of(second, "orders").live()
    ]
    assert found == [(b"%d" % number, number % 2 == 0) for number in range(10)]


def test_a_message_in_several_queues_travels_once_and_every_queue_keeps_its_order() -> None:
    queues = [*both(), queue("loud", "prices", MULTICAST, "volume > 5")]
    rig = Rig()
    first, second = rig.cluster(2, mode="OFF", queues=queues)
    client = rig.client(first)
    for number in range(10):
        client.publish("prices", b"%d" % number, volume=number)
    rig.until(lambda: count(first, "archive") == 10)
    # One subscriber has read ahead of the other.
    rig.consuming(first, "archive", "volume = 7")
    rig.until(lambda: count(first, "archive") == 9)
    part = leave(rig, first)
    assert held(second, "archive") == [b"%d" % number for number in range(10) if number != 7]
    assert held(second, "loud") == [b"6", b"7", b"8", b"9"]
    sent = [each for _, each in rig.packets(first, second) if isinstance(each, SendMessage)]
    assert len([each for each in sent if each.message.address == "prices"]) == 10
    assert part.moved == 13


def test_queues_that_the_target_lacks_are_made_there_as_they_were(rig: Rig) -> None:
    first = rig.node(queues=[*both(), queue("mine", "own", ANYCAST)])
    second = rig.node()
    rig.form(first, second)
    spec = QueueSpec("subscription", "news", MULTICAST)
    spec.filter_text = "region = 'EU'"
    spec.exclusive = True
    spec.max_consumers = 3
    node_of(first).broker.queue_registry.create(rig.world.now, spec)
    silent = QueueSpec("silent", "news", MULTICAST)
    node_of(first).broker.queue_registry.create(rig.world.now, silent)
    client = rig.client(first)
    client.publish("own", b"kept", ANYCAST)
    client.publish("news", b"heard", MULTICAST, region="EU")
    rig.until(lambda: len(client.answers) == 2)
    part = leave(rig, first)
    assert part.phase == DONE
    assert held(second, "mine") == [b"kept"]
    assert held(second, "subscription") == [b"heard"]
    made = queue_of(second, "subscription").spec
    assert (made.filter_text, made.exclusive, made.max_consumers) == ("region = 'EU'", True, 3)
    # A durable subscriber misses nothing that comes before it is there.
    other = rig.client(second)
    other.publish("news", b"later", MULTICAST, region="EU")
    rig.until(lambda: count(second, "subscription") == 2)
    assert held(second, "silent")[-1] == b"later"


def test_scheduled_messages_wait_at_the_target_for_the_rest_of_their_time(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    client = rig.client(first)
    at_ms = rig.world.now // 1_000_000 + 60_000
    send(client, "orders", b"later", _AMQ_SCHED_DELIVERY=at_ms)
    send(client, "orders", b"now")
    rig.until(lambda: count(first, "orders") == 2)
    leave(rig, first)
    waiting = node_of(second).broker.scheduled.of_queue(queue_of(second, "orders"))
    assert [(when, each.state) for when, each in waiting] == [(at_ms, SCHEDULED)]
    reader = rig.consuming(second)
    rig.run(5)
    assert reader.bodies == [b"now"]
    rig.until(lambda: reader.bodies == [b"now", b"later"], 70)


def test_groups_stay_in_order(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    client = rig.client(first)
    for number in range(30):
        send(client, "orders", b"%d" % number, _AMQ_GROUP_ID=f"g{number % 3}")
    rig.until(lambda: count(first, "orders") == 30)
    leave(rig, first)
    assert bodies(rig, second, "orders") == [b"%d" % number for number in range(30)]
    assert {each.message.group_id for each in queue_of(second, "orders").live()} <= {"g0"}


def test_what_a_client_holds_unacknowledged_comes_along_at_its_place(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    rig.filled(first, [b"%d" % number for number in range(5)])
    holder = rig.client(first)
    holder.on_packet = lambda packet: None  # type: ignore[method-assign]
    holder.consume("orders")
    rig.until(lambda: queue_of(first, "orders").delivering_count == 5)
    leave(rig, first)
    assert bodies(rig, second, "orders") == [b"0", b"1", b"2", b"3", b"4"]


def test_queues_that_page_come_from_their_files(rig: Rig) -> None:
    first = rig.node(mode="OFF", memory_bytes=30_000)
    second = rig.node(mode="OFF")
    rig.form(first, second)
    rig.filled(first, [b"%03d" % number + bytes(200) for number in range(400)])
    assert queue_of(first, "orders").paged is not None
    part = leave(rig, first, 120)
    assert (part.phase, part.left()) == (DONE, 0)
    assert [each[:3] for each in held(second, "orders")] == [b"%03d" % each for each in range(400)]


@pytest.mark.parametrize("interval", [-1, 1, 7])
def test_commit_interval_bounds_what_is_under_way(rig: Rig, interval: int) -> None:
    first, second = rig.cluster(2, mode="OFF")
    cluster_of(first).settings.scale_down = ScaleDownConfig(commit_interval=interval)
    part = departure(first)
    part.choice.config = ScaleDownConfig(commit_interval=interval)
    rig.filled(first, [b"%d" % number for number in range(40)])
    begin(rig, first)
    most = 0
    while not part.over():
        rig.run(0.0001)
        if part.link is not None:
            most = max(most, len(part.link.sender.unanswered))
    assert most == (40 if interval < 0 else interval)
    assert held(second, "orders") == [b"%d" % number for number in range(40)]


# -- who takes over -----------------------------------------------------------------------------------
def test_only_a_member_of_the_same_group_takes_over(rig: Rig) -> None:
    hosts = [rig.node(mode="OFF") for _ in range(3)]
    for host, group in zip(hosts, ("blue", "red", "blue"), strict=True):
        make = host.make_node

        def in_group(ports: object, make: object = make, group: str = group) -> object:
            node = make(ports)  # type: ignore[operator]
            config = ScaleDownConfig(group_name=group)
            node.cluster.settings.scale_down = config
            node.scale_down.choice.config = config
            return node

        host.make_node = in_group  # type: ignore[assignment]
        host.start()
    rig.formed()
    rig.client(hosts[0]).publish("orders", b"blue", ANYCAST)
    rig.until(lambda: count(hosts[0], "orders") == 1)
    leave(rig, hosts[0])
    assert (count(hosts[1], "orders"), count(hosts[2], "orders")) == (0, 1)
    # Nobody else is red: it keeps what it has, and has not sent its clients away.
    part = leave(rig, hosts[1])
    assert part.phase == FAILED and not part.frozen
    assert "scale-down group 'red'" in part.why


def test_connectors_are_tried_in_their_order(rig: Rig) -> None:
    first, second, third = rig.cluster(3, mode="OFF")
    part = departure(third)
    part.choice.config = ScaleDownConfig(connectors=["n2", "n1", "n0"])
    rig.client(third).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(third, "orders") == 1)
    second.crash()
    leave(rig, third)
    assert count(first, "orders") == 1


def test_a_discovery_group_says_who_may_take_over(rig: Rig) -> None:
    first, second = rig.node(discovery=True), rig.node(discovery=True)
    first.start()
    second.start()
    rig.formed(60)
    rig.client(first).publish("orders", b"x", ANYCAST)
    rig.until(lambda: count(first, "orders") == 1)
    departure(first).choice.config = ScaleDownConfig(discovery_group="group")
    part = leave(rig, first)
    assert part.phase == DONE and held(second, "orders") == [b"x"]
    # Nobody is heard any more: the last one stays.
    departure(second).choice.config = ScaleDownConfig(discovery_group="group")
    part = begin(rig, second)
    rig.until(part.over)
    assert part.phase == FAILED and not part.frozen


def test_clients_are_told_where_to_go_and_all_they_were_promised_is_there(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    client = rig.client(first)
    part = begin(rig, first)
    while not part.over():
        client.publish("orders", b"%d" % client.number, ANYCAST)
        rig.run(0.0003)
    first.stop()
    said = [each for _, each in rig.packets(first, client) if isinstance(each, DisconnectV3)]
    # And once more whenever it comes again.
    told = {(each.reason, each.target_node_id) for each in said}
    assert told == {(REASON_SCALE_DOWN, "node-1")}
    assert said[0].target is not None and said[0].target.host == "n1"
    arrived = [int(each) for each in held(second, "orders")]
    assert arrived == sorted(set(arrived))
    assert [number - 1 for number in client.answers] == arrived[: len(client.answers)]
    assert len(arrived) == len(client.answers) > 0


def test_a_target_says_that_clients_may_go_on_there_once_it_has_all(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    cluster_of(second).settings.scale_down = ScaleDownConfig(enabled=False)
    hooks = node_of(second).host.cluster
    assert hooks.may_fail_over(None) and hooks.may_fail_over("node-1")
    assert not hooks.may_fail_over("node-0")
    leave(rig, first)
    assert hooks.may_fail_over("node-0")


# -- special queues -----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["last value", "ring", "non-destructive", "exclusive", "paused"])
def test_queues_of_every_kind_are_emptied_and_arise_as_such(rig: Rig, kind: str) -> None:
    first, second = rig.cluster(2, mode="OFF")
    spec = QueueSpec("special", "special", ANYCAST)
    spec.last_value_key = "key" if kind == "last value" else None
    spec.ring_size = 4 if kind == "ring" else -1
    spec.non_destructive = kind == "non-destructive"
    spec.exclusive = kind == "exclusive"
    node_of(first).broker.queue_registry.create(rig.world.now, spec)
    node_of(first).broker.queues["special"].paused = kind == "paused"
    client = rig.client(first)
    for number in range(10):
        send(client, "special", b"%d" % number, key=f"k{number % 3}")
    rig.until(lambda: len(client.answers) == 10)
    rig.run(0.5)
    before = held(first, "special")
    part = leave(rig, first)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(second, "special") == before
    made = queue_of(second, "special").spec
    assert (made.last_value_key, made.ring_size) == (spec.last_value_key, spec.ring_size)
    assert (made.non_destructive, made.exclusive) == (spec.non_destructive, spec.exclusive)


def test_what_waits_for_another_delivery_goes_at_its_place(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    node_of(first).broker.settings.add("orders", {"redelivery_delay_ms": 60_000})
    rig.filled(first, [b"%d" % number for number in range(4)])
    broker = node_of(first).broker
    waiting = queue_of(first, "orders").references[1]
    broker.scheduled.schedule(waiting, rig.world.now // 1_000_000 + 60_000)
    assert waiting.state == SCHEDULED
    leave(rig, first)
    assert bodies(rig, second, "orders") == [b"0", b"1", b"2", b"3"]


def test_a_target_remembers_after_a_restart_whom_it_took_over(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    leave(rig, first)
    second.crash()
    second.start()
    cluster_of(second).settings.scale_down = ScaleDownConfig(enabled=False)
    assert node_of(second).host.cluster.may_fail_over("node-0")
    assert not node_of(second).host.cluster.may_fail_over("node-7")


def test_what_a_reader_was_shown_and_has_not_acknowledged_stays_for_it(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    rig.filled(first, [b"%d" % number for number in range(6)])
    orders = queue_of(first, "orders")
    lease = ReaderLease("group", 1, "reader", 10**10)
    lease.active = True
    orders.lease(lease)
    orders.log.shown_through = 3
    part = leave(rig, first, 180)
    assert (part.phase, part.moved, part.left()) == (FAILED, 3, 3)
    assert "a reader of queue orders has not acknowledged" in part.why
    assert held(second, "orders") == [b"3", b"4", b"5"]
    first.start()
    assert held(first, "orders") == [b"0", b"1", b"2"]


def test_a_subscription_of_the_leaving_node_misses_no_message_published_at_the_target(rig: Rig) -> None:
    target, leaving = rig.cluster(2)
    subscribed(rig, leaving, "mine")
    publisher = rig.client(target)
    part = begin(rig, leaving)
    sent = 0
    while not part.over():
        publisher.publish("prices", b"%d" % sent, MULTICAST)
        sent += 1
        rig.run(0.0005)
    leaving.stop()
    rig.run(1)
    taken = sorted(int(body) for body in bodies(rig, target, "mine"))
    assert taken == list(range(sent))


@pytest.mark.parametrize("count_of_nodes", [2, 3])
def test_empty_queues_are_at_the_target_before_members_hear_of_it(rig: Rig, count_of_nodes: int) -> None:
    """A member that is a real Artemis drops what it has for a queue that the target lacks."""
    first = rig.node(queues=[queue("work", "work", ANYCAST)])
    others = [rig.node() for _ in range(count_of_nodes - 1)]
    rig.form(first, *others)
    part = begin(rig, first)
    rig.until(lambda: any("work" in node_of(each).broker.queues for each in others))
    # A third node has not heard of the new queue in the same instant.
    assert part.disconnects is not None and part.disconnects.members_held == (count_of_nodes == 2)
    rig.until(part.over)
    assert part.phase == DONE
