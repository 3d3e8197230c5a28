"""The examples of docs/guide/high-availability.md, as they are written there, with other ports."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atalanta.client import Message, connect
from atalanta.runtime.ha.group.member_status import read_status
from tests.app.group import Member
from tests.broker_process import BrokerProcess, BrokerProcesses
from tests.ports import free_port
from tests.source_tree import ROOT
from tests.waiting import DEADLINE_S, until

PAGE = ROOT / "docs" / "guide" / "high-availability.md"
PORTS = "61616|61617|5791|5792|5793"


class Example(BrokerProcesses[Member]):
    """One form of the guide: its files in `folder`, with ports of its own, and its client."""

    def __init__(self, folder: Path, first: int, own: bool = False) -> None:
        """`first` is the number of its primary's file on the page. `own`: the file atalanta.toml is beside each."""
        page = PAGE.read_text(encoding="utf-8")
        ports = {port: str(free_port()) for port in PORTS.split("|")}
        self.text = re.sub(PORTS, lambda found: ports[found.group()], page)
        files = re.findall(r"```xml\n(<configuration.*?)```", self.text, re.DOTALL)
        assert len(files) == 5
        both = []
        for name, file in zip(("primary", "backup"), files[first:], strict=False):
            etc = folder / name / "etc"
            etc.mkdir(parents=True)
            (etc / "broker.xml").write_text(file)
            if own:
                (etc / "atalanta.toml").write_text(self.block("toml"))
            both.append(Member(etc / "broker.xml"))
        super().__init__(both)
        self.primary, self.backup = both
        self.ready = f"ready role=active artemis=127.0.0.1:{ports['61616']}"
        found = re.search(r"^    (\(tcp://.*)$", self.text, re.MULTILINE)
        assert found is not None
        self.url = found.group(1)

    def block(self, language: str, at: int = 0) -> str:
        """Returns a block of the page."""
        return str(re.findall(rf"```{language}\n(.*?)```", self.text, re.DOTALL)[at])

    def commands(self, start: str) -> list[list[str]]:
        """Returns the commands of the page that begin with `atalanta` and `start`."""
        lines = re.findall(rf"^atalanta ({start} .*)$", self.text, re.MULTILINE)
        return [[sys.executable, "-m", "atalanta", *line.split()] for line in lines]

    async def send(self) -> None:
        async with connect(self.url) as connection:
            producer = await connection.producer("orders", routing="anycast")
            await producer.send(Message("one coffee"))

    async def receive(self) -> str | None:
        async with connect(self.url) as connection:
            message = await (await connection.consumer("orders", ack="auto")).receive(30)
            return None if message is None else message.text

    def start(self) -> None:
        self.primary.start()
        self.primary.until_role("active")
        assert self.primary.lines() == [self.ready]
        self.backup.start()
        self.backup.until_role("passive")
        assert self.backup.lines() == ["ready role=passive"]


@pytest.mark.process
def test_the_pair_of_the_guide_survives_a_kill(tmp_path: Path) -> None:
    with Example(tmp_path, 0) as pair:
        pair.start()
        asyncio.run(pair.send())
        pair.primary.end(signal.SIGKILL)
        pair.backup.until_role("active")
        assert asyncio.run(pair.receive()) == "one coffee"


@contextmanager
def witnesses_of(example: Example, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The witnesses of the guide, which run, and in the end the end of everything."""
    lines = example.commands("ha witness")
    witnesses = [subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE) for line in lines]
    try:
        assert len(witnesses) == 3
        for each in witnesses:
            assert each.stdout is not None
            assert each.stdout.readline().startswith(b"ready voter=")
        with example:
            yield witnesses
    finally:
        for each in witnesses:
            each.kill()
            each.wait(DEADLINE_S)
            if each.stdout is not None:
                each.stdout.close()


@pytest.mark.process
def test_the_group_of_the_guide_survives_the_loss_of_a_disk_and_a_witness(tmp_path: Path) -> None:
    group = Example(tmp_path, 2, own=True)
    with witnesses_of(group, tmp_path) as witnesses:
        group.start()
        group.primary.until_logged("replica_in_sync")
        asyncio.run(group.send())
        witnesses[0].kill()
        group.primary.end(signal.SIGKILL)
        shutil.rmtree(tmp_path / "primary" / "data")
        group.backup.until_role("active")
        assert asyncio.run(group.receive()) == "one coffee"


@pytest.mark.process
def test_an_operator_moves_the_service_of_the_guide_to_another_data_centre(tmp_path: Path) -> None:
    group = Example(tmp_path, 2, own=True)
    (tmp_path / "backup" / "etc" / "atalanta.toml").write_text(group.block("toml", 1))
    there, back = group.commands("ha promote")
    with witnesses_of(group, tmp_path):
        group.start()
        group.primary.until_logged("replica_connected")
        asyncio.run(group.send())
        until(lambda: has_everything(tmp_path / "primary"), group.primary.log)
        group.primary.end(signal.SIGKILL)
        subprocess.run(there, cwd=tmp_path, check=True, timeout=DEADLINE_S)
        group.backup.until_role("active")
        assert asyncio.run(group.receive()) == "one coffee"
        group.primary.start()
        group.backup.until_logged("replica_in_sync")
        subprocess.run(back, cwd=tmp_path, check=True, timeout=DEADLINE_S)
        group.primary.until_role("active")


def has_everything(active: Path) -> bool:
    """Returns whether the follower of an active member lacks nothing."""
    status = read_status(active / "data" / "journal")
    return status is not None and any(each.behind == 0 for each in status.followers)


@pytest.mark.process
def test_the_colocated_nodes_of_the_guide_serve_for_each_other(tmp_path: Path) -> None:
    found = re.search(r"## Colocated backups.*?```xml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    ports = {"61616": free_port(), "61617": free_port()}
    nodes = []
    for name, (own, other) in (("one", ("61616", "61617")), ("two", ("61617", "61616"))):
        text = found.group(1).replace("61617", "OTHER").replace("61616", str(ports[own]))
        text = text.replace("OTHER", str(ports[other]))
        etc = tmp_path / name / "etc"
        etc.mkdir(parents=True)
        (etc / "broker.xml").write_text(text.replace(">one<", f">{name}<").replace("shared/one", f"shared/{name}"))
        nodes.append(BrokerProcess(etc / "broker.xml"))
    one, two = nodes
    with BrokerProcesses(nodes):
        for each in nodes:
            each.start()
        for each in nodes:
            each.until_logged("backup_hosted")
        two.until_logged("node_passive role=backup")
        example = Example(tmp_path / "clients", 0)
        example.url = f"tcp://127.0.0.1:{ports['61616']}"
        asyncio.run(example.send())
        one.end(signal.SIGKILL)
        two.until_logged("node_active role=backup")
        example.url = f"tcp://127.0.0.1:{ports['61617'] + 100}?reconnectAttempts=-1"
        assert asyncio.run(example.receive()) == "one coffee"
