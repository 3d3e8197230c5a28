"""A node leaves and gives all it has to another: every kind of content, in order, once."""

from __future__ import annotations

from atalanta.cluster.scale_down import DONE, ScaleDown
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.rig import Rig, count, node_of


def departure(host: Host) -> ScaleDown:
    found = node_of(host).scale_down
    assert found is not None
    return found


def leave(rig: Rig, host: Host, seconds: float = 30) -> ScaleDown:
    """The node leaves, and ends when it has."""
    part = departure(host)
    node_of(host).leave(rig.world.now)
    host.flush_later()
    rig.until(part.over, seconds)
    host.stop()
    return part


def bodies(rig: Rig, host: Host, queue: str) -> list[bytes]:
    """What a consumer gets there."""
    client = rig.client(host)
    client.consume(queue)
    rig.run(1)
    return client.bodies


def test_messages_go_to_the_other_node_in_order_behind_what_is_there() -> None:
    rig = Rig()
    first, second = rig.cluster(2)
    one, two = rig.client(first), rig.client(second)
    for number in range(50):
        one.publish("orders", b"first %d" % number, ANYCAST)
        two.publish("orders", b"second %d" % number, ANYCAST)
    rig.until(lambda: count(first, "orders") + count(second, "orders") == 100)
    mine = [bytes(each.message.body) for each in node_of(first).broker.queues["orders"].live()]
    theirs = [bytes(each.message.body) for each in node_of(second).broker.queues["orders"].live()]
    part = leave(rig, first)
    assert (part.phase, part.left()) == (DONE, 0)
    assert part.moved == len(mine)
    assert bodies(rig, second, "orders") == theirs + mine
