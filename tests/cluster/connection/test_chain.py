"""A chain of nodes, each connected to the next only: with max-hops 2 messages reach the end of it."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST
from tests.cluster.cluster_rig import count, node_of
from tests.cluster.connection.chain_rig import chain


def test_a_middle_that_has_just_restarted_keeps_what_it_cannot_route_yet() -> None:
    """n0's messages come at once with the link; what lies behind n1 is told to it only later. Artemis drops them."""
    rig, hosts = chain(2)
    consumer = rig.consuming(hosts[2])
    rig.run(1)
    for host in hosts:
        node_of(host).broker.settings.add("#", {"redistribution_delay_ms": 0})
    rig.network.block("n0", "n1")
    rig.stored(hosts[0], "orders", [bytes([number]) for number in range(5)], ANYCAST)
    hosts[1].crash()
    hosts[2].crash()
    consumer.kill()
    rig.network.heal()
    hosts[1].start()
    node_of(hosts[1]).broker.settings.add("#", {"redistribution_delay_ms": 0})
    rig.run(5)
    hosts[2].start()
    consumer.start()
    rig.until(lambda: consumer.ready)
    consumer.consume("orders")
    here = rig.client(hosts[0])
    rig.until(lambda: len(consumer.bodies) + count(hosts[0], "orders") >= 5, 30)
    here.consume("orders")
    rig.until(lambda: len(consumer.bodies) + len(here.bodies) == 5)
