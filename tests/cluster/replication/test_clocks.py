"""The clocks of a group: the node that takes over knows how far the former node's clock was."""

from __future__ import annotations

from atalanta.cluster.replication.passive.backup_config import TakenOver
from atalanta.ha.replication.follower import Follower
from tests.cluster.replication.group_rig import LEASE
from tests.cluster.replication.machine_rig import Machines


def test_the_clock_of_a_node_that_takes_over_begins_above_what_the_former_one_could_have_shown() -> None:
    group = Machines()
    backup = group.machines["b"]
    floors: list[int] = []
    start = backup.start

    def started(follower: Follower | None = None) -> None:
        outcome = None if backup.backup is None else backup.backup.outcome
        assert isinstance(outcome, TakenOver)
        floors.append(outcome.clock_floor_ns)
        start(follower)

    backup.start = started  # type: ignore[method-assign]
    group.follow()
    group.until(lambda: group.in_sync() == ["a", "b"])
    group.run(1_000)
    last_ns = group.machines["a"].now
    group.machines["a"].crash()
    group.until(lambda: group.active() is backup)
    [floor_ns] = floors
    # The last heartbeat left within a quarter of the lease before the end.
    assert last_ns <= floor_ns <= last_ns + LEASE.length_ns
