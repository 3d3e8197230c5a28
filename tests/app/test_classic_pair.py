"""Master and slave from an activemq.xml, as in Classic: files that name one directory of a store."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.client import Message, blocking
from atalanta.runtime.ha.lease_file import LEASE_NAME, decode_record, encode_record, read_content
from atalanta.runtime.process.exit_codes import FOLDER_TAKEN, UNAVAILABLE
from tests.app.classic_pair import ClassicBrokers
from tests.app.load import loaded
from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.ports import free_port
from tests.source_tree import ROOT
from tests.waiting import until

pytestmark = pytest.mark.process


def connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def send(process: BrokerProcess, text: str) -> None:
    with blocking.connect(f"tcp://127.0.0.1:{process.port}") as connection:
        connection.producer("orders", routing="anycast").send(Message(text))


def receive(process: BrokerProcess) -> list[str]:
    """Receives and acknowledges everything that is there."""
    found = []
    with blocking.connect(f"tcp://127.0.0.1:{process.port}") as connection:
        consumer = connection.consumer("orders")
        while (message := consumer.receive(0.5)) is not None:
            found.append(str(message.text))
            message.acknowledge()
    return found


def test_the_slave_says_whom_it_waits_for_and_takes_over_from_each_end_of_its_master(tmp_path: Path) -> None:
    with ClassicBrokers(tmp_path, 2) as brokers:
        brokers.start()
        first, second = brokers.processes
        assert connects(first.port) and not connects(second.port)
        assert f"holder=\"shop (primary, process {first.process.pid} of {os.uname().nodename})\"" in second.log()
        assert "pair_names_differ" not in second.log()
        third = BrokerProcess(first.broker_xml, port=first.port)
        third.log_path = tmp_path / "third.log"
        third.start()
        assert third.wait() == UNAVAILABLE  # it has the ports of the first one
        assert str(first.port) in third.log()
        assert f"is served by shop (primary, process {first.process.pid}" in third.log()
        for number, end in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
            send(first, f"{number}")
            first.end(end)
            second.until_role("active")
            assert receive(second) == [f"{number}"]
            first.start()
            first.until_role("passive")  # nobody gives back
            first, second = second, first


def test_three_brokers_that_begin_together_lose_nothing_that_was_confirmed(tmp_path: Path) -> None:
    """In a new folder. One of them has another name, which may be a mistake, and is told once."""

    async def main(brokers: ClassicBrokers) -> None:
        async with loaded(brokers.url) as load:
            await load.past(50)
            for end in (signal.SIGKILL, signal.SIGTERM):
                (active,) = brokers.active()
                await asyncio.to_thread(active.end, end)
                await asyncio.to_thread(until, lambda: len(brokers.active()) == 1, lambda: "nobody serves")
                await load.past(50)

    with ClassicBrokers(tmp_path, 3, names=("shop", "shop", "depot")) as brokers:
        for each in brokers.processes:
            each.start()
        roles = ["active", "passive", "passive"]
        until(lambda: sorted(each.role() for each in brokers.processes) == roles, brokers.log)
        (first,) = brokers.active()
        for each in brokers.processes:
            told = each is not first and "depot" in (first.name, each.name)
            assert each.log().count("pair_names_differ") == int(told)
        asyncio.run(main(brokers))


def test_a_broker_that_fails_if_the_store_is_locked(tmp_path: Path) -> None:
    with ClassicBrokers(tmp_path, 2, locker='<shared-file-locker failIfLocked="true"/>') as brokers:
        first, second = brokers.processes
        first.start()
        first.until_role("active")
        second.start()
        assert second.wait() == FOLDER_TAKEN
        assert "store_wait_timed_out" in second.log()
        first.end(signal.SIGKILL)
        second.start()
        second.until_role("active")


def test_a_broker_that_no_client_used_waits_for_one_lease_after_a_loss_of_power(tmp_path: Path) -> None:
    """It cannot know that no other machine has the store. Its record must not ask for the time of a start any more."""
    with ClassicBrokers(tmp_path, 1) as brokers:
        (broker,) = brokers.processes
        broker.start()
        broker.until_role("active")
        mark = brokers.store / "journal" / "epochs" / "00000001"
        until(lambda: b'"patience_ns":0' in read_content(mark), "its record says that it starts")
        broker.end(signal.SIGKILL)
        record = decode_record(read_content(mark))
        assert record is not None
        (mark / LEASE_NAME).write_bytes(encode_record(replace(record, boot="before")))
        broker.start()
        broker.until_role("active")
        assert "silence_ms=501" in broker.log()


def test_messages_are_deleted_at_a_start_and_never_at_a_takeover(tmp_path: Path) -> None:
    with ClassicBrokers(tmp_path, 2, attributes='deleteAllMessagesOnStartup="true"') as brokers:
        brokers.start()
        first, second = brokers.processes
        send(first, "confirmed")
        first.end(signal.SIGKILL)
        second.until_role("active")
        assert receive(second) == ["confirmed"]
        send(second, "gone")
        second.end(signal.SIGTERM)
        first.start()
        first.until_role("active")
        assert receive(first) == []
        assert first.log().count("messages_deleted") == 2 and "messages_deleted" not in second.log()


GUIDE = ROOT / "docs" / "guide"


@pytest.mark.parametrize("name", ["coming-from-activemq.md", "high-availability.md"])
def test_the_pair_that_a_page_begins_with(tmp_path: Path, name: str) -> None:
    """Two files, two commands, one kill, as they are typed there. The file is on the first page only."""
    page = (GUIDE / name).read_text(encoding="utf-8")
    first_section = page.split("\n## ")[1]
    typed = re.findall(r"^    (.+?) +# .*?: +(?:the second one prints )?(ready .*)$", first_section, re.MULTILINE)
    commands, prints = zip(*typed, strict=True)
    assert commands == ("atalanta run conf/activemq.xml",) * 2 + ("kill -9 PID",)
    file = (GUIDE / "coming-from-activemq.md").read_text(encoding="utf-8").split("```xml\n")[1].split("```")[0]
    pair = []
    for host in ("host-a", "host-b"):
        port = free_port()
        path = tmp_path / host / "conf" / "activemq.xml"
        path.parent.mkdir(parents=True)
        path.write_text(file.replace("/srv/shared", str(tmp_path)).replace("0.0.0.0:61616", f"127.0.0.1:{port}"))
        each = BrokerProcess(path, port=port)
        each.working_directory = tmp_path / host
        pair.append(each)
    first, second = pair
    with BrokerProcesses(pair):
        for each, role, line in zip(pair, ("active", "passive"), prints, strict=False):
            each.start()
            each.until_role(role)
            assert each.lines() == [line.replace("0.0.0.0:61616", f"127.0.0.1:{each.port}")]
        send(first, "confirmed")
        subprocess.run(commands[2].replace("PID", str(first.process.pid)).split(), check=True)
        second.until_role("active")
        assert second.lines()[1:] == [prints[2].replace("0.0.0.0:61616", f"127.0.0.1:{second.port}")]
        assert receive(second) == ["confirmed"]
        shown = CliRunner().invoke(application, ["ha", "status", str(second.broker_xml)], env={"COLUMNS": "1000"})
        assert f"shop (primary, process {second.process.pid} of" in shown.output and "active" in shown.output
