"""The numbers of announcements: a member that was started again is heard, whatever its clock says."""

from __future__ import annotations

from atalanta.cluster.topology.topology import Member
from atalanta.sim.world.world import SECOND
from tests.cluster.cluster_rig import Rig, cluster_of, linked, node_of


def known(rig: Rig, at: int, of: int) -> int:
    """Returns the number with which a node knows another one."""
    return cluster_of(rig.hosts[at]).topology.members[f"node-{of}"].event_id


def test_a_node_whose_clock_went_back_announces_itself_above_what_the_members_know() -> None:
    rig = Rig()
    hosts = rig.cluster(2)
    rig.run(5)
    before = known(rig, 0, 1)
    hosts[1].crash()
    hosts[1].ahead_ns = -3600 * SECOND
    hosts[1].start()
    rig.formed()
    rig.run(2)
    own = cluster_of(hosts[1]).local.event_id
    assert before < own == known(rig, 0, 1) < before + 1_000


def test_a_node_that_has_lost_its_journal_passes_the_number_that_it_hears() -> None:
    rig = Rig()
    hosts = rig.cluster(2)
    rig.run(5)
    local, members = cluster_of(hosts[1]).local, cluster_of(hosts[1]).members
    own = local.member()
    ahead = own.event_id + 3_600_000
    members.update(rig.world.now, Member(local.node_id, ahead, own.primary, None, None, None))
    rig.run(2)
    assert ahead < local.event_id == known(rig, 0, 1) < ahead + 10
    # Nobody was at that instant. And an echo of the own announcement is no news.
    members.update(rig.world.now, Member(local.node_id, (1 << 63) - 1, own.primary, None, None, None))
    number = local.event_id
    members.update(rig.world.now, Member(local.node_id, number, own.primary, None, None, None))
    rig.run(2)
    assert local.event_id == number


def test_an_announcement_leaves_when_its_number_is_in_the_journal() -> None:
    rig = Rig()
    hosts = rig.cluster(2)
    rig.run(5)
    hosts[1].disk.slow = 1_000
    before = known(rig, 0, 1)
    node = node_of(hosts[1])
    cluster_of(hosts[1]).members.announce_again(rig.world.now)
    hosts[1].flush_later()
    rig.until(lambda: not node.journal.idle())
    assert linked(hosts[0]) == 1
    while not node.journal.idle():
        assert known(rig, 0, 1) == before
        rig.run(0.001)
    rig.run(0.1)
    assert known(rig, 0, 1) > before
