"""Pairs with a shared store, as real processes: kills, pauses, stops, failback; what was confirmed arrives once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from atalanta.client import Message, blocking, connect
from tests.app.load import Load, loaded, receive, send
from tests.app.pair import Pair
from tests.broker_process import BrokerProcess, refused
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.process

LEASE = "[ha]\nlease_ms = 500\n"


def run(pair: Pair, scenario: Callable[[Pair, Load], Awaitable[None]]) -> None:
    async def main() -> None:
        async with loaded(pair.url) as load:
            await load.past(50)
            await scenario(pair, load)
            await load.past(50)

    with pair:
        pair.start()
        asyncio.run(main())


def connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_backup_is_bound_and_refuses_clients(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        pair.start()
        assert connects(pair.primary.port)
        assert not connects(pair.backup.port)
        assert pair.backup.lines() == ["ready role=passive"]
        assert pair.primary.end(signal.SIGTERM) == 0
        assert pair.backup.end(signal.SIGTERM) == 0


def test_a_backup_waits_for_the_first_start_of_a_primary(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        pair.backup.start()
        pair.backup.until_role("passive")
        time.sleep(0.3)
        assert pair.backup.role() == "passive"
        pair.primary.start()
        pair.primary.until_role("active")
        assert pair.backup.role() == "passive"


def test_the_backup_serves_after_a_kill(tmp_path: Path) -> None:
    async def kill(pair: Pair, load: Load) -> None:
        assert pair.primary.end(signal.SIGKILL) == -signal.SIGKILL
        await asyncio.to_thread(pair.backup.until_role, "active")

    run(Pair(tmp_path, backup="<allow-failback>false</allow-failback>"), kill)


def test_a_paused_primary_confirms_nothing_and_becomes_passive(tmp_path: Path) -> None:
    async def pause(pair: Pair, load: Load) -> None:
        pair.primary.process.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(pair.backup.until_role, "active")
        pair.primary.process.send_signal(signal.SIGCONT)
        await asyncio.to_thread(pair.primary.until_role, "passive")
        await load.past(1)
        assert "store_lost" in pair.primary.log()

    run(Pair(tmp_path, backup="<allow-failback>false</allow-failback>", own=LEASE), pause)


def test_an_epoch_that_was_served_and_has_lost_its_mark_stops_the_start_by_name(tmp_path: Path) -> None:
    """Its messages would be left out in silence: 871 confirmed ones once."""
    with Pair(tmp_path, own=LEASE) as pair:
        pair.start()
        primary, backup = pair.primary, pair.backup
        with blocking.connect(f"tcp://127.0.0.1:{primary.port}") as connection:
            connection.producer("orders").send(Message("kept"))
        time.sleep(0.5)  # the lease is renewed four times
        mark = pair.store / "journal" / "epochs" / "00000001" / "complete"
        mark.unlink()
        journal = str(pair.store / "journal")
        for command in (["check", str(primary.broker_xml)], ["data", "show", journal, "--while-running"]):
            ended = subprocess.run(
                [sys.executable, "-m", "atalanta", *command],
                capture_output=True, text=True, env=os.environ | {"COLUMNS": "1000"},
            )  # fmt: skip
            assert ended.returncode != 0 and f"{mark} is missing" in ended.stdout + ended.stderr, ended
        assert primary.end(signal.SIGKILL) == -signal.SIGKILL
        for process in (backup, primary):
            if process is primary:
                process.start()
            assert process.wait() == 65, process.log()
            assert f"{mark} is missing: epoch 1 was served" in process.log()
            assert "create the file again, empty" in process.log()
        assert [each.name for each in (pair.store / "journal" / "epochs").iterdir()] == ["00000001"]
        mark.touch()
        primary.start()
        primary.until_role("active")
        with blocking.connect(f"tcp://127.0.0.1:{primary.port}") as connection:
            received = connection.consumer("orders").receive(10)
            assert received is not None and received.text == "kept"


def test_kills_in_turn(tmp_path: Path) -> None:
    async def kills(pair: Pair, load: Load) -> None:
        for _ in range(2):
            for one, other in ((pair.primary, pair.backup), (pair.backup, pair.primary)):
                one.end(signal.SIGKILL)
                await load.past(20)
                await asyncio.to_thread(other.until_role, "active")
                one.start()
                await asyncio.to_thread(one.until_role, "passive")

    run(Pair(tmp_path, backup="<allow-failback>false</allow-failback>"), kills)


def test_a_graceful_stop_leaves_the_backup_passive_unless_the_policy_says_otherwise(
    tmp_path: Path,
) -> None:
    with Pair(tmp_path) as pair:
        pair.start()
        assert pair.primary.end(signal.SIGTERM) == 0
        time.sleep(0.5)
        assert pair.backup.role() == "passive"
        pair.primary.start()
        pair.primary.until_role("active")


def test_a_primary_waits_for_its_turn_as_long_as_the_file_says(tmp_path: Path) -> None:
    more = "<journal-lock-acquisition-timeout>500</journal-lock-acquisition-timeout>"
    with Pair(tmp_path, backup="<allow-failback>false</allow-failback>", more=more) as pair:
        pair.start()
        assert pair.primary.end(signal.SIGKILL) != 0
        pair.backup.until_role("active")
        pair.primary.start()
        pair.primary.until_role("passive")
        assert pair.primary.wait() == 75
        assert "store_wait_timed_out" in pair.primary.log()
        assert pair.backup.role() == "active"


def test_failover_on_shutdown_and_failback(tmp_path: Path) -> None:
    async def stop_and_start(pair: Pair, load: Load) -> None:
        assert await asyncio.to_thread(pair.primary.end, signal.SIGTERM) == 0
        await asyncio.to_thread(pair.backup.until_role, "active")
        await load.past(20)
        pair.primary.start()
        await asyncio.to_thread(pair.primary.until_role, "active")
        await asyncio.to_thread(pair.backup.until_role, "passive")
        await load.past(20)

    run(Pair(tmp_path, primary="<failover-on-shutdown>true</failover-on-shutdown>"), stop_and_start)


def test_clients_learn_of_the_backup(tmp_path: Path) -> None:
    async def main(pair: Pair) -> None:
        async with asyncio.timeout(60), connect(f"tcp://127.0.0.1:{pair.primary.port}") as connection:
            while not any(each.backup_port == pair.backup.port for each in connection.topology):
                await asyncio.sleep(0.05)

    with Pair(tmp_path) as pair:
        pair.start()
        asyncio.run(main(pair))


def command(*words: object, name: str = "ha") -> subprocess.CompletedProcess[str]:
    """Runs `atalanta ha`, or another command."""
    line = [sys.executable, "-m", "atalanta", name, *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S)


def test_an_operator_sees_the_pair_and_hands_over(tmp_path: Path) -> None:
    async def hand_over(pair: Pair, load: Load) -> None:
        folder = pair.backup.broker_xml.parent.parent
        seen = await asyncio.to_thread(command, "status", folder, "--json")
        state = json.loads(seen.stdout)
        assert (state["state"], state["epoch"]) == ("active", 1)
        assert state["holder"].startswith("primary (primary, process ")
        assert [each["role"] for each in state["passive"]] == ["backup"]
        done = await asyncio.to_thread(command, "handover", folder)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"backup \(backup, .*\) serves, epoch 2\n", done.stdout)
        await asyncio.to_thread(pair.primary.until_role, "passive")

    run(Pair(tmp_path, backup="<allow-failback>false</allow-failback>"), hand_over)


def test_an_operator_demotes_the_process_of_a_folder(tmp_path: Path) -> None:
    with Pair(tmp_path, backup="<allow-failback>false</allow-failback>") as pair:
        pair.start()
        primary, backup = (each.broker_xml.parent.parent for each in (pair.primary, pair.backup))
        waits = command("demote", backup)
        assert (waits.returncode, waits.stdout.startswith("backup is passive already")) == (0, True), waits.stderr
        done = command("demote", primary)
        assert done.returncode == 0 and done.stdout.startswith("backup (backup, "), done.stderr
        pair.primary.until_role("passive")
        pair.primary.end(signal.SIGTERM)
        gone = command("demote", primary)
        assert gone.returncode == 75 and "primary does not run: nothing to demote" in gone.stderr
        alone = command("demote", backup)
        assert alone.returncode == 75 and "start the other one first" in alone.stderr


def test_an_operator_promotes_a_backup_of_a_stopped_primary(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        pair.start()
        refused = command("promote", pair.store / "journal")
        assert refused.returncode == 75
        assert "the store is active, not stopped" in refused.stderr
        well = command(pair.primary.broker_xml, name="doctor")
        assert well.returncode == 0 and "all is well" in well.stdout
        assert pair.primary.end(signal.SIGTERM) == 0
        ill = command(pair.backup.broker_xml, name="doctor")
        assert ill.returncode == 1 and "no process serves this store: it is stopped" in ill.stdout
        done = command("promote", pair.store / "journal")
        assert done.returncode == 0, done.stderr
        pair.backup.until_role("active")
        alone = command(pair.backup.broker_xml, name="doctor")
        assert alone.returncode == 1 and "no process waits for this store" in alone.stdout


def test_force_failover_and_the_attributes_of_management(tmp_path: Path) -> None:
    async def force(pair: Pair, load: Load) -> None:
        management = load.connection.management()
        broker = "broker"
        told = {
            name: await management.get(broker, name)
            for name in ("HAPolicy", "SharedStore", "ActivationSequence", "Active", "Backup")
        }
        assert told == {
            "HAPolicy": "Shared Store Primary",
            "SharedStore": True,
            "ActivationSequence": 1,
            "Active": True,
            "Backup": False,
        }
        await management.call(broker, "forceFailover")
        await asyncio.to_thread(pair.backup.until_role, "active")

    run(Pair(tmp_path, backup="<allow-failback>false</allow-failback>"), force)


def test_a_node_becomes_a_pair_and_takes_its_messages_along(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        xml = pair.primary.broker_xml
        of_a_pair = xml.read_text()
        xml.write_text(re.sub(r"<ha-policy>.*</ha-policy>", "", of_a_pair))
        alone = f"tcp://127.0.0.1:{pair.primary.port}"
        with BrokerProcess(xml) as broker:
            asyncio.run(send(alone, range(100)))
            assert broker.end(signal.SIGTERM) == 0
        xml.write_text(of_a_pair)
        pair.start()
        pair.primary.end(signal.SIGKILL)
        pair.backup.until_role("active")
        assert asyncio.run(receive(pair.url, sure=100)) == list(range(100))
        pair.backup.end(signal.SIGKILL)
        # Without the policy the node would not see the messages of the epochs.
        xml.write_text(re.sub(r"<ha-policy>.*</ha-policy>", "", of_a_pair))
        with refused(xml) as broker:
            assert broker.wait() == 75
            assert "belongs to a pair with a shared store" in broker.log()


def test_a_backup_that_shall_not_restart_ends_when_it_has_given_the_store_back(tmp_path: Path) -> None:
    policy = "<failover-on-shutdown>true</failover-on-shutdown><restart-backup>false</restart-backup>"
    with Pair(tmp_path, "<failover-on-shutdown>true</failover-on-shutdown>", policy) as pair:
        pair.start()
        assert pair.primary.end(signal.SIGTERM) == 0
        pair.backup.until_role("active")
        pair.primary.start()
        pair.primary.until_role("active")
        assert pair.backup.wait() == 0


def test_an_error_of_the_start_is_no_stop_in_good_order(tmp_path: Path) -> None:
    """Otherwise the backup would wait for this primary for ever."""
    with Pair(tmp_path) as pair:
        pair.start()
        pair.primary.end(signal.SIGTERM)
        pair.backup.end(signal.SIGTERM)
        newest = max((pair.store / "journal" / "epochs").iterdir())
        (newest / "management-settings.xml").write_text("<core><nonsense/></core>")
        pair.primary.start()
        assert pair.primary.wait() == 78
        assert "management-settings.xml" in pair.primary.log()
        state = json.loads(command("status", pair.store / "journal", "--json").stdout)
        assert state["state"] == "ended"
