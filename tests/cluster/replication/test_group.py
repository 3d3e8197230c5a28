"""A group of machines in memory: the active one dies, another takes over, and everything confirmed is there."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.store.config import JournalConfig
from tests.cluster.replication.client_rig import Client
from tests.cluster.replication.group_rig import JOURNAL_ID, publish
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


def paging() -> AddressSettingsRepository:
    settings = AddressSettingsRepository()
    settings.add("paged", {"max_size_bytes": 12_000, "page_size_bytes": 4_000})
    return settings


@pytest.mark.parametrize("seed", range(12))
def test_the_active_machine_is_killed_at_any_point_and_nothing_confirmed_is_lost(seed: int) -> None:
    journal = JournalConfig(JOURNAL_ID, segment_size_bytes=65_536, compact_min_segments=2, compact_percentage=50)
    group = Machines(seed, journal=journal, settings=paging)
    client = Client(group, seed)
    group.follow()
    for _ in range(3):
        group.until(lambda: len(group.in_sync()) == 2 and group.active() is not None)
        for _ in range(group.draw.randint(20, 150)):
            client.act()
            group.run(group.draw.randint(0, 12))
        client.take()
        active = group.active()
        if active is not None:
            active.crash()
            taken_over(group)
            for _ in range(group.draw.randint(0, 30)):
                client.act()
                group.run(group.draw.randint(0, 12))
            active.follow()
    client.check()
    assert len(client.confirmed) > 50
