"""Messages that wait at other nodes for one that leaves go where that one's messages went."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Client, Rig, count, node_of, waiting
from tests.cluster.connection.chain_rig import chain
from tests.cluster.scale_down.scale_down_rig import held, leave, pause, subscribed, to


def waiting_for(rig: Rig, sender: Host, leaving: Host, count_of: int) -> Client:
    """`sender` has messages for a subscription of `leaving`, which does not read them."""
    subscribed(rig, leaving, "mine")
    client = rig.client(sender)
    client.publish("prices", b"0")
    rig.until(lambda: count(leaving, "mine") == 1)
    pause(sender, leaving)
    for number in range(1, count_of):
        client.publish("prices", b"%d" % number)
    rig.until(lambda: len(client.answers) == count_of)
    return client


def about(host: Host, node_id: str) -> list[str]:
    """Keys of what its journal keeps about the way to that node."""
    return [key for key in node_of(host).broker.values.keys() if key.endswith(f".sf.test.{node_id}")]


@pytest.mark.parametrize("third", [True, False])
def test_messages_for_a_node_that_leaves_follow_it(rig: Rig, third: bool) -> None:
    hosts = rig.cluster(3 if third else 2)
    leaving = hosts[-1]
    target = hosts[0]
    sender = hosts[1] if third else target
    waiting_for(rig, sender, leaving, 20)
    node = node_of(leaving).broker.node_id
    assert waiting(sender, node) == 19
    leave(rig, to(leaving, "n0"))
    rig.until(lambda: count(target, "mine") == 20, 30)
    # What the leaving node had itself comes behind what waited at the target for it.
    first = 0 if third else 1
    assert held(target, "mine") == [b"%d" % (number % 20) for number in range(first, first + 20)]
    # Each node's own subscription has each message once, and nothing is left for the one that went.
    assert count(sender, "archive") == 20
    rig.until(lambda: f"$.artemis.internal.sf.test.{node}" not in node_of(sender).broker.queues)
    assert not about(sender, node)


def test_what_follows_a_node_slowly_is_followed_as_long_as_anything_moves(rig: Rig) -> None:
    """The target gets one of the queues after the other: more than two minutes pass, but never between two of them."""
    target, sender, leaving = rig.cluster(3)
    names = ["a", "b", "c", "d"]
    for name in names:
        spec = QueueSpec(name, name, MULTICAST)
        spec.durable = False
        node_of(leaving).broker.queue_registry.create(rig.world.now, spec)
    rig.run(0.5)
    pause(sender, leaving)
    client = rig.client(sender)
    for name in names:
        client.publish(name, name.encode())
    rig.until(lambda: len(client.answers) == len(names))
    leave(rig, to(leaving, "n0"))
    for name in names:
        rig.run(50)
        assert name not in node_of(target).broker.queues
        node_of(target).broker.queue_registry.create(rig.world.now, QueueSpec(name, name, MULTICAST))
        rig.until(lambda: count(target, name) == 1)  # noqa: B023


def test_nothing_is_kept_of_nodes_that_came_and_left(rig: Rig) -> None:
    """Nodes of a cluster that grows and shrinks have new ids each time."""
    (target,) = rig.cluster(1)
    for number in range(1, 4):
        node_id = f"passing-{number}"
        other = rig.node(node_id=node_id)
        other.start()
        rig.formed()
        subscribed(rig, other, f"mine-{number}")
        rig.client(target).publish("prices", b"1")
        rig.until(lambda: count(other, f"mine-{number}") == 1)  # noqa: B023
        leave(rig, other)
        way = f"$.artemis.internal.sf.test.{node_id}"
        rig.until(lambda: way not in node_of(target).broker.queues)  # noqa: B023
        rig.run(1)
    assert not [key for key in node_of(target).broker.values.keys() if key.startswith(("sent.", "meant."))]
    cluster = node_of(target).cluster
    assert cluster is not None
    assert not cluster.parked.marks
    assert not cluster.parked.absent


def test_what_the_leaving_node_never_got_makes_its_queue_at_the_target(rig: Rig) -> None:
    target, leaving = rig.cluster(2)
    client = waiting_for(rig, target, leaving, 2)
    node_of(leaving).broker.queues["mine"].spec.configuration_managed = True
    rig.consuming(leaving, "mine")
    rig.until(lambda: count(leaving, "mine") == 0)
    leave(rig, to(leaving, "n0"))
    rig.until(lambda: "mine" in node_of(target).broker.queues, 40)
    rig.until(lambda: count(target, "mine") == 1)
    assert held(target, "mine") == [b"1"]
    assert len(client.answers) == 2


def test_what_was_for_a_node_behind_the_one_that_left_waits_for_a_way_there() -> None:
    """n1 is in the middle and leaves to n0, which has messages for a subscription of n2."""
    rig, (first, middle, end) = chain(2)
    subscribed(rig, end, "mine")
    rig.run(1)
    client = rig.client(first)
    pause(first, middle)
    for number in range(5):
        client.publish("prices", b"%d" % number)
    rig.until(lambda: waiting(first, "node-1") == 5)
    leave(rig, to(middle, "n0"))
    rig.run(20)
    # Not in a queue of our own, made for it, where nobody ever looks.
    known = node_of(first).broker.queues
    assert [name for name in known if name.startswith("mine")] == []
    assert waiting(first, "node-1") == 5 and count(first, "archive") == 5


def test_an_anycast_message_for_the_leaving_node_is_the_targets(rig: Rig) -> None:
    target, sender, leaving = rig.cluster(3, mode="STRICT")
    client = rig.client(sender)
    pause(sender, leaving)
    for number in range(30):
        client.publish("orders", b"%d" % number, ANYCAST)
    rig.until(lambda: len(client.answers) == 30)
    assert waiting(sender, "node-2") == 10
    leave(rig, to(leaving, "n0"))
    rig.until(lambda: count(target, "orders") + count(sender, "orders") == 30, 30)
    everything = held(target, "orders") + held(sender, "orders")
    assert sorted(everything, key=int) == [b"%d" % number for number in range(30)]
