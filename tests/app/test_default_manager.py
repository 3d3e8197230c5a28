"""Two nodes and nothing else: a pair by replication whose files name no manager."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atalanta.runtime.process import exit_codes
from tests.app.group import LEASE, Group, Member, has_role, in_sync
from tests.app.load import Load, loaded
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process

MANAGER = re.compile(r"<manager>.*</manager>", re.DOTALL)


def without_a_manager(folder: Path, *arguments: str) -> Group:
    """Returns a pair whose files have no manager."""
    group = Group(folder, own=LEASE, arguments=arguments)
    for member in group.members:
        member.broker_xml.write_text(MANAGER.sub("", member.broker_xml.read_text()))
    return group


@pytest.mark.parametrize("killed", ["broker", "started"])
def test_the_pair_outlives_the_processes_of_both(tmp_path: Path, killed: str) -> None:
    async def scenario(group: Group, load: Load) -> None:
        os.kill(group.primary.broker if killed == "broker" else group.primary.process.pid, signal.SIGKILL)
        await has_role(group.backup, "active")  # the voter answers until then
        assert "guard_proved_end" in group.backup.log()
        await asyncio.to_thread(group.primary.wait)
        await load.past(50)
        group.primary.start()
        await asyncio.to_thread(group.backup.until_logged, "replica_in_sync")
        group.backup.end(signal.SIGKILL)
        await has_role(group.primary, "active")

    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(50)
            await scenario(group, load)
            await load.past(50)

    with without_a_manager(tmp_path) as group:
        group.start()
        for member in group.members:
            voter = f"the voter 127.0.0.1:{group.primary.port + 1000}"
            assert f"no manager is configured: {voter}, in the guard of" in member.log()
        asyncio.run(main(group))


async def confirmed_without(stopped: Member, load: Load, number: signal.Signals) -> None:
    """Ends the member, which stays down: messages are confirmed all the same."""
    assert await asyncio.to_thread(stopped.end, number) == (-number if number == signal.SIGKILL else 0)
    await load.past(50)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_one_serves_and_confirms_while_the_other_is_down(tmp_path: Path, number: signal.Signals) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(50)
            await confirmed_without(group.primary, load, number)
            assert await asyncio.to_thread(group.backup.role) == "active"
            group.primary.start()
            await in_sync(group.backup, 1)
            await has_role(group.primary, "passive")
            await confirmed_without(group.primary, load, number)
            group.primary.start()
            await in_sync(group.backup, 2)

    with without_a_manager(tmp_path) as group:
        group.start()
        asyncio.run(main(group))


@pytest.mark.soak
def test_without_the_host_of_the_primary_an_operator_decides(tmp_path: Path) -> None:
    with without_a_manager(tmp_path) as group:
        group.start()
        group.primary.kill_all()
        group.backup.until_logged("register_uncertain")
        assert group.backup.role() == "passive"
        group.backup.end(signal.SIGTERM)
        port = free_port()
        folder = tmp_path / "voter"
        words = [sys.executable, "-m", "atalanta", "ha", "witness", "--listen", f"127.0.0.1:{port}", "--new"]
        with subprocess.Popen([*words, "--folder", str(folder)], stdout=subprocess.PIPE) as witness:
            assert witness.stdout is not None and witness.stdout.readline().startswith(b"ready")
            manager = f'[ha.manager]\nkind = "quorum"\nvoters = "127.0.0.1:{port}"\n'
            group.backup.broker_xml.with_name("atalanta.toml").write_text(LEASE + manager)
            group.backup.start()
            # It may have got the first block of the primary's epoch.
            waits = ("does not exist: start its primary", "the register is gone")
            until(lambda: any(each in group.backup.log() for each in waits), group.backup.log)
            promote = [sys.executable, "-m", "atalanta", "ha", "promote", "--lossy", str(group.backup.instance)]
            done = subprocess.run(promote, capture_output=True, text=True, timeout=DEADLINE_S)
            assert done.returncode == 0, done.stderr
            group.backup.until_role("active")
            group.backup.end(signal.SIGTERM)
            witness.terminate()


def test_a_voter_that_is_gone_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    with without_a_manager(tmp_path) as group:
        group.primary.start()
        group.primary.until_role("active")
        group.primary.end(signal.SIGTERM)
        shutil.rmtree(group.primary.data / "voter")
        group.primary.start()
        assert group.primary.wait() == exit_codes.BAD_DATA
        assert "is gone, the folder of the only voter of this pair" in group.primary.log()


def until_no_voter(port: int) -> None:
    """Waits for the end of the voter, which outlives its guard."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.1)


def test_a_primary_whose_disk_is_lost_follows_the_backup_that_serves(tmp_path: Path) -> None:
    async def main(group: Group) -> None:
        async with loaded(group.url) as load:
            await load.past(50)
            group.primary.end(signal.SIGKILL)
            await has_role(group.backup, "active")
            await load.past(50)
            await asyncio.to_thread(until_no_voter, group.primary.port + 1000)
            shutil.rmtree(group.primary.data)
            group.primary.start()
            await asyncio.to_thread(group.backup.until_followed, group.primary)
            assert group.primary.role() == "passive"
            group.backup.end(signal.SIGKILL)
            await has_role(group.primary, "active")
            await load.past(50)

    with without_a_manager(tmp_path) as group:
        group.start()
        asyncio.run(main(group))


def test_the_voter_needs_the_guard(tmp_path: Path) -> None:
    with without_a_manager(tmp_path, "--no-guard") as group:
        group.primary.start()
        assert group.primary.wait() == exit_codes.BAD_CONFIGURATION
        assert "--no-guard: no manager is configured" in group.primary.log()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", group.primary.port + 1000)) != 0
