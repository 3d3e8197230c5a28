"""Replicated groups as real processes: kills, lost disks, pauses, handovers; what was confirmed arrives once."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from atalanta.runtime.ha.store_requests import PROMOTE, post_request
from tests.app.group import LEASE, Group, Member, command, has_role, in_sync
from tests.app.load import Load, loaded
from tests.ports import free_port
from tests.runtime.ha.guard.guarded_process import alive, stop
from tests.waiting import until

pytestmark = pytest.mark.process
# With it the first start waits for nobody.
COORDINATED = "<coordination-id>a long lease</coordination-id>"


def run(group: Group, scenario: Callable[[Group, Load], Awaitable[None]], body: str = "") -> None:
    async def main() -> None:
        async with loaded(group.url, body) as load:
            await load.past(50)
            await scenario(group, load)
            await load.past(50)

    with group:
        group.start()
        asyncio.run(main())


def status(member: Member) -> dict[str, object]:
    """Returns what `atalanta ha status` says of it."""
    found = json.loads(command("status", member.instance, "--json").stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("killed", ["guard", "all"])
def test_the_lease_decides_after_a_kill_that_nobody_proves(tmp_path: Path, killed: str) -> None:
    async def kill(group: Group, load: Load) -> None:
        if killed == "all":
            group.primary.kill_all()
        else:
            os.kill(group.primary.guard, signal.SIGKILL)
        await has_role(group.backup, "active")
        assert "guard_proved_end" not in group.backup.log()
        assert group.primary.wait() == (-signal.SIGKILL if killed == "all" else 128 + signal.SIGKILL)
        assert not alive(group.primary.broker)

    run(Group(tmp_path, own=LEASE), kill)


def started(group: Group) -> None:
    """Kills what was started."""
    assert group.primary.end(signal.SIGKILL) == -signal.SIGKILL


def started_beside_a_stopped_broker(group: Group) -> None:
    """Kills what was started, while the broker stands still."""
    stop(group.primary.broker)
    started(group)


def broker(group: Group) -> None:
    """Kills the broker itself."""
    group.primary.kill_broker()
    assert group.primary.wait() == 128 + signal.SIGKILL


@pytest.mark.parametrize("kill_one", [started, started_beside_a_stopped_broker, broker])
def test_the_proof_of_a_guard_needs_no_wait(tmp_path: Path, kill_one: Callable[[Group], None]) -> None:
    async def kill(group: Group, load: Load) -> None:
        await asyncio.to_thread(group.backup.until_logged, "guard_watched")
        kill_one(group)
        await has_role(group.backup, "active")
        await load.past(20)
        assert "guard_proved_end" in group.backup.log()
        assert "has handed over, or its process has ended" in group.backup.log(), "no lease was waited for"
        if kill_one is broker:  # the next active node has a guard as well
            group.primary.start()
            await in_sync(group.backup, 1)
            await asyncio.to_thread(group.primary.until_logged, "guard_watched")

    run(Group(tmp_path, policy=COORDINATED, own="[ha]\nlease_ms = 8000\n"), kill)


def test_a_restart_behind_a_kill_waits_for_the_folder(tmp_path: Path) -> None:
    """The next process is started while the broker of the killed one still has the folder."""
    with Group(tmp_path, own=f"[ha]\nlease_ms = 500\nguard_port = {free_port()}\n") as group:
        group.primary.start()
        group.primary.until_role("active")
        guard, former = group.primary.guard, group.primary.broker
        group.primary.process.kill()
        group.primary.wait()
        group.primary.start()
        group.primary.until_role("active")
        assert not alive(former) and group.primary.broker != former
        assert "guard_unreachable" not in group.primary.log()
        until(lambda: not alive(guard), "the former guard stays")


def test_without_a_guard_the_lease_decides(tmp_path: Path) -> None:
    async def kill(group: Group, load: Load) -> None:
        group.primary.process.send_signal(signal.SIGKILL)
        began = time.monotonic()
        await has_role(group.backup, "active")
        assert time.monotonic() - began > 2, "heartbeats come four times in a lease of 3 s"
        assert "guard_proved_end" not in group.backup.log()

    run(Group(tmp_path, own="[ha]\nlease_ms = 3000\n", arguments=("--no-guard",)), kill)


def test_a_guard_port_that_is_in_use_is_told_and_the_lease_decides(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        own = f"[ha]\nlease_ms = 500\nguard_port = {taken.getsockname()[1]}\n"
        with Group(tmp_path, own=own) as group:
            group.start()
            assert f"guard_unreachable at=127.0.0.1:{taken.getsockname()[1]}" in group.primary.log()
            os.kill(group.primary.broker, signal.SIGKILL)
            group.backup.until_role("active")


def test_the_backup_serves_after_the_loss_of_the_active_host_and_its_disk(tmp_path: Path) -> None:
    async def lose(group: Group, load: Load) -> None:
        group.primary.end(signal.SIGKILL)
        shutil.rmtree(group.primary.data)
        await has_role(group.backup, "active")
        await load.past(20)
        # It comes back with an empty disk, learns its group, catches up, and serves when the other one is lost.
        group.primary.start()
        await in_sync(group.backup, 1)
        group.backup.end(signal.SIGKILL)
        await has_role(group.primary, "active")

    run(Group(tmp_path, own=LEASE), lose)


@pytest.mark.soak
def test_kills_in_turn(tmp_path: Path) -> None:
    async def kills(group: Group, load: Load) -> None:
        for number, (one, other) in enumerate([(group.primary, group.backup), (group.backup, group.primary)] * 2):
            one.end(signal.SIGKILL)
            await load.past(20)
            await has_role(other, "active")
            one.start()
            await in_sync(other, number // 2 + 1 + (1 if other is group.primary else 0))

    run(Group(tmp_path, own=LEASE), kills)


def test_a_primary_that_was_paused_longer_than_its_lease_serves_nobody_any_more(tmp_path: Path) -> None:
    async def pause(group: Group, load: Load) -> None:
        os.kill(group.primary.broker, signal.SIGSTOP)
        await has_role(group.backup, "active")
        assert "guard_proved_end" not in group.backup.log(), "a process that stands still has not ended"
        confirmed = len(load.confirmed)
        os.kill(group.primary.broker, signal.SIGCONT)
        await has_role(group.primary, "passive")
        assert "WARNING  atalanta.app member_deposed" in group.primary.log()
        assert "CRITICAL" not in group.primary.log() and "node_stopped status=0" in group.primary.log()
        assert "replica_removed member=primary" not in group.primary.log()
        await load.past(1)
        await in_sync(group.backup, 1)
        assert len(load.confirmed) > confirmed

    group = Group(tmp_path, own=LEASE)
    group.primary.arguments = ("--no-guard",)  # the process that was started is the node
    run(group, pause)


def test_the_primary_goes_on_after_the_loss_of_its_backup(tmp_path: Path) -> None:
    async def lose(group: Group, load: Load) -> None:
        group.backup.end(signal.SIGKILL)
        await load.past(50)
        assert "replica_removed" in group.primary.log()
        assert group.primary.role() == "active"
        group.backup.start()
        await in_sync(group.primary, 2)
        # The one that came back has everything that was sent meanwhile.
        group.primary.end(signal.SIGKILL)
        await has_role(group.backup, "active")

    run(Group(tmp_path, own=LEASE), lose)


def damage(journal: Path) -> None:
    """Flips bits in the middle of what the first segment has."""
    segment = min(journal.glob("journal-*.log"))
    data = bytearray(segment.read_bytes())
    data[len(bytes(data).rstrip(b"\0")) // 2] ^= 0x55
    segment.write_bytes(data)


def test_a_member_with_a_damaged_journal_is_repaired_and_takes_over(tmp_path: Path) -> None:
    async def repair(group: Group, load: Load) -> None:
        group.backup.end(signal.SIGKILL)
        await asyncio.to_thread(group.primary.until_logged, "replica_removed")
        damage(group.backup.data / "journal")
        group.backup.start()
        await in_sync(group.primary, 2)
        assert "journal_damaged" in group.backup.log() and "member_renamed" in group.backup.log()
        await load.past(20)
        group.primary.end(signal.SIGKILL)
        await has_role(group.backup, "active")

    run(Group(tmp_path, own=LEASE), repair)


def test_handovers(tmp_path: Path) -> None:
    async def hand_over(group: Group, load: Load) -> None:
        for one, other in ((group.primary, group.backup), (group.backup, group.primary)):
            word = "handover" if one is group.primary else "demote"
            done = await asyncio.to_thread(command, word, one.instance)
            assert done.returncode == 0, done.stderr
            assert "serves, epoch" in done.stdout
            await has_role(other, "active")
            await has_role(one, "passive")
            again = await asyncio.to_thread(command, "demote", one.instance)
            assert (again.returncode, again.stdout.endswith(" is passive already\n")) == (0, True), again.stderr
            await load.past(20)
            await asyncio.to_thread(wait_for_sync, other)

    run(Group(tmp_path), hand_over)


def wait_for_sync(active: Member) -> None:
    """Waits until the status of the active member has a follower in sync."""

    def synced() -> bool:
        described = status(active)["status"]
        assert described is None or isinstance(described, dict)
        return described is not None and any(each["in_sync"] for each in described["followers"])

    until(synced, active.log)


def test_a_graceful_stop_hands_over_and_both_may_be_stopped_and_started(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(20)
            began = time.monotonic()
            assert await asyncio.to_thread(group.primary.end, signal.SIGTERM) == 0
            await has_role(group.backup, "active")
            assert time.monotonic() - began < 20, "it does not wait for the lease of 60 s"
            await load.past(20)
        async with loaded(group.url) as load:
            await load.past(20)
            group.primary.start()
            await in_sync(group.backup, 1)
            for each in (group.primary, group.backup):
                await asyncio.to_thread(each.end, signal.SIGKILL)
            group.primary.start()
            group.backup.start()
            await load.past(20)

    with Group(tmp_path, own="[ha]\nlease_ms = 4000\n") as group:
        group.start()
        asyncio.run(main(group))


def test_the_service_goes_back_to_the_primary(tmp_path: Path) -> None:
    async def fail_back(group: Group, load: Load) -> None:
        group.primary.end(signal.SIGKILL)
        await has_role(group.backup, "active")
        group.primary.start()
        await has_role(group.primary, "active")
        await has_role(group.backup, "passive")
        assert "the primary is back and in sync" in group.backup.log()

    own = LEASE + "failback_after_s = 1\n"
    run(Group(tmp_path, backup_policy="<allow-failback>true</allow-failback>", own=own), fail_back)


PAGING = """<address-settings><address-setting match="#">
<max-size-bytes>100K</max-size-bytes><page-size-bytes>20K</page-size-bytes>
<address-full-policy>PAGE</address-full-policy>
</address-setting></address-settings>"""


def test_page_files_are_replicated(tmp_path: Path) -> None:
    async def kill(group: Group, load: Load) -> None:
        await load.past(200)
        group.primary.end(signal.SIGKILL)
        shutil.rmtree(group.primary.data)
        await has_role(group.backup, "active")
        await load.past(100)

    run(Group(tmp_path, own=LEASE, more=PAGING), kill, body=" " + 2000 * "x")


def test_large_messages_are_replicated(tmp_path: Path) -> None:
    async def kill(group: Group, load: Load) -> None:
        await load.past(20)
        group.primary.end(signal.SIGKILL)
        shutil.rmtree(group.primary.data)
        await has_role(group.backup, "active")
        await load.past(20)

    run(Group(tmp_path, own=LEASE), kill, body=" " + 300_000 * "x")


def test_an_operator_sees_the_group(tmp_path: Path) -> None:
    with Group(tmp_path) as group:
        group.start()
        # It says first that it is passive if its backup was faster and gave back.
        assert group.primary.lines()[-1] == f"ready role=active artemis=127.0.0.1:{group.primary.port}"
        assert group.backup.lines() == ["ready role=passive"]
        assert "founded=True" in group.primary.log() and "founded=False" in group.backup.log()
        seen = status(group.primary)
        assert seen["state"] == "active"
        register = seen["register"]
        assert isinstance(register, dict) and register["active"] == seen["member"] and len(register["in_sync"]) == 2
        passive = status(group.backup)
        assert passive["state"] == "passive" and passive["member"] in register["in_sync"]
        shown = command("status", group.primary.instance)
        assert "follows" in shown.stdout and "register: epoch 1, active" in shown.stdout
        refused = command("handover", group.backup.instance)
        assert refused.returncode == 75 and "asked of the active one" in refused.stderr
        group.backup.end(signal.SIGKILL)
        assert status(group.backup)["state"] == "stopped"
        group.primary.until_logged("replica_removed")
        for word in ("handover", "demote"):
            done = command(word, group.primary.instance)
            assert done.returncode == 75 and "no other member is in sync: start the backup" in done.stderr
        refused = command("demote", group.backup.instance)
        assert refused.returncode == 75 and "does not run: nothing to demote" in refused.stderr


@pytest.mark.soak
def test_promotion_of_a_member_that_is_not_in_sync(tmp_path: Path) -> None:
    with Group(tmp_path, own=LEASE) as group:
        group.start()
        group.backup.end(signal.SIGKILL)
        group.primary.until_logged("replica_removed")
        group.primary.end(signal.SIGKILL)
        post_request(group.backup.data / "journal", PROMOTE)  # of an earlier process: it is not obeyed
        group.backup.start()
        group.backup.until_role("passive")
        time.sleep(2)
        assert group.backup.role() == "passive", "it may lack what the primary has confirmed alone"
        refused = command("promote", group.backup.instance)
        assert refused.returncode == 1 and "is not in sync" in refused.stderr
        done = command("promote", group.backup.instance, "--lossy")
        assert done.returncode == 0, done.stderr
        group.backup.until_role("active")
