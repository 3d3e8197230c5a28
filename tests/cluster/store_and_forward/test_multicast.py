"""Parked copies for subscriptions: each is its subscription's, wherever that is."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import MULTICAST
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, count, node_of, waiting
from tests.cluster.store_and_forward.parked_rig import TIMEOUT, numbers


def test_a_copy_for_a_subscription_that_only_the_member_has_stays(rig: Rig) -> None:
    rig.node(queues=[queue("archive", "prices", MULTICAST)])
    rig.node(queues=[queue("archive", "prices", MULTICAST), queue("audit", "prices", MULTICAST)])
    rig.form()
    near = rig.consuming(rig.hosts[0], "archive")
    rig.network.block("n0", "n1")
    rig.sender(rig.hosts[0], "prices", numbers(0, 4), MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 4)
    rig.hosts[1].crash()
    rig.network.heal()
    rig.run(TIMEOUT + 5)
    assert waiting(rig.hosts[0], "node-1") == 4
    assert near.bodies == numbers(0, 4)
    rig.hosts[1].start()
    rig.until(lambda: count(rig.hosts[1], "audit") == 4)
    assert near.bodies == numbers(0, 4)


def test_a_copy_for_a_subscription_that_is_here_too_comes_back(rig: Rig) -> None:
    rig.cluster(2)
    rig.consuming(rig.hosts[1], "archive", known_at=rig.hosts[0])
    rig.network.block("n0", "n1")
    rig.sender(rig.hosts[0], "prices", numbers(0, 4), MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 4)
    near = rig.consuming(rig.hosts[0], "archive")
    rig.hosts[1].crash()
    rig.network.heal()
    rig.run(TIMEOUT + 1)
    assert near.bodies == numbers(0, 4)


@pytest.mark.parametrize("before", ["the member", "the sender"])
def test_what_a_topics_message_is_for_is_known_after_a_restart(rig: Rig, before: str) -> None:
    """The subscription is written down when the link is lost; before that a copy might be anyone's."""
    rig.cluster(2)
    rig.consuming(rig.hosts[1], "archive", known_at=rig.hosts[0])
    rig.network.block("n0", "n1")
    producer = rig.client(rig.hosts[0])
    producer.publish("prices", b"x", MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 1)
    first, second = (1, 0) if before == "the member" else (0, 1)
    rig.hosts[first].crash()
    rig.run(1)
    rig.hosts[second].crash()
    rig.network.heal()
    rig.hosts[0].start()
    near = rig.consuming(rig.hosts[0], "archive")
    rig.run(TIMEOUT + 5)
    if before == "the member":
        assert near.bodies == [b"x"]
    else:
        assert near.bodies == [] and waiting(rig.hosts[0], "node-1") == 1
    rig.hosts[1].start()
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 0)
    rig.run(1)
    assert count(rig.hosts[1], "archive") == 1 - len(near.bodies)
    assert not node_of(rig.hosts[0]).broker.values.keys("meant.")
