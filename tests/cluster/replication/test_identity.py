"""The node id that a member learns, and members of another node, group or password."""

from __future__ import annotations

from atalanta.cluster.replication.member_handshake import member_key
from atalanta.cluster.replication.passive.backup_config import MemberIdentity
from tests.cluster.replication.machine_rig import Machine
from tests.cluster.replication.member_rig import JOURNAL_ID
from tests.cluster.replication.replica_rig import (
    World,
)


def test_a_fresh_backup_learns_the_node_id_from_the_active_node() -> None:
    world = World()
    b = world["b"]
    b.node_id = None
    b.follow()
    world.run(1_000)
    assert b.outcomes == []
    world["a"].follow()
    world.until(lambda: bool(b.outcomes))
    assert b.outcomes == [MemberIdentity(JOURNAL_ID)]
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])


def test_a_fresh_primary_follows_an_active_node_and_else_makes_a_node_id() -> None:
    world = World()
    a = world["a"]
    a.node_id = None
    a.follow()
    world.until(lambda: bool(a.outcomes))
    [made] = a.outcomes
    assert isinstance(made, MemberIdentity) and len(made.node_id) == 16

    world = World()
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    replaced = world.machines["a"] = Machine(world, "a", True)
    replaced.node_id = None
    replaced.follow()
    world.until(lambda: bool(replaced.outcomes))
    assert replaced.outcomes == [MemberIdentity(JOURNAL_ID)]


def test_a_folder_of_another_group_is_refused_with_its_name() -> None:
    world = World()
    a, b = world["a"], world["b"]
    a.follow()
    world.until(lambda: world.serves("a"))
    b.node_id = bytes(16)[:-1] + b"\7"
    b.follow()
    world.run(5_000)
    [refused] = b.happened("replication_refused")
    assert "/data/b has data of node 00000000000000000000000000000007" in str(refused["why"])
    assert "give it another data folder, and keep the one that it has" in str(refused["why"])
    assert "empty" not in str(refused["why"])


def test_another_password_and_another_group_are_told_once() -> None:
    world = World(names="abc")
    a, b, c = (world[name] for name in "abc")
    a.follow()
    world.until(lambda: world.serves("a"))
    b.key = member_key("user", "wrong")
    c.group_name = "another"
    b.follow()
    c.follow()
    world.run(5_000)
    told = [event for event in b.happened("replication_refused") if event["remote"] == "a:1"]
    assert len(told) == 1 and "cluster-password" in str(told[0]["why"])
    told = [event for event in c.happened("other_group_met") if event["remote"] == "a:1"]
    assert len(told) == 1 and "another group" in str(told[0]["why"])
    assert world.in_sync() == ["a"]


def test_two_groups_with_names_of_their_own_warn_of_nothing_and_both_serve() -> None:
    """Their members may dial each other: every pair of a cluster has the connectors of all."""
    world = World(names="abc")
    a, b, c = (world[name] for name in "abc")
    c.group_name = "two"
    a.follow()
    world.until(lambda: world.serves("a"))
    b.follow()
    c.primary = True
    c.node_id = None
    c.follow()
    world.until(lambda: bool(c.outcomes) and world.in_sync() == ["a", "b"])
    assert isinstance(c.outcomes[0], MemberIdentity) and c.outcomes[0].founded
    world.run(5_000)
    assert {event["why"] for event in c.happened("other_group_met")} == {
        "another group: it is of 'two', this node of 'g'"
    }
    assert not c.happened("replication_refused")
    assert not a.happened("replica_refused")
