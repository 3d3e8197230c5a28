"""Source, shuffle, sink and back for an hour, while one of the query's processes or a node is killed in each run.

ATALANTA_SPARK_SOAK_MINUTES is the length, ATALANTA_SPARK_SOAK_SEED the first draw.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from atalanta.client import blocking
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials
from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.query_process import KINDS, QueryProcess

MINUTES: Final = float(os.environ.get("ATALANTA_SPARK_SOAK_MINUTES", "60"))
SEED: Final = int(os.environ.get("ATALANTA_SPARK_SOAK_SEED", "1"))
RUNS: Final = 5  # between two comparisons; the last is without a fault
MESSAGES: Final = 600  # at each node, before each run
PARTITIONS: Final = (1, 2, 3, 5)
START_S: Final = 300.0

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.process,
    pytest.mark.timeout(int(MINUTES * 60) + 1800),
]


class Soak:
    """The runs of one query, and the rows that it must write."""

    def __init__(self, brokers: BrokerCluster, folder: Path) -> None:
        self.brokers = brokers
        self.folder = folder
        self.random = random.Random(SEED)
        self.published = 0
        self.faults: Counter[str] = Counter()

    def round(self) -> None:
        """Runs the query several times, each with a fault, then without, and compares the rows."""
        expected: list[str] = []
        for number in range(RUNS):
            expected += self._publish()
            self._run(number == RUNS - 1)
        arrived = Counter(self._arrived())
        lost = [text for text in expected if not arrived[text]]
        doubled = {text: count for text, count in arrived.items() if count > 1}
        assert (lost[:5], list(doubled.items())[:5]) == ([], []), f"seed {SEED}, faults {dict(self.faults)}"
        assert arrived.total() == len(expected)
        assert self.brokers.waiting() == 0
        self._check_branches()

    def _publish(self) -> list[str]:
        texts: list[str] = []
        for node in self.brokers.nodes:
            own = [f"{self.published + number}" for number in range(MESSAGES)]
            self.published += MESSAGES
            node.publish(own)
            texts += own
        return texts

    def _run(self, whole: bool) -> None:
        """Runs the query under a cut of its own. A run in which a process was killed may fail."""
        query = QueryProcess(self.brokers.servers, self.folder, self.random.choice(PARTITIONS))
        killed = False
        try:
            killed = not whole and self._fault(query)
        finally:
            status = query.wait()
        assert killed or status == 0, query.tail()

    def _fault(self, query: QueryProcess) -> bool:
        """Returns True if the run may fail."""
        fault = self.random.choice([*KINDS, "node", "node"])
        self.faults[fault] += 1
        if fault != "node":
            self._wait_for_batch(query)
            time.sleep(self.random.uniform(0.0, 2.0))
            return query.kill(fault, START_S)
        self._wait_for_batch(query)
        time.sleep(self.random.uniform(0.0, 2.0))
        node = self.random.choice(self.brokers.nodes)
        node.kill()
        time.sleep(self.random.uniform(0.0, 3.0))
        node.start()
        return False

    def _wait_for_batch(self, query: QueryProcess) -> None:
        """Returns when the run has begun a batch, or ended."""
        before = self._batches()
        deadline = time.monotonic() + START_S
        while self._batches() == before and query.process.poll() is None:
            assert time.monotonic() < deadline, query.tail()
            time.sleep(0.02)

    def _batches(self) -> int:
        return sum(path.name.isdigit() for path in self.folder.glob("checkpoint/offsets/*"))

    def _arrived(self) -> list[str]:
        """Takes all rows from the queue `out` of every node."""
        texts: list[str] = []
        for node in self.brokers.nodes:
            with (
                blocking.connect(f"tcp://{node.server}?stay=true", user=USER, password=PASSWORD) as connection,
                connection.consumer("out") as consumer,
            ):
                while (message := consumer.receive(2)) is not None:
                    texts.append(str(message.text))
                    message.acknowledge()
        return texts

    def _check_branches(self) -> None:
        for node in self.brokers.nodes:
            gateway = connect(node.server, Credentials(USER, PASSWORD, 5.0, 10.0))
            try:
                assert gateway.prepared_branches() == []
            finally:
                gateway.close()


def test_nothing_is_lost_or_doubled_whoever_dies(tmp_path: Path) -> None:
    deadline = time.monotonic() + MINUTES * 60
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        soak = Soak(brokers, tmp_path)
        while True:
            soak.round()
            print(f"{soak.published} messages, faults {dict(soak.faults)}", flush=True)
            if time.monotonic() > deadline:
                break
