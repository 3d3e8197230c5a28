"""A passive member behind a real active node: what was confirmed is served by whoever takes over."""

from __future__ import annotations

import pytest

from atalanta.ha.register import CompareAndSet, take_over
from tests.cluster.replication.group_rig import publish
from tests.cluster.replication.machine_rig import different
from tests.cluster.replication.member_rig import LEASE, MS
from tests.cluster.replication.replica_rig import (
    World,
    client,
    drain,
    numbered,
    send,
)


def test_a_follower_enters_the_in_sync_set_and_takes_over() -> None:
    world = World()
    a, b = world["a"], world["b"]
    a.follow()
    world.until(lambda: world.serves("a"))
    conn = client(world)
    send(world, conn, numbered(0, 5))
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    send(world, conn, numbered(5, 5))
    assert different(a, b) == []
    assert b.backup is not None and b.backup.status().behind == 0
    a.crash()
    before = world.schedule.now
    world.until(lambda: world.serves("b"))
    assert world.schedule.now - before >= LEASE.length_ns * 3 // 4  # from the last heartbeat on
    assert world.in_sync() == ["b"]
    assert drain(world) == numbered(0, 10)


def test_the_former_active_node_returns_without_its_unconfirmed_tail() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    send(world, conn, numbered(0, 5))
    b.break_pipes()
    publish(a, conn, "unconfirmed", -7)
    world.run(20)
    assert a.confirmed(conn) == []
    a.crash()
    world.until(lambda: world.serves("b"))
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    [cut] = a.happened("replica_tail_cut")
    assert "confirmed" not in cut
    assert str(cut["files"]) in a.disk.files
    conn = client(world)
    send(world, conn, numbered(5, 5))
    b.crash()
    world.until(lambda: world.serves("a"))
    assert drain(world) == numbered(0, 10)


def test_a_handover_needs_no_wait() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    before = world.schedule.now
    world.stop("a")
    world.until(lambda: world["b"].serving())
    assert world.schedule.now - before < 300 * MS
    world["a"].follow()
    assert world["b"].happened("replica_takes_over")[-1]["why"] == "a has handed over, or its process has ended"
    world.run(30_000)  # it is in sync, and lets the new active node live
    assert world["b"].serving()
    assert world.in_sync() == ["a", "b"]
    assert drain(world) == numbered(0, 5)


def test_a_member_in_sync_leaves_the_new_active_node_time_to_read_its_journal() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    a, b = world["a"], world["b"]
    b.disk.slow = 20_000  # it has taken over, and cannot serve yet
    world.stop("a")
    a.follow()
    world.run(20_000)
    assert world.manager.value is not None and world.manager.value.active == "b"
    b.crash()
    world.until(lambda: world.serves("a"), 90_000)
    assert drain(world) == numbered(0, 5)


def test_the_end_that_an_active_node_tells_itself_needs_no_wait() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    world["a"].disk.fail_next_sync()
    publish(world["a"], conn, "lost", -7)
    before = world.schedule.now
    world.until(lambda: world.serves("b"))
    assert world.schedule.now - before < 400 * MS
    assert "lost" not in drain(world)[:5]


def test_a_group_of_three_goes_on_with_two() -> None:
    world = World(names="abc")
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    world["a"].crash()
    world.until(lambda: any(world.serves(name) for name in "bc"))
    world.until(lambda: world.in_sync() == ["b", "c"])
    conn = client(world)
    send(world, conn, numbered(5, 5))
    world.node.crash()
    world.until(lambda: any(world.serves(name) for name in "bc"))
    assert drain(world) == numbered(0, 10)


def test_a_member_whose_connection_is_dead_at_the_other_end_only_connects_again() -> None:
    """The end of a connection may be told to one side only: by a reset whose packet, or its answer, got lost."""
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    [pipe] = [each for each in a.pipes if each.open and b in [end[0] for end in each.ends]]
    pipe.open = False
    conn = next(conn for machine, _, conn in pipe.ends if machine is a)
    a.input("on_closed", conn, "Connection reset by peer")
    world.until(lambda: world.in_sync() == ["a"])
    world.until(lambda: world.in_sync() == ["a", "b"], 10_000)
    assert "said nothing" in str(b.happened("replication_link_lost"))


def test_at_a_cold_start_the_primary_goes_first() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    world.settle()
    a.crash()
    b.crash()
    b.follow()
    world.run(100)
    a.follow()
    world.until(lambda: any(world.serves(name) for name in "ab"))
    assert a.serving()
    world.until(lambda: world.in_sync() == ["a", "b"])


def test_a_backup_that_is_in_sync_serves_when_its_primary_stays_away() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    world["a"].crash()
    world["b"].crash()
    world["b"].follow()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(0, 5)


def test_a_member_that_is_not_in_sync_waits_and_says_for_whom() -> None:
    world = World()
    world.begin()
    conn = client(world)
    a, b = world["a"], world["b"]
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    send(world, conn, numbered(0, 5))
    a.crash()
    b.follow()
    world.run(20_000)
    assert b.backup is not None and b.backup.outcome is None
    [waits] = b.happened("replica_waits")
    assert "in sync are a" in str(waits["why"])
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    assert drain(world) == numbered(0, 5)


def test_an_operator_promotes_a_member_that_is_not_in_sync() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    a, b = world["a"], world["b"]
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    send(world, conn, numbered(5, 5))
    a.crash()
    b.follow()
    world.run(5_000)
    b.input("promote", True)
    world.until(lambda: world.serves("b"))
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    [cut] = a.happened("replica_tail_cut")
    assert "perhaps" in str(cut["confirmed"])
    assert drain(world) == numbered(0, 5)
    assert b.happened("replica_takes_over")[-1]["why"] == "an operator promoted this member"


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_the_answer_to_the_takeover_is_lost(lost: int) -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.manager.writes_lost = lost
    world.until(lambda: world.serves("b"))
    assert len(world["b"].happened("register_uncertain")) == 1
    assert world.manager.value is not None and world.manager.value.epoch == 2


def test_a_manager_that_is_away_delays_the_takeover() -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.manager.reachable = False
    world.run(30_000)
    assert not world["b"].serving()
    assert len(world["b"].happened("register_uncertain")) == 2, "once a run, and the first one ends with its doors"
    world.manager.reachable = True
    world.until(lambda: world.serves("b"))


def test_a_member_that_lost_the_race_follows_the_winner() -> None:
    world = World(names="abc")
    world.begin()
    world["a"].crash()
    world.until(lambda: any(world[name].outcomes[-1:] for name in "bc"), 20_000)
    world.until(lambda: len(world.in_sync()) == 2)
    assert sum(len(world[name].outcomes) for name in "bc") == 1


def test_a_backup_waits_for_the_register_that_its_primary_founds() -> None:
    world = World()
    b = world["b"]
    b.follow()
    world.run(2_000)
    [waits] = b.happened("replica_waits")
    assert "start its primary" in str(waits["why"])
    world["a"].follow()
    world.until(lambda: world.manager.value is not None and world.in_sync() == ["a", "b"])


def test_a_takeover_by_another_member_ends_the_stream_of_the_old_epoch() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    before = world.manager.value
    assert before is not None
    world.manager.set(CompareAndSet(world.manager.version, take_over(before, "a", b"t" * 16)))
    b.input("on_register", world.manager.version, world.manager.value)
    world.until(lambda: len(a.outcomes) == 2)
    world.until(lambda: world.serves("a") and world.in_sync() == ["a", "b"], 20_000)
    [lost] = b.happened("replication_link_lost")
    assert "epoch 2" in str(lost["why"])
