"""A backup with `scale-down`, as real processes: it takes over, and empties itself into a third node of the cluster."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from atalanta.client import Message, connect
from tests.app.group import LEASE, Group
from tests.app.load import receive, send
from tests.app.pair import Pair
from tests.broker_process import BrokerProcess
from tests.broker_xml import RETRIES, cluster, write_broker_xml
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process

OWN = LEASE + "failback_after_s = 1\n"
SCALE_DOWN = "<scale-down/>"


def third_node(folder: Path, ports: list[int]) -> tuple[BrokerProcess, str]:
    """Returns a member of the cluster that dials `ports`, and its URL."""
    port = free_port()
    xml = write_broker_xml(folder / "third", port, "third", cluster(port, ports, RETRIES))
    return BrokerProcess(xml), f"tcp://127.0.0.1:{port}"


def times_active(process: BrokerProcess) -> int:
    """Returns how often the process has said since its start that it is active."""
    return sum("role=active" in line for line in process.lines())


async def scenario(nodes: Pair | Group, third: BrokerProcess, third_url: str) -> None:
    """The primary is killed, and comes back when its messages are at the third node."""
    primary, backup = nodes.primary, nodes.backup
    await send(nodes.url, range(50))
    primary.end(signal.SIGKILL)
    await asyncio.to_thread(backup.until_logged, "scale_down_ended")
    assert "moved=50 left=0" in backup.log(), backup.log()
    first = await receive(third_url, 20)
    assert first == list(range(20))
    # The backup serves on, without messages.
    until(lambda: times_active(backup) == 2, backup.log)
    await send(nodes.url, range(100, 105))
    primary.start()
    await asyncio.to_thread(primary.until_role, "active")
    await asyncio.to_thread(backup.until_role, "passive")
    assert backup.log().count("scale_down_ended") == 1
    await send(nodes.url, range(105, 110))
    found = Counter([*first, *await receive(third_url), *await receive(nodes.url)])
    assert found == Counter([*range(50), *range(100, 110)])
    # What the backup gets with the next failure leaves, too.
    await send(nodes.url, range(200, 210))
    primary.end(signal.SIGKILL)
    until(lambda: backup.log().count("scale_down_ended") == 2, backup.log)
    assert await receive(third_url) == list(range(200, 210))


def test_the_backup_of_a_shared_store(tmp_path: Path) -> None:
    with Pair(tmp_path, backup=SCALE_DOWN, own=OWN) as pair:
        third, url = third_node(tmp_path, [pair.primary.port, pair.backup.port])
        with third:
            pair.start()
            asyncio.run(scenario(pair, third, url))


def test_the_backup_of_a_group(tmp_path: Path) -> None:
    with Group(tmp_path, backup_policy=SCALE_DOWN, own=OWN) as group:
        third, url = third_node(tmp_path, [group.primary.port, group.backup.port])
        with third:
            group.start()
            asyncio.run(scenario(group, third, url))


async def killed_on_the_way(nodes: Pair | Group, third_url: str) -> None:
    """The backup is killed while it moves; the next one that serves goes on, and the primary has the service then."""
    primary, backup = nodes.primary, nodes.backup
    async with asyncio.timeout(DEADLINE_S), connect(nodes.url) as connection:
        producer = await connection.producer("orders")
        await asyncio.gather(*[producer.send(Message(str(number))) for number in range(2000)])
    primary.end(signal.SIGKILL)
    async with asyncio.timeout(DEADLINE_S), connect(third_url) as connection:
        while "orders" not in str(await connection.management().get("broker", "QueueNames")):
            await asyncio.sleep(0.01)
    backup.end(signal.SIGKILL)
    assert "scale_down_ended" not in backup.log()
    primary.start()
    if isinstance(nodes, Group):
        backup.start()  # the only one that has everything
    successor = backup if isinstance(nodes, Group) else primary
    await asyncio.to_thread(successor.until_logged, "scale_down_resumed")
    await asyncio.to_thread(successor.until_logged, "scale_down_ended")
    until(lambda: times_active(successor) == 2, successor.log)
    if isinstance(nodes, Group):
        await asyncio.to_thread(primary.until_role, "active")
    await send(nodes.url, range(2000, 2010))
    found = Counter([*await receive(third_url), *await receive(nodes.url)])
    assert found == Counter(range(2010))


@pytest.mark.parametrize("form", ["shared-store", "replication"])
def test_the_backup_is_killed_while_it_moves(tmp_path: Path, form: str) -> None:
    slowly = "<scale-down><commit-interval>1</commit-interval></scale-down>"
    nodes: Pair | Group
    if form == "replication":
        nodes = Group(tmp_path, backup_policy=slowly, own=OWN)
    else:
        nodes = Pair(tmp_path, backup=slowly, own=OWN)
    with nodes:
        third, url = third_node(tmp_path, [nodes.primary.port, nodes.backup.port])
        with third:
            nodes.start()
            asyncio.run(killed_on_the_way(nodes, url))


def test_without_another_member_the_backup_serves(tmp_path: Path) -> None:
    with Group(tmp_path, backup_policy=SCALE_DOWN, own=OWN) as group:
        group.start()
        asyncio.run(send(group.url, range(10)))
        group.primary.end(signal.SIGKILL)
        group.backup.until_logged("scale_down_ended")
        assert asyncio.run(receive(group.url)) == list(range(10))
        assert group.backup.role() == "active"
