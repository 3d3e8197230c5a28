"""The guards of a group: a member takes over at once when the end of the active process was proven, and only then."""

from __future__ import annotations

from atalanta.cluster.replication.member_codec import Guard
from atalanta.ha.guard_port import GuardPort
from atalanta.ha.replication import Follower
from tests.cluster.replication.group_rig import LEASE, MS, publish
from tests.cluster.replication.machine_rig import Machine
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
    world.until(lambda: bool(world["a"].input("hand_over")), 2_000)
    world.until(lambda: world.manager.value is not None and world.manager.value.epoch == 2)
    [successor, other] = sorted("bc", key=lambda name: not world[name].outcomes)
    world["a"].crash()
    world[other].input("on_process_ended", 1)
    world.until(lambda: world.serves(successor))
    world.run(5_000)
    assert world.serves(successor) and not world[other].outcomes
    watched = watches[other].watched
    assert watched is not None and watched[0] == successor and watched[3] == 2


def test_an_active_node_without_a_guard_is_not_watched() -> None:
    world = World()
    watch = world["b"].guard = RecordedGuard()
    watch.watch("a", 7, SALT, 9)
    world.begin()
    assert watch.watched is None, "an earlier watch has ended"
