"""A group of machines in memory: the active one dies, another takes over, and everything confirmed is there."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.store.config import JournalConfig
from tests.cluster.replication.client_rig import Client
from tests.cluster.replication.group_rig import publish
from tests.cluster.replication.machine_rig import Machine, Machines, different
from tests.cluster.replication.member_rig import JOURNAL_ID
from tests.kernel.broker_rig import SECOND, RecordingEndpoint
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


@pytest.mark.parametrize("ended", [False, True])
def test_a_lease_of_a_log_view_and_its_end_are_the_backups_too(ended: bool) -> None:
    group = Machines()
    active = formed(group)
    conn = active.login()
    active.send(conn, queue_request("orders"))
    publish(active, conn, "m", -10)
    group.run(100)
    views = active.node.broker.log_views
    held = views.lease(active.now, "orders", "g", "driver", 600 * SECOND, 0, RecordingEndpoint(), 1)
    if ended:
        views.end_lease(active.now, active.node.broker.queues["orders"], "user admin from h:1", held.epoch)
    active.end_turn()
    group.run(100)
    active.crash()
    backup = taken_over(group)
    views = backup.node.broker.log_views
    if ended:
        with pytest.raises(BrokerError, match="was ended by user admin from h:1"):
            views.ack_through("orders", "", "g", held.epoch, 1, RecordingEndpoint(), 1)
        assert backup.texts("orders") == ["m"]
    else:
        found = backup.node.broker.queues["orders"].active_lease()
        assert found is not None and (found.owner, found.epoch, found.begun_at) == ("driver", 1, held.begun_at)
        assert views.ack_through("orders", "", "g", held.epoch, 1, RecordingEndpoint(), 1) == 1


def paging() -> AddressSettingsRepository:
    settings = AddressSettingsRepository()
    settings.add("paged", {"max_size_bytes": 12_000, "page_size_bytes": 4_000})
    return settings


def world(seed: int, names: str = "ab") -> tuple[Machines, Client]:
    journal = JournalConfig(JOURNAL_ID, segment_size_bytes=65_536, compact_min_segments=2, compact_percentage=50)
    group = Machines(seed, names, journal=journal, settings=paging)
    return group, Client(group, seed)


def work(group: Machines, client: Client, least: int, most: int) -> None:
    for _ in range(group.draw.randint(least, most)):
        client.act()
        group.run(group.draw.randint(0, 12))


@pytest.mark.parametrize("seed", range(6))
def test_the_active_machine_is_killed_at_any_point_and_nothing_confirmed_is_lost(seed: int) -> None:
    group, client = world(seed)
    group.follow()
    for _ in range(3):
        group.until(lambda: len(group.in_sync()) == 2 and group.active() is not None)
        work(group, client, 20, 150)
        client.take()
        active = group.active()
        if active is not None:
            active.crash()
            taken_over(group)
            work(group, client, 0, 30)
            active.follow()
    client.check()
    assert len(client.confirmed) > 50


def fault(group: Machines, kind: str) -> None:
    """Does something to the group; afterwards every machine runs."""
    machines = list(group.machines.values())
    active = group.active()
    victim = active if active is not None and group.draw.random() < 0.7 else group.draw.choice(machines)
    if kind == "crash":
        victim.crash()
        group.run(group.draw.choice((1, 100, 3_000)))
        victim.follow()
    elif kind == "all":
        for machine in machines:
            machine.crash()
        group.run(10)
        for machine in group.draw.sample(machines, len(machines)):
            machine.follow()
            group.run(group.draw.choice((0, 0, 50, 4_000)))
    elif kind == "silence":
        group.silent = True
        group.run(group.draw.choice((50, 700, 2_500, 6_000)))
        group.silent = False
        for machine in machines:
            machine.break_pipes()
    elif kind == "stop" and active is not None:
        active.input("stop")
        for _ in range(100):
            group.run(20)
            if not active.serving() or active.hand_over():
                break
        else:
            active.crash()
            active.follow()
    elif kind == "disk" and active is not None:
        active.disk.fail_next_sync()
    elif kind == "register":
        group.manager.reachable = False
        victim.crash()
        group.run(group.draw.choice((100, 5_000)))
        group.manager.reachable = True
        group.manager.writes_lost = group.draw.randint(0, 3)
        victim.follow()


@pytest.mark.parametrize("seed", range(8))
def test_nothing_confirmed_is_lost_whatever_happens(seed: int) -> None:
    play(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_nothing_confirmed_is_lost_in_many_groups(seed: int) -> None:
    play(seed)


def play(seed: int) -> None:
    """Faults of a group while a client works; in the end all is there, and the members have the same files."""
    group, client = world(seed, "abc" if seed % 2 else "ab")
    group.follow()
    group.until(lambda: group.active() is not None)
    for _ in range(5):
        if group.draw.random() < 0.6:
            group.until(lambda: len(group.in_sync()) > 1 and group.active() is not None, 60_000)
        work(group, client, 10, 80)
        fault(group, group.draw.choice(("crash", "crash", "all", "silence", "stop", "disk", "register")))
        work(group, client, 0, 20)
    for machine in group.machines.values():
        machine.disk.heal()
    group.run(2_000)  # whoever is not connected any more is removed
    group.until(lambda: len(group.in_sync()) == len(group.machines) and group.active() is not None, 60_000)
    group.settle()
    active = taken_over(group)
    for machine in group.machines.values():
        assert different(active, machine) == []
    client.check()
