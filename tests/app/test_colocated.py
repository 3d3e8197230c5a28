"""Colocated nodes as real processes: each hosts the backup of the other, and serves its messages when it dies."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import pytest

from atalanta.client import Message, connect
from tests.app.colocated import Colocated
from tests.app.group import Member
from tests.runtime.ha.guard.guarded_process import alive
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process

ACTIVE = {"shared-store": "node_active role=backup", "replication": r"member_active \S+ role=backup"}


def hosted_processes(node: Member) -> list[int]:
    """The process ids of the hosted backups of this run."""
    return [int(pid) for pid in re.findall(r"hosted_backup_started node=\S+ pid=(\d+)", node.log())]


def seen(node: Member, what: str, times: int = 1) -> None:
    until(lambda: len(re.findall(what, node.log())) >= times, lambda: f"no {what}:\n{node.log()}")


async def served(nodes: Colocated, form: str) -> None:
    first, second = nodes.nodes
    url = f"tcp://127.0.0.1:{nodes.ports[0]}?reconnectAttempts=-1&retryInterval=20"
    async with asyncio.timeout(2 * DEADLINE_S), connect(url) as connection:
        while not any(each.port == first.port and each.backup_port for each in connection.topology):
            await asyncio.sleep(0.05)
        producer = await connection.producer("orders", routing="anycast")
        for number in range(20):
            await producer.send(Message(str(number)))
        children = hosted_processes(first)
        await asyncio.to_thread(first.end, signal.SIGKILL)
        await asyncio.to_thread(seen, second, ACTIVE[form])
        await producer.send(Message("20"))  # the same connection, now at the other host
        until(lambda: not any(map(alive, children)), "a hosted backup outlives its host")
        await asyncio.to_thread(first.start)
        await asyncio.to_thread(first.until_role, "active")  # it has its messages back
        consumer = await connection.consumer("orders", ack="auto")
        got = [await consumer.receive(30) for _ in range(21)]
        assert [each.text for each in got if each is not None] == [str(number) for number in range(21)]
    # Both runs of the first node, and nobody had to ask again.
    assert len(hosted_processes(first)) == 2 and first.log().count("backup_hosted ") == 1


# The guide's example has the short form with a shared store.
@pytest.mark.parametrize("form", [pytest.param("shared-store", marks=pytest.mark.soak), "replication"])
def test_each_serves_the_messages_of_the_other_after_a_kill_and_gives_them_back(tmp_path: Path, form: str) -> None:
    with Colocated(tmp_path, form) as nodes:
        nodes.start()
        for each in nodes.nodes:
            seen(each, "replica_in_sync" if form == "replication" else "node_passive role=backup")
        asyncio.run(served(nodes, form))
        children = [pid for each in nodes.nodes for pid in hosted_processes(each)]
        for each in nodes.nodes:
            assert each.end(signal.SIGTERM) == 0
        assert not any(map(alive, children))
