"""The ports of a passive member: clients wait there when it may soon serve, and are refused otherwise."""

from __future__ import annotations

from atalanta.cluster.replication.passive.backup_config import NotTakenOver, TakenOver
from tests.cluster.replication.group_rig import publish
from tests.cluster.replication.machine_rig import Machine
from tests.cluster.replication.member_rig import LEASE, MS
from tests.cluster.replication.replica_rig import World, client, drain

PATIENCE_MS = 3_000  # that clients have beside the lease


def begun(names: str = "ab") -> World:
    world = World(names=names)
    world.begin()
    return world


def shut(machine: Machine) -> int:
    """The number of times that its ports were bound anew."""
    return sum(isinstance(outcome, NotTakenOver) for outcome in machine.outcomes)


def test_a_member_that_follows_refuses_clients() -> None:
    world = begun()
    world.run(10_000)
    assert not world["b"].listens and not world["b"].outcomes


def test_clients_wait_at_the_other_half_of_a_pair_from_the_loss_of_the_active_node_on() -> None:
    world = begun()
    conn = client(world)
    publish(world.node, conn, "kept", -7)
    world.run(50)
    world["a"].crash()
    world.run(20)
    assert world["b"].listens and not world["b"].outcomes, "the lease is not over yet"
    world.until(lambda: world.serves("b"))
    assert world["b"].listens and shut(world["b"]) == 0
    assert drain(world) == ["kept"]


def test_clients_go_back_when_only_the_connection_was_lost() -> None:
    world = begun()
    world["b"].break_pipes()
    world.until(lambda: world["b"].listens)
    world.until(lambda: shut(world["b"]) == 1, 500)
    assert not world["b"].listens
    world.run(10_000)
    assert world.serves("a") and not world["b"].listens and shut(world["b"]) == 1


def test_clients_wait_no_longer_than_the_lease_and_three_seconds() -> None:
    """Without its manager the member cannot take over."""
    world = begun()
    world.manager.reachable = False
    world["a"].crash()
    world.until(lambda: world["b"].listens)
    opened = world.schedule.now
    world.until(lambda: shut(world["b"]) == 1)
    waited_ms = (world.schedule.now - opened) // MS
    assert 0 <= waited_ms - LEASE.wait_ns // MS - PATIENCE_MS < 100
    world.run(10_000)
    assert not world["b"].listens, "what was lost before the ports were bound opens nothing"
    world.manager.reachable = True
    world.until(lambda: world.serves("b"))
    assert world["b"].listens


def test_a_lost_connection_opens_no_doors_where_another_member_may_take_over() -> None:
    world = begun("abc")
    world["a"].crash()
    world.until(lambda: world.active() is not None)
    successor = world.node.name
    assert [name for name in "bc" if world[name].listens] == [successor]
    assert shut(world["b"]) == shut(world["c"]) == 0


def test_the_proof_opens_the_doors_of_every_member_until_one_serves() -> None:
    world = begun("abc")
    world["a"].crash()
    for name in "bc":
        world[name].input("on_process_ended", 1)
        assert world[name].listens
    world.until(lambda: world.serves("b"))
    world.until(lambda: world.in_sync() == ["b", "c"])
    world.run(200)
    assert world["b"].listens and not world["c"].listens
    assert shut(world["c"]) == 1


def test_the_proof_may_come_before_the_end_of_the_connection() -> None:
    """The dead process is no active node that clients must find."""
    world = begun()
    world["b"].disk.slow = 100
    publish(world.node, client(world), "last", -7)
    world.run(3)
    world["b"].input("on_process_ended", 1)
    assert world["b"].listens
    world.until(lambda: any(isinstance(outcome, TakenOver) for outcome in world["b"].outcomes), 3_000)
    assert shut(world["b"]) == 0


def test_the_proof_of_another_epoch_opens_nothing() -> None:
    world = begun()
    world["b"].input("on_process_ended", 2)
    assert not world["b"].listens


def test_no_client_waits_at_an_asynchronous_member() -> None:
    world = World()
    world["b"].asynchronous = True
    world.follow()
    world.until(lambda: world.serves("a") and bool(world["a"].happened("replica_connected")))
    world["a"].crash()
    world.run(10_000)
    assert not world["b"].listens
