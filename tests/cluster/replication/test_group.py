"""A group of machines in memory: the active one dies, another takes over, and everything confirmed is there."""

from __future__ import annotations

from tests.cluster.replication.group_rig import publish
from tests.cluster.replication.machine_rig import Machine, Machines
from tests.wire.core.server.server_rig import queue_request


def formed(group: Machines) -> Machine:
    """Starts all machines; the active one, when all are in sync."""
    group.follow()
    group.until(lambda: len(group.in_sync()) == len(group.machines) and group.active() is not None)
    active = group.active()
    assert active is not None
    return active


def taken_over(group: Machines) -> Machine:
    group.until(lambda: group.active() is not None)
    active = group.active()
    assert active is not None
    return active


def test_a_backup_takes_over_with_everything_that_was_confirmed() -> None:
    group = Machines()
    active = formed(group)
    assert active.name == "a"
    conn = active.login()
    active.send(conn, queue_request("orders"))
    for number in range(10):
        publish(active, conn, f"m{number}", -10 - number)
        group.run(3)
    group.run(100)
    assert active.confirmed(conn) == [-10 - number for number in range(10)]
    active.crash()
    backup = taken_over(group)
    assert backup.name == "b"
    assert backup.texts("orders") == [f"m{number}" for number in range(10)]
    active.follow()
    group.until(lambda: group.in_sync() == ["a", "b"])
