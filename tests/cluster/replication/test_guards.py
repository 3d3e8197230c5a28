"""The guards of a group: a member takes over at once when the end of the active process was proven, and only then."""

from __future__ import annotations

from atalanta.cluster.replication.active.replicator import HANDOVER_TIMER
from atalanta.cluster.replication.member_codec import Guard
from atalanta.cluster.replication.passive.backup_config import TakenOver
from atalanta.ha.guard_port import GuardPort
from atalanta.ha.replication.follower import Follower
from tests.cluster.replication.group_rig import publish
from tests.cluster.replication.machine_rig import Machine
from tests.cluster.replication.member_rig import LEASE, MS
from tests.cluster.replication.replica_rig import World, client, drain

SALT = b"salt of 16 bytes"


class RecordedGuard(GuardPort):
    """The guards that a member watches, and watched before."""

    def __init__(self) -> None:
        self.watched: tuple[str, int, bytes, int] | None = None
        self.epochs: list[int] = []

    def watch(self, host: str, port: int, salt: bytes, epoch: int) -> None:
        self.watched = host, port, salt, epoch
        self.epochs.append(epoch)

    def close(self) -> None:
        self.watched = None


class GuardedMachine(Machine):
    """A machine whose process has a guard, at the port 7."""

    def process_guard(self, follower: Follower) -> Guard | None:
        known = follower.view.known
        assert known is not None
        return Guard(known.epoch, 7, SALT)


def guarded(names: str = "ab") -> tuple[World, dict[str, RecordedGuard]]:
    """Machines with guards, all in sync behind "a", and what each of them watches."""
    world = World(names=names)
    watches = {}
    for name in names:
        machine = world.machines[name] = GuardedMachine(world, name, name == "a")
        machine.guard = watches[name] = RecordedGuard()
    world.begin()
    return world, watches


def test_the_proof_needs_no_wait() -> None:
    world, watches = guarded()
    assert watches["b"].watched == ("a", 7, SALT, 1)
    conn = client(world)
    publish(world.node, conn, "kept", -7)
    world.run(50)
    world["a"].crash()
    before = world.schedule.now
    world.run(20)
    assert watches["b"].watched is not None, "the end of the connection proves nothing, and ends no watch"
    world["b"].input("on_process_ended", 1)
    world.until(lambda: world.serves("b"))
    assert world.schedule.now - before < 200 * MS
    assert drain(world) == ["kept"]


def test_the_last_bytes_of_the_active_node_may_come_after_the_proof() -> None:
    """Its last heartbeats are no new promise, and its last records are stored before the member takes over."""
    world, _ = guarded()
    a, b = world["a"], world["b"]
    conn = client(world)
    b.disk.slow = 100
    publish(a, conn, "last", -7)
    world.run(3)
    before = world.schedule.now
    b.input("on_process_ended", 1)
    world.until(lambda: world.manager.value is not None and world.manager.value.epoch == 2)
    assert world.schedule.now - before < LEASE.length_ns // 4
    a.crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == ["last"]


def test_a_broken_connection_proves_nothing() -> None:
    world, watches = guarded()
    world["b"].break_pipes()
    world.run(3)
    assert watches["b"].watched == ("a", 7, SALT, 1)
    world.until(lambda: watches["b"].epochs == [1, 1])
    assert world.serves("a") and watches["b"].watched is not None


def test_the_proof_of_another_epoch_proves_nothing() -> None:
    world, _ = guarded()
    world["b"].input("on_process_ended", 2)
    world.run(5_000)
    assert world.serves("a") and not world["b"].outcomes


def test_the_guard_of_the_next_active_node_is_watched_and_its_end_is_another() -> None:
    """A process that has handed over, and then ends, says nothing about its successor."""
    world, watches = guarded("abc")
    world["a"].input("stop")
    world.until(lambda: bool(world["a"].hand_over()), 2_000)
    world.until(lambda: world.manager.value is not None and world.manager.value.epoch == 2)
    [successor, other] = sorted("bc", key=lambda name: not world[name].outcomes)
    world["a"].crash()
    world[other].input("on_process_ended", 1)
    world.until(lambda: world.serves(successor))
    world.run(5_000)
    assert world.serves(successor) and not any(isinstance(each, TakenOver) for each in world[other].outcomes)
    watched = watches[other].watched
    assert watched is not None and watched[0] == successor and watched[3] == 2


def test_the_member_that_clients_know_takes_over_before_others() -> None:
    """JMS clients dial the node that they have lost, and the backup that it has announced, for ever."""
    world, _ = guarded("abc")
    assert announced(world) == "b"
    world["a"].crash()
    world["c"].input("on_process_ended", 1)
    world.run(100)
    world["b"].input("on_process_ended", 1)
    world.until(lambda: world.serves("b"), 1_000)
    assert announced(world) in ("", "c")


def test_another_member_takes_over_when_the_one_that_clients_know_is_away() -> None:
    world, _ = guarded("abc")
    world["a"].crash()
    world["b"].crash()
    before = world.schedule.now
    world["c"].input("on_process_ended", 1)
    world.until(lambda: world.serves("c"))
    assert world.schedule.now - before < 1_500 * MS


def with_a_late_primary() -> World:
    """Returns a group in which "b" serves, and the primary "c" comes behind "a"."""
    world, _ = guarded("abc")
    for name in "ac":
        world[name].crash()
        world[name].primary = name == "c"
    world.until(lambda: world.serves("b"))
    for name in "ac":
        world[name].follow()
    world.until(lambda: world.in_sync() == ["a", "b", "c"])
    world.run(500)
    assert announced(world) == "a"
    return world


def test_a_handover_goes_to_the_member_that_clients_know() -> None:
    world = with_a_late_primary()
    world.stop("b")
    world.until(lambda: world.serves("a"), 1_000)


def test_a_failback_goes_to_the_primary_and_clients_know_it_before() -> None:
    world = with_a_late_primary()
    world["b"].input("on_timer", HANDOVER_TIMER)
    assert announced(world) == "c"
    world.stop("b")
    world.until(lambda: world.serves("c"), 1_000)


def announced(world: World) -> str:
    """Returns the member that the active node has announced as its backup."""
    active = world.active()
    assert active is not None and active.node.replicator is not None
    return active.node.replicator.announced


def test_an_active_node_without_a_guard_is_not_watched() -> None:
    world = World()
    watch = world["b"].guard = RecordedGuard()
    watch.watch("a", 7, SALT, 9)
    world.begin()
    assert watch.watched is None, "an earlier watch has ended"
