"""Source, shuffle, sink and back for an hour, while one of the query's processes or a node is killed in each run.

ATALANTA_SPARK_SOAK_MINUTES is the length, ATALANTA_SPARK_SOAK_SEED the first draw.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

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


def test_nothing_is_lost_or_doubled_whoever_dies(tmp_path: Path) -> None:
    deadline = time.monotonic() + MINUTES * 60
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        soak = Soak(Rig(brokers.nodes, USER, PASSWORD, "flights", "archive", "multicast"), tmp_path, SEED)
        while not soak.rounds or time.monotonic() < deadline:
            soak.round()
            print(soak.report(), flush=True)
    assert MINUTES < LONG_MINUTES or set(soak.killed) == set(DECK), soak.report()
