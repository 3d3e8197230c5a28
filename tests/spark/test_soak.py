"""Source, shuffle, sink and back for an hour, while one of the query's processes or a node is killed in each run.

ATALANTA_SPARK_SOAK_MINUTES is the length, ATALANTA_SPARK_SOAK_SEED the first draw.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

from tests.app.group import LEASE, Group
from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.soak import DECK, Rig, Soak

MINUTES: Final = float(os.environ.get("ATALANTA_SPARK_SOAK_MINUTES", "60"))
SEED: Final = int(os.environ.get("ATALANTA_SPARK_SOAK_SEED", "1"))
LONG_MINUTES: Final = 30  # after that each kind of kill has hit

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.process,
    pytest.mark.timeout(int(MINUTES * 60) + 1800),
]


class GroupNode:
    """A replicated group as one node: what is killed is its active member, and it comes back as the backup."""

    def __init__(self, group: Group) -> None:
        self.active, self.passive = group.members
        servers = [f"127.0.0.1:{each.port}" for each in group.members]
        self.server = "|".join(servers)
        self.url = f"({','.join(f'tcp://{each}' for each in servers)})?ha=true&reconnectAttempts=-1"

    def kill(self) -> None:
        self.active.until_followed(self.passive)
        self.active.kill_all()
        self.passive.until_role("active")
        self.active, self.passive = self.passive, self.active

    def start(self) -> None:
        self.passive.start()


def test_nothing_is_lost_or_doubled_over_failovers_of_a_group(tmp_path: Path) -> None:
    deadline = time.monotonic() + MINUTES * 60
    folder = tmp_path / "group"
    folder.mkdir()
    with Group(folder, own=LEASE) as group:
        group.start()
        node = GroupNode(group)
        soak = Soak(Rig([node], USER, PASSWORD, "orders", "orders", "anycast"), tmp_path, SEED)
        while not soak.rounds or time.monotonic() < deadline:
            soak.round()
            print(soak.report(), flush=True)
    assert MINUTES < LONG_MINUTES or set(soak.killed) == set(DECK), soak.report()


def test_nothing_is_lost_or_doubled_whoever_dies(tmp_path: Path) -> None:
    deadline = time.monotonic() + MINUTES * 60
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        soak = Soak(Rig(brokers.nodes, USER, PASSWORD, "flights", "archive", "multicast"), tmp_path, SEED)
        while not soak.rounds or time.monotonic() < deadline:
            soak.round()
            print(soak.report(), flush=True)
    assert MINUTES < LONG_MINUTES or set(soak.killed) == set(DECK), soak.report()
