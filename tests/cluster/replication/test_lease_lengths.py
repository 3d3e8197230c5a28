"""Members of a group that are configured with leases of different lengths. The rig looks that one serves at a time."""

from __future__ import annotations

from atalanta.ha.lease import LeaseTerms
from tests.cluster.replication.member_rig import DROP_AFTER_NS, MS
from tests.cluster.replication.replica_rig import World


def unlike(active_ms: int, backup_ms: int) -> World:
    """Returns a group with "a" active, whose members have leases of these lengths."""
    world = World()
    world["a"].terms = LeaseTerms(active_ms * MS)
    world["a"].drop_after_ns = max(DROP_AFTER_NS, (active_ms + 1_000) * MS)  # as a process has it
    world["b"].terms = LeaseTerms(backup_ms * MS)
    world.begin()
    return world


def part(world: World) -> None:
    """Loses the network between the members, and what the active node would change in the register."""
    world.silent = True
    world.manager.delay_ns = 400 * MS
    world["a"].node.replicator.seat.register.compare_and_set = lambda request: None  # type: ignore[union-attr, method-assign]


def test_a_member_waits_for_the_longer_lease_of_the_active_node() -> None:
    world = unlike(20_000, 300)
    world.run(1_000)
    part(world)
    world.run(15_000)
    assert world["a"].may_serve() and world["b"].backup is not None
    world.until(lambda: world.serves("b"), 10_000)
    [told] = world["b"].happened("lease_lengths_differ")
    assert (told["its_ms"], told["own_ms"]) == (20_000, 300)


def test_a_member_that_starts_keeps_the_promise_of_its_earlier_life_to_a_longer_lease() -> None:
    world = unlike(20_000, 300)
    world.run(1_000)
    part(world)
    world["b"].crash()
    world["b"].follow()
    world.run(15_000)
    assert world["a"].may_serve() and world["b"].backup is not None
    world.until(lambda: world.serves("b"), 10_000)


def test_a_longer_lease_of_the_active_node_breaks_no_connection() -> None:
    world = unlike(40_000, 300)
    world.run(60_000)
    assert world["b"].happened("replication_link_lost") == []
    assert world.in_sync() == ["a", "b"] and world["a"].may_serve()


def test_a_longer_lease_of_the_follower_breaks_no_connection() -> None:
    world = unlike(300, 40_000)
    world.run(60_000)
    assert world["b"].happened("replication_link_lost") == []
    assert world.in_sync() == ["a", "b"] and world["a"].may_serve()
