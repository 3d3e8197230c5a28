"""Messages parked for a member that is away, while others leave by scale-down."""

from __future__ import annotations

import json

import pytest

from atalanta.cluster.scale_down.phase import DONE
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import count, node_of, waiting
from tests.cluster.scale_down.scale_down_rig import leave
from tests.cluster.store_and_forward.parked_rig import TIMEOUT, Parked, numbers


def left(leavings: int) -> tuple[Parked, Host]:
    """n0 had 3 messages at n1, unanswered, and 5 more for it; while n1 was away it left, and so on. The holder now."""
    play = Parked(2 + leavings, sent=3)
    play.crash_far()
    holder = play.hosts[0]
    for _ in range(leavings):
        part = leave(play.rig, holder)
        assert (part.phase, part.left()) == (DONE, 0) and part.target is not None
        holder = play.hosts[int(part.target.node_id.removeprefix("node-"))]
    assert waiting(holder, "node-1") == 8
    return play, holder


@pytest.mark.parametrize("leavings", [1, 2])
def test_what_may_have_arrived_from_a_node_that_left_stays_too(leavings: int) -> None:
    play, last = left(leavings)
    near = play.consumer(last)
    play.rig.run(TIMEOUT + 5)
    assert sorted(near.bodies) == numbers(3, 8)
    assert waiting(last, "node-1") == 3
    play.hosts[1].start()
    play.rig.until(lambda: waiting(last, "node-1") == 0)
    again = play.consumer(play.hosts[1])
    play.rig.run(2)
    assert again.bodies == [] and len(near.bodies) == 5


def test_it_goes_when_an_operator_gives_the_member_up() -> None:
    play, last = left(1)
    near = play.consumer(last)
    play.rig.run(TIMEOUT + 5)
    listed = json.loads(play.rig.ask(last, "clusterconnection.test", "listLinks"))
    assert listed[-1]["mayHaveArrived"] == 3
    assert play.rig.ask(last, "clusterconnection.test", "giveUpMember", "node-1") == 3
    play.rig.run(0.5)
    assert sorted(near.bodies) == numbers(0, 8)
    assert waiting(last, "node-1") == 0 and count(last, "orders") == 0


def test_an_operator_who_changes_the_queue_to_a_member_leaves_its_mark_alone() -> None:
    """Peers are told of such a change as of a new queue: it is the old one."""
    play = Parked(sent=3)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    changes = QueueChanges()
    changes.filter_text = "AMQPriority >= 0"
    broker = node_of(play.hosts[0]).broker
    broker.queue_registry.update(play.rig.world.now, "$.artemis.internal.sf.test.node-1", changes)
    play.rig.run(TIMEOUT + 5)
    assert near.bodies == numbers(3, 8)
