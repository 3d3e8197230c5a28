"""Parked messages of a group: one that stays keeps the others, and what comes back goes to one queue."""

from __future__ import annotations

from atalanta.kernel.publish.grouping import GroupingHandler
from tests.cluster.cluster_rig import node_of, remote_consumers, waiting
from tests.cluster.store_and_forward.parked_rig import TIMEOUT, Parked, numbers


def test_a_group_of_which_one_may_have_arrived_stays_whole() -> None:
    play = Parked(sent=2, unsent=2, _AMQ_GROUP_ID="g")
    for body in numbers(4, 6):
        play.publish(body, _AMQ_GROUP_ID="h")
    play.publish(b"free")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 7)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [*numbers(4, 6), b"free"]
    assert waiting(play.hosts[0], "node-1") == 4


def test_a_group_that_comes_back_goes_to_one_consumer() -> None:
    play = Parked(3, unsent=12, _AMQ_GROUP_ID="g")
    here, there = play.consumer(play.hosts[0]), play.consumer(play.hosts[2])
    play.rig.until(lambda: remote_consumers(play.hosts[0], play.hosts[2], "orders") == 1)
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert sorted([len(here.bodies), len(there.bodies)]) == [0, 12]
    assert here.bodies + there.bodies == numbers(0, 12)


def test_with_a_grouping_handler_groups_stay_with_the_member() -> None:
    play = Parked(_AMQ_GROUP_ID="g")
    play.publish(b"free")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 6)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    node_of(play.hosts[0]).broker.router.grouping = GroupingHandler()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [b"free"] and waiting(play.hosts[0], "node-1") == 5
