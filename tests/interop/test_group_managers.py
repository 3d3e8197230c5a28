"""A replicated group whose manager is a real etcd or ZooKeeper, killed, stopped and restarted under a JMS load."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.harness.failover import Failover
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.register_servers import LINES, RegisterServer
from tests.interop.harness.replicated_group import ReplicatedGroup, role

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
# Many times as long as a lease, which is 1 s.
AWAY_SECONDS = 15.0


@pytest.fixture(params=list(LINES))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RegisterServer]:
    made = RegisterServer(request.param, tmp_path)
    made.start()
    yield made
    made.kill()


def test_a_group_whose_manager_is_killed_stopped_and_restarted(brokers: Lineup, server: RegisterServer) -> None:
    manager = LINES[server.kind].format(host="127.0.0.1", port=server.port)
    with ReplicatedGroup(brokers, manager) as group:
        group.start()
        with Failover(group.url, "orders") as jms:
            play(group, server, jms)
            jms.over()


def play(group: ReplicatedGroup, server: RegisterServer, jms: Failover) -> None:
    primary, backup = group.members

    # Without a manager a healthy group serves, and nobody takes over.
    server.kill()
    end = time.monotonic() + AWAY_SECONDS
    while time.monotonic() < end:
        jms.working(50)
    assert role(primary) == "active" and role(backup) == "passive"
    primary.kill()
    time.sleep(3)
    assert role(backup) == "passive", "it took over without its manager"
    server.start()
    until("the backup serves", lambda: role(backup) == "active", 60)
    jms.working(50)
    primary.launch()
    group.until_synced()

    # A manager that stands still: a lost backup cannot be removed before it goes on.
    server.send(signal.SIGSTOP)
    jms.working(50)
    primary.kill()
    before = jms.counts().confirmed
    time.sleep(3)
    assert jms.counts().confirmed - before < 50, "it confirms what a member in sync has not got"
    server.send(signal.SIGCONT)
    jms.working(50)
    primary.launch()
    group.until_synced()

    # It stands still at the takeover.
    server.send(signal.SIGSTOP)
    backup.kill()
    time.sleep(3)
    server.send(signal.SIGCONT)
    until("the primary serves", lambda: role(primary) == "active", 60)
    jms.working(50)
    backup.launch()
    group.until_synced()

    # It is restarted while the group serves, and at a handover.
    server.kill()
    server.start()
    jms.working(50)
    server.kill()
    primary.stop()
    server.start()
    until("the backup serves", lambda: role(backup) == "active", 60)
    jms.working(50)
