"""A register that is gone, or is another one: nobody founds a second group beside the member that has the messages."""

from __future__ import annotations

import pytest

from atalanta.ha.register import CompareAndSet, found, take_over
from tests.cluster.replication.machine_rig import Machine
from tests.cluster.replication.replica_rig import (
    World,
    client,
    drain,
    numbered,
    send,
)


def test_a_primary_whose_register_is_gone_founds_no_other_one() -> None:
    world = World(names="a")
    world["a"].follow()
    world.until(lambda: world.serves("a"))
    world.run(100)
    world["a"].crash()
    world.manager.value, world.manager.version = None, 0
    world["a"].follow()
    world.run(5_000)
    [waits] = world["a"].happened("replica_waits")
    assert "restore the register" in str(waits["why"])
    assert world.manager.value is None
    world["a"].input("promote", True)
    world.until(lambda: world.serves("a"))


def lose_register(world: World) -> None:
    """Gives the group a manager that knows nothing."""
    world.manager.value, world.manager.version = None, 0


def with_a_lost_primary(world: World) -> Machine:
    """Lets "b" serve, and returns the primary with an empty disk. It does not run yet."""
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    send(world, client(world), numbered(0, 5))
    replaced = world.machines["a"] = Machine(world, "a", True)
    replaced.member_name = "a2"
    return replaced


@pytest.mark.parametrize("learned", [False, True])
def test_a_primary_with_an_empty_disk_founds_no_second_register_beside_the_member_that_serves(learned: bool) -> None:
    world = World()
    a = with_a_lost_primary(world)
    lose_register(world)
    a.learned = learned  # else the node id is that of its configuration
    a.follow()
    world.run(8_000)
    assert world.manager.value is None
    assert a.backup is not None and world.serves("b")
    [waits] = a.happened("replica_waits")
    assert "the register of the group is gone" in str(waits["why"])
    assert "start the one that served last" in str(waits["why"])


def test_a_primary_that_has_learned_its_node_id_founds_nothing_when_nobody_serves() -> None:
    world = World()
    a = world["a"]
    a.learned = True
    a.follow()
    world.run(8_000)
    assert world.manager.value is None


def test_the_member_that_serves_alone_writes_the_register_again_that_went_with_the_disk_of_the_other() -> None:
    world = World()
    world["b"].restores_register = True
    a = with_a_lost_primary(world)
    lose_register(world)
    a.follow()
    world.until(lambda: world.in_sync() == ["a2", "b"], 20_000)
    [restored] = world["b"].happened("register_restored")
    assert (restored["epoch"], restored["active"]) == (2, "b")
    assert not a.happened("replica_waits")
    assert drain(world) == numbered(0, 5)
    world["b"].crash()
    world.until(lambda: world.serves("a"), 20_000)


def test_a_member_whose_journal_is_newer_than_the_register_keeps_it() -> None:
    world = World()
    a = with_a_lost_primary(world)
    b = world["b"]
    b.crash()
    lose_register(world)
    a.follow()  # nobody serves: it founds the group again
    world.until(lambda: world.serves("a"))
    b.follow()
    world.run(8_000)
    [waits] = b.happened("replica_waits")
    assert "has epoch 1, but the journal of this member has epoch 2" in str(waits["why"])
    assert not b.happened("replica_tail_cut")
    assert b.backup is not None and b.backup.outcome is None
    assert world.serves("a") and not a.outcomes[1:]  # it is not sent to epoch 2
    a.crash()
    b.input("promote", True)
    world.until(lambda: world.serves("b"), 20_000)
    assert drain(world) == numbered(0, 5)


def test_a_member_that_serves_tells_of_another_register_once() -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    lose_register(world)
    world.manager.set(CompareAndSet(0, take_over(found("c", 0, b"f" * 16), "c", b"t" * 16)))
    world.run(8_000)
    [told] = world["b"].happened("register_replaced")
    assert (told["epoch"], told["found"], told["active"]) == (2, 1, "c")
    assert world.serves("b")
