"""Replicated groups of ours and the real JMS client: what it confirmed is there once, whichever member serves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.harness.failover import Failover
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.replicated_group import ReplicatedGroup, kill_broker, role
from tests.runtime.ha.managers.witness_process import PASSWORD, witnesses

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

SIZES = (2, 3)


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[str]:
    """Three voters, as lines of [ha.manager]."""
    (tmp_path / "password").write_text(PASSWORD)
    with witnesses(tmp_path) as voters:
        named = ",".join(f"127.0.0.1:{each.port}" for each in voters)
        yield f'kind = "quorum"\nvoters = "{named}"\npassword-file = "{tmp_path / "password"}"\n'


def hand_over(node: BrokerProcess) -> None:
    """`atalanta ha handover`; the node is passive then."""
    command = [sys.executable, "-m", "atalanta", "ha", "handover", str(node.folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    until("it is passive", lambda: role(node) == "passive")




def working(jms: Failover, count: int) -> None:
    """Waits until `count` more messages are confirmed."""
    wanted = jms.counts().confirmed + count
    until(f"{count} more are confirmed", lambda: jms.counts().confirmed >= wanted, 60)


def over(jms: Failover) -> None:
    """Ends the load. Nothing is lost, nothing came twice."""
    jms.quiet()
    until("everything confirmed has arrived", lambda: jms.counts().lost == 0, 40)
    counts = jms.counts()
    assert counts.doubled == 0, counts
    print(counts)


WAYS: list[Callable[[BrokerProcess], None]] = [
    kill_broker, BrokerProcess.kill, hand_over, BrokerProcess.kill, kill_broker,
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_kills_handovers_and_a_rolling_restart_lose_and_double_nothing(brokers: Lineup, quorum: str, size: int) -> None:
    with ReplicatedGroup(brokers, quorum, size) as group:
        group.start()
        with Failover(group.url, "orders") as jms:
            working(jms, 100)
            for end in WAYS:
                leaves = group.active()
                end(leaves)
                group.active(other_than=leaves)
                working(jms, 100)
                if not leaves.running:
                    leaves.launch()
                group.until_synced()
            for node in group.members:
                node.stop()
                working(jms, 50)
                node.launch()
                group.until_synced()
            over(jms)
