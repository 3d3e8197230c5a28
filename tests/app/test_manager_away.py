"""A replicated group whose manager is away: a healthy group serves, and whoever waits for the manager says so."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.runtime.ha.store_requests import HANDOVER, post_request
from tests.app.group import Group
from tests.app.load import Load, loaded
from tests.app.test_replication import LEASE, command, has_role, in_sync

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
