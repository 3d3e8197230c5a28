"""The soak of tests/spark/test_soak.py at two real Artemis nodes: a write-ahead source, a shuffle, an XA sink.

ATALANTA_SPARK_SOAK_MINUTES is the length, ATALANTA_SPARK_SOAK_SEED the first draw.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.spark.soak import DECK, Rig, Soak

MINUTES: Final = float(os.environ.get("ATALANTA_SPARK_SOAK_MINUTES", "60"))
SEED: Final = int(os.environ.get("ATALANTA_SPARK_SOAK_SEED", "1"))
LONG_MINUTES: Final = 30  # after that each kind of kill has hit
ADDRESSES: Final = """
         <address name="in"><anycast><queue name="in"/></anycast></address>
         <address name="out"><anycast><queue name="out"/></anycast></address>
"""
# A killed driver counts as an attempt to deliver.
SETTINGS: Final = '<address-setting match="in"><max-delivery-attempts>-1</max-delivery-attempts></address-setting>'

pytestmark = [
    pytest.mark.interop,
    pytest.mark.soak,
    pytest.mark.timeout(int(MINUTES * 60) + 1800),
]


class ArtemisProcess:
    """A node of the soak."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.server = f"127.0.0.1:{process.port}"
        self.url = f"tcp://{self.server}?stay=true"

    def start(self) -> None:
        self.process.start()

    def kill(self) -> None:
        self.process.kill()


def shape(index: int, ports: list[int]) -> Shape:
    """Returns the shape of a node that keeps its messages: no redistribution."""
    return Shape(Cluster(peers=(ports[1 - index],)), -1, addresses=ADDRESSES, settings=SETTINGS)


def test_nothing_is_lost_or_doubled_at_a_real_artemis(brokers: Lineup, tmp_path: Path) -> None:
    deadline = time.monotonic() + MINUTES * 60
    nodes = [ArtemisProcess(process) for process in brokers.cluster("artemis+artemis", shape)]
    for node in nodes:
        node.start()
    rig = Rig(nodes, USER, PASSWORD, "in", "in", "anycast", {"walLocation": f"{tmp_path}/wal"})
    soak = Soak(rig, tmp_path, SEED)
    while not soak.rounds or time.monotonic() < deadline:
        soak.round()
        print(soak.report(), flush=True)
    for node in nodes:
        node.process.stop()
    assert MINUTES < LONG_MINUTES or set(soak.killed) == set(DECK), soak.report()
