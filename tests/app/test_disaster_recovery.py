"""An asynchronous member as a real process: an operator moves the service to it, with and without the other members."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from atalanta.runtime.ha.group.member_status import read_status
from tests.app.group import LEASE, Group, Member, command
from tests.app.load import loaded, receive, send
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process


def promoted(member: Member, *options: str) -> None:
    """Promotes a member, and waits until it serves."""
    done = command("promote", member.instance, *options)
    assert done.returncode == 0, done.stderr
    assert "serves, epoch" in done.stdout
    member.until_role("active")


def until_equal(active: Member) -> None:
    """Waits until every follower has everything."""

    def equal() -> bool:
        status = read_status(active.data / "journal")
        return status is not None and bool(status.followers) and all(each.behind == 0 for each in status.followers)

    until(equal, active.log)


@pytest.mark.soak
def test_the_service_moves_to_another_data_centre_and_back_without_a_loss(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            for member in (group.backup, group.primary):
                await load.past(50)
                await asyncio.to_thread(promoted, member)
            await load.past(50)

    with Group(tmp_path, own=LEASE, far=True) as group:
        group.start()
        shown = command("status", group.primary.instance).stdout
        assert "asynchronous" in shown
        assert "asynchronous" in command("status", group.backup.instance).stdout
        asyncio.run(main(group))
        group.primary.until_logged("replica_removed")  # it is asynchronous again
        assert "replica_tail_cut" not in group.primary.log() + group.backup.log()


def test_after_the_loss_of_a_data_centre_an_operator_decides(tmp_path: Path) -> None:
    with Group(tmp_path, own=LEASE, far=True) as group:
        group.start()
        asyncio.run(send(group.url, [0, 1]))
        until_equal(group.primary)
        group.backup.end(signal.SIGKILL)
        asyncio.run(send(group.url, [2]))
        group.primary.end(signal.SIGKILL)
        group.backup.start()
        group.backup.until_role("passive")
        time.sleep(1.5)  # three leases
        assert group.backup.role() == "passive"
        refused = command("promote", group.backup.instance)
        assert refused.returncode == 1 and "With --lossy" in refused.stderr
        promoted(group.backup, "--lossy")
        asyncio.run(send(group.url, [3]))
        # The old data centre comes back: what the other one lacked is set aside, and told.
        group.primary.start()
        group.backup.until_logged("replica_in_sync")
        assert "confirmed=" in group.primary.log() and "replica_tail_cut" in group.primary.log()
        promoted(group.primary)
        assert asyncio.run(receive(group.url, sure=3)) == [0, 1, 3]


@pytest.mark.soak
def test_the_manager_is_lost_with_the_data_centre(tmp_path: Path) -> None:
    with Group(tmp_path, backups=2, own=LEASE, far=True) as group:
        far = group.members[-1]
        group.start()
        asyncio.run(send(group.url, [0, 1]))
        until_equal(group.primary)
        for member in (group.primary, group.backup):
            member.end(signal.SIGKILL)
        group.locks.rename(tmp_path / "lost")
        refused = command("promote", far.instance, "--lossy")
        assert refused.returncode == 75 and "name another manager" in refused.stderr
        (tmp_path / "other").mkdir()
        for member in group.members:
            text = member.broker_xml.read_text()
            member.broker_xml.write_text(text.replace(f'"{group.locks}"', f'"{tmp_path / "other"}"'))
        far.end(signal.SIGTERM)
        far.start()
        far.until_role("passive")
        refused = command("promote", far.instance)
        assert refused.returncode == 1 and "no register" in refused.stderr
        promoted(far, "--lossy")
        asyncio.run(send(group.url, [2]))
        for member in (group.primary, group.backup):
            member.start()
        until(lambda: far.log().count("replica_in_sync") == 2, far.log)
        promoted(group.primary)
        assert asyncio.run(receive(group.url, sure=3)) == [0, 1, 2]


@pytest.mark.soak
def test_the_loss_of_hosts_and_disks_while_clients_send(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(50)
            far = group.members[-1]
            far.end(signal.SIGKILL)  # nobody waits for it
            await load.past(50)
            far.start()
            await asyncio.to_thread(far.until_role, "passive")
            # It is neither chosen nor waited for, when the active member is lost.
            group.primary.end(signal.SIGKILL)
            shutil.rmtree(group.primary.data)
            await asyncio.to_thread(group.backup.until_role, "active")
            await load.past(50)
            group.primary.start()
            await asyncio.to_thread(group.backup.until_logged, "replica_in_sync")
            await asyncio.to_thread(promoted, far)
            await load.past(50)
            await asyncio.to_thread(promoted, group.primary)
            await load.past(50)

    with Group(tmp_path, backups=2, own=LEASE, far=True) as group:
        group.start()
        asyncio.run(main(group))


@pytest.mark.soak
def test_the_lag_is_a_metric_also_while_the_member_is_away(tmp_path: Path) -> None:
    web = free_port()
    with Group(tmp_path, own=LEASE, far=True) as group:
        group.primary.arguments = ("--web", f"127.0.0.1:{web}")
        group.start()

        def lag(what: str) -> float:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/metrics", timeout=DEADLINE_S) as answer:
                lines = answer.read().decode().splitlines()
            found = [line for line in lines if line.startswith(f"artemis_replica_lag_{what}{{")]
            assert all('asynchronous="1"' in line and 'in_sync="0"' in line for line in found)
            return float(found[0].split()[-1]) if found else -1.0

        until(lambda: lag("records") == 0 and lag("seconds") == 0, group.primary.log)
        group.backup.end(signal.SIGKILL)
        asyncio.run(send(group.url, [0, 1]))
        until(lambda: lag("records") >= 2 and lag("seconds") > 1, group.primary.log)
        group.backup.start()
        until(lambda: lag("records") == 0 and lag("seconds") == 0, group.primary.log)
