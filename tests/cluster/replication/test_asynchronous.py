"""An asynchronous member: nobody waits for it, it never serves by itself, and an operator moves the service to it."""

from __future__ import annotations

from atalanta.ha.register import CompareAndSet, remove_member
from tests.cluster.replication.machine_rig import Machine, different
from tests.cluster.replication.member_rig import MemoryRegister
from tests.cluster.replication.replica_rig import World, client, drain, numbered, send

LOOK_MS = 2_500  # an active node looks at the register every 2 s


def begun(names: str = "abc") -> World:
    """A group whose last machine is asynchronous. The others are in sync."""
    world = World(names=names)
    world[names[-1]].asynchronous = True
    world.follow()
    world.until(lambda: world.in_sync() == list(names[:-1]) and world.serves("a"))
    world.until(lambda: bool(world["a"].happened("replica_connected")))
    return world


def far_of(world: World) -> Machine:
    return list(world.machines.values())[-1]


def give(world: World, name: str) -> None:
    """Does what the process of an active node does when an operator has promoted another member."""
    replicator = world[name].node.replicator
    assert replicator is not None
    world.until(replicator.has_wanted)
    world.stop(name)
    world[name].follow()


def test_nobody_waits_for_it_and_it_gets_everything() -> None:
    world = begun()
    conn, far = client(world), far_of(world)
    send(world, conn, numbered(0, 5))
    assert world.in_sync() == ["a", "b"]
    world.settle()
    assert different(world["a"], far) == []
    far.crash()
    send(world, conn, numbered(5, 5))
    world.run(10_000)
    assert world["a"].happened("replica_removed") == [], "it was in no set that it could leave"
    replicator = world["a"].node.replicator
    assert replicator is not None
    lag = replicator.followers.lags["c"]
    assert lag.behind_ns(world["a"].now, world["a"].node.journal.last) > 9_000_000_000
    far.follow()
    world.run(1_000)
    assert lag.behind_ns(world["a"].now, world["a"].node.journal.last) == 0
    assert different(world["a"], far) == []
    assert world.in_sync() == ["a", "b"]


def test_it_never_serves_by_itself_and_is_no_successor() -> None:
    world = begun("ac")
    conn, far = client(world), far_of(world)
    send(world, conn, numbered(0, 5))
    world["a"].input("stop")
    world.run(500)
    assert not world["a"].hand_over()
    world["a"].crash()
    world.run(30_000)
    assert not far.serving()
    *_, waits = far.happened("replica_waits")
    assert "in sync are a: start one of these, or promote this member" in str(waits["why"])
    # Without the word of the operator that messages may be lost, it refuses.
    far.input("promote", False)
    world.run(1_000)
    assert not far.serving() and len(far.happened("promotion_refused")) == 1


def test_after_a_disaster_it_serves_and_the_others_cut_what_it_lacked() -> None:
    world = begun()
    conn, far = client(world), far_of(world)
    send(world, conn, numbered(0, 5))
    far.crash()
    send(world, conn, numbered(5, 5))
    world["a"].crash()
    world["b"].crash()
    far.follow()
    world.run(10_000)
    far.input("promote", True)
    world.until(lambda: world.serves("c"))
    assert world.in_sync() == ["c"]
    # Its process may crash: it serves by an order that stands.
    far.crash()
    far.follow()
    world.until(lambda: world.serves("c"))
    send(world, client(world), numbered(10, 5))
    world["a"].follow()
    world["b"].follow()
    world.until(lambda: world.in_sync() == ["a", "b", "c"])
    for name in "ab":
        [cut] = world[name].happened("replica_tail_cut")
        assert "perhaps" in str(cut["confirmed"])
    # The service goes back, and the member is asynchronous again.
    world["a"].input("promote", False)
    give(world, "c")
    world.until(lambda: world.serves("a") and world.in_sync() == ["a", "b"])
    world.settle(1_000)
    assert different(world["a"], far) == []
    assert drain(world) == [*numbered(0, 5), *numbered(10, 5)]


def test_a_promotion_while_another_member_serves_loses_nothing() -> None:
    world = begun()
    conn, far = client(world), far_of(world)
    send(world, conn, numbered(0, 5))
    far.crash()
    send(world, conn, numbered(5, 50))
    far.follow()
    world.until(lambda: far.backup is not None and far.backup.status().active == "a")
    far.input("promote", False)
    give(world, "a")
    world.until(lambda: world.serves("c"))
    assert len(world["a"].happened("service_requested")) == 1
    assert drain(world) == numbered(0, 55)


def test_a_wish_ends_with_the_connection() -> None:
    world = begun()
    far = far_of(world)
    world.until(lambda: far.backup is not None and far.backup.status().active == "a")
    far.input("promote", False)
    replicator = world["a"].node.replicator
    assert replicator is not None
    world.until(replicator.has_wanted)
    far.crash()
    world.until(lambda: world.in_sync() == ["a", "b"])
    far.follow()
    world.run(5_000)
    assert world.in_sync() == ["a", "b"] and not replicator.has_wanted()


def test_an_active_node_that_was_deposed_by_an_order_learns_it_from_the_register() -> None:
    world = begun()
    far = far_of(world)
    world.until(lambda: far.backup is not None and far.backup.status().active == "a")
    world.run(1_000)
    world.forced = True  # the two data centres do not reach each other, but the manager
    far.input("promote", True)
    world.until(lambda: world["a"].why != [], LOOK_MS)
    assert "c has epoch 2" in world["a"].why[0]
    world.until(lambda: world.serves("c") and world.in_sync() == ["a", "b", "c"])


def test_a_new_register_after_the_loss_of_a_data_centre() -> None:
    world = begun("ac")
    conn, far = client(world), far_of(world)
    send(world, conn, numbered(0, 5))
    world["a"].crash()
    far.crash()
    lost = world.manager
    # The operator names another manager.
    world.manager = far.manager = MemoryRegister(world.schedule)
    far.follow()
    world.run(1_000)
    assert not far.serving()
    far.input("promote", True)
    world.until(lambda: world.serves("c"))
    far.crash()
    # The old data centre comes back, by mistake with its old manager: it goes on, with epochs of its own.
    world["a"].follow()
    world.until(lambda: world.serves("a"))
    send(world, client(world), numbered(5, 5))
    world["a"].crash()
    far.follow()
    world.until(lambda: world.serves("c"))
    send(world, client(world), numbered(10, 5))
    # With the new manager it follows, and cuts what it did alone.
    world["a"].manager = world.manager
    world["a"].follow()
    world.until(lambda: world.in_sync() == ["a", "c"])
    assert len(world["a"].happened("replica_tail_cut")) == 1
    world.settle(500)
    assert different(far, world["a"]) == []
    assert drain(world) == [*numbered(0, 5), *numbered(10, 5)]
    assert lost.value is not None and lost.value.active == "a"


def test_a_promotion_by_an_old_register_is_refused() -> None:
    """A member that was removed meanwhile took over by force, and what it lacked was lost."""
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    b.break_pipes()
    world.until(lambda: b.backup is not None and b.backup.status().active == "")
    known = world.manager.value
    assert known is not None
    world.manager.set(CompareAndSet(world.manager.version, remove_member(known, "a", "b", b"t" * 16)))
    a.crash()
    b.input("promote", False)
    world.until(lambda: b.happened("promotion_refused") != [])
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    assert a.may_serve() and not b.serving()


def test_a_promotion_waits_for_the_lease_of_the_active_member() -> None:
    """Its connection is lost, and it serves its clients until the lease is over: never both at the same time."""
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    world.until(lambda: world.in_sync() == ["a", "b"])
    world.manager.reachable = False
    world.silent = True
    b.break_pipes()
    world.until(lambda: b.backup is not None and b.backup.status().active == "")
    world.manager.reachable = True
    b.input("promote", False)
    world.run(10_000)
    assert [a.may_serve(), b.may_serve()].count(True) == 1


def test_a_promotion_that_waits_becomes_a_request_when_the_active_member_is_back() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    world.until(lambda: world.in_sync() == ["a", "b"])
    b.break_pipes()
    world.until(lambda: b.backup is not None and b.backup.status().active == "")
    b.input("promote", False)
    world.until(lambda: a.happened("service_requested") != [])
    assert a.may_serve() and not b.happened("promotion_refused")
