"""A passive member behind a real active node: what was confirmed is served by whoever takes over."""

from __future__ import annotations

from tests.cluster.replication.group_rig import client, publish
from tests.cluster.replication.replica_rig import ReplicaWorld


def test_a_follower_enters_the_in_sync_set_and_takes_over() -> None:
    world = ReplicaWorld()
    a, b = world["a"], world["b"]
    a.run_passive()
    world.until(lambda: world.serves("a"))
    conn = client(world)
    for number in range(5):
        publish(a, conn, f"before {number}", -10 - number)
    world.run(50)
    b.run_passive()
    world.until(lambda: world.in_sync() == ["a", "b"])
    for number in range(5):
        publish(a, conn, f"after {number}", -20 - number)
    world.run(50)
    assert len(a.confirmed(conn)) == 10
    assert b.files() == a.files()
    a.crash()
    world.until(lambda: world.serves("b"))
    assert b.texts("orders") == [f"before {number}" for number in range(5)] + [f"after {number}" for number in range(5)]
