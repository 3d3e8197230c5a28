"""Acceptors that a reload adds in a pair and in a replicated group: the passive member has them when it takes over."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from atalanta.client import Message, connect
from atalanta.client.management import Management, ManagementFailed
from tests.app.group import Group
from tests.app.pair import Pair
from tests.broker_process import BrokerProcess
from tests.cli.instance_files import change
from tests.ports import free_port

pytestmark = pytest.mark.process

SECOND = "<acceptor name='second'>tcp://127.0.0.1:{port}</acceptor></acceptors>"
LEASE = "[ha]\nlease_ms = 500\n"


async def sends(port: int) -> None:
    async with asyncio.timeout(60), connect(f"tcp://127.0.0.1:{port}") as client:
        producer = await client.producer("orders", routing="anycast")
        await producer.send(Message(text="coffee"))


def add(process: BrokerProcess, port: int) -> None:
    change(process.broker_xml, "</acceptors>", SECOND.format(port=port))


def test_the_backup_of_a_pair_opens_an_acceptor_that_its_file_got_while_it_was_passive(tmp_path: Path) -> None:
    first, second = free_port(), free_port()
    with Pair(tmp_path, own=LEASE) as pair:
        pair.start()
        for process, port in ((pair.primary, first), (pair.backup, second)):
            add(process, port)
            os.kill(process.process.pid, signal.SIGHUP)
        pair.primary.until_logged("acceptor_started acceptor=second")
        asyncio.run(sends(first))
        assert "acceptor_started" not in pair.backup.log()
        pair.primary.end(signal.SIGKILL)
        pair.backup.until_role("active")
        pair.backup.until_logged("acceptor_started acceptor=second")
        asyncio.run(sends(second))
        assert "reload_incomplete" not in pair.backup.log()


def test_the_acceptor_of_a_replicated_group_stays_and_others_come(tmp_path: Path) -> None:
    second, moved = free_port(), free_port()

    async def stopped(port: int) -> None:
        async with connect(f"tcp://127.0.0.1:{port}") as client:
            with pytest.raises(ManagementFailed, match="members of the replicated group come in there"):
                await Management(client).call("acceptor.artemis", "stop")

    with Group(tmp_path) as group:
        group.start()
        add(group.primary, second)
        change(
            group.primary.broker_xml, f'artemis">tcp://127.0.0.1:{group.primary.port}', f'artemis">tcp://127.0.0.1:{moved}'
        )
        os.kill(group.primary.broker, signal.SIGHUP)
        group.primary.until_logged("acceptor_started acceptor=second")
        group.primary.until_logged("reload_incomplete restart_for=acceptors")
        assert "the members of the replicated group come in" in group.primary.log()
        asyncio.run(sends(second))
        asyncio.run(stopped(second))
        asyncio.run(sends(group.primary.port))
        group.primary.until_followed(group.backup)
