"""A replicated group whose manager is away: a healthy group serves, and whoever waits for the manager says so."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atalanta.runtime.ha.store_requests import HANDOVER, post_request
from tests.app.group import LEASE, Group, command, has_role, in_sync
from tests.app.load import Load, loaded
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.process


class Away:
    """`with Away(group):` the manager of the group is away: its folder has another name."""

    def __init__(self, group: Group) -> None:
        self.locks = group.locks
        self.aside = group.locks.with_name("aside")

    def __enter__(self) -> Away:
        self.locks.rename(self.aside)
        return self

    def __exit__(self, *failure: object) -> None:
        self.aside.rename(self.locks)


def test_a_handover_waits_for_the_manager(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            with Away(group):
                refused = await asyncio.to_thread(command, "handover", group.primary.instance)
                assert refused.returncode == 75 and "nothing was asked" in refused.stderr, refused.stderr
                assert "handover_refused" not in group.primary.log()
                post_request(group.primary.data / "journal", HANDOVER)  # whatever the command knows
                await asyncio.to_thread(group.primary.until_logged, "handover_refused")
                await load.past(50)
                assert group.primary.role() == "active" and group.backup.role() == "passive"
            done = await asyncio.to_thread(command, "handover", group.primary.instance)
            assert done.returncode == 0, done.stderr
            await has_role(group.backup, "active")
            await load.past(50)

    with Group(tmp_path, own=LEASE) as group:
        group.start()
        asyncio.run(main(group))


def test_the_service_goes_back_when_the_manager_answers(tmp_path: Path) -> None:
    async def fail_back(group: Group, load: Load) -> None:
        group.primary.end(signal.SIGKILL)
        await has_role(group.backup, "active")
        group.primary.start()
        await in_sync(group.backup, 1)
        with Away(group):
            await asyncio.to_thread(group.backup.until_logged, "handover_refused")
            await load.past(50)
            assert group.backup.role() == "active" and group.primary.role() == "passive"
            assert "node_stopping" not in group.backup.log()
        await has_role(group.primary, "active")
        assert group.backup.log().count("handover_refused") == 1

    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            await fail_back(group, load)
            await load.past(50)

    own = LEASE + "failback_after_s = 3\n"
    with Group(tmp_path, backup_policy="<allow-failback>true</allow-failback>", own=own) as group:
        group.start()
        asyncio.run(main(group))


def test_clients_that_wait_for_a_lost_member_and_the_manager_are_told_of(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            with Away(group):
                group.backup.end(signal.SIGKILL)
                await asyncio.to_thread(group.primary.until_logged, "replica_awaited")
                shown = await asyncio.to_thread(command, "status", group.primary.instance)
                assert re.search(r"active +│ primary-\w+ │ \? ", shown.stdout), shown.stdout
                assert re.search(r"away +│ backup1-\w+ │", shown.stdout), shown.stdout
                line = [sys.executable, "-m", "atalanta", "doctor", f"127.0.0.1:{group.primary.port}"]
                asked = await asyncio.to_thread(
                    subprocess.run, line, capture_output=True, text=True, timeout=DEADLINE_S
                )
                assert asked.returncode == 75 and "asked by its folder" in asked.stderr, asked.stderr
                confirmed = len(load.confirmed)
                assert "replica_wait_over" not in group.primary.log()
            await load.past(20)
            assert len(load.confirmed) > confirmed
            await asyncio.to_thread(group.primary.until_logged, "replica_wait_over")

    with Group(tmp_path, own=LEASE) as group:
        group.start()
        asyncio.run(main(group))
