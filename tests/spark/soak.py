"""Runs of one query from a queue over a shuffle to another queue, with a fault in each; then the rows are compared.

The faults are drawn from a deck, so that each kind comes as often. A kill counts when it has hit: a run that ended
before is counted as missed, and its fault comes again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from atalanta.client import Message, blocking
from tests.spark.query_process import KINDS, QueryProcess

RUNS: Final = 5  # between two comparisons; the last is without a fault
MESSAGES: Final = 600  # at each node, before each run
PARTITIONS: Final = (0, 1, 2, 3, 5)
CORES: Final = (1, 2, 3)
START_S: Final = 300.0
RECEIVE_S: Final = 5.0
NODE: Final = "node"
DECK: Final = (*KINDS, NODE, NODE)


class Node(Protocol):
    """A node; its data survives a kill. `server` is an element of the option servers, `url` that of a client."""

    server: str
    url: str

    def start(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class Rig:
    """The nodes, the login, the queue with its address and routing type, and further options of the source."""

    nodes: Sequence[Node]
    user: str
    password: str
    address: str
    queue: str
    routing: str
    read: dict[str, str] = field(default_factory=dict)


class Soak:
    """The runs of one query, and the rows that it must write."""

    def __init__(self, rig: Rig, folder: Path, seed: int) -> None:
        self.rig = rig
        self.folder = folder
        self.seed = seed
        self.random = random.Random(seed)
        self.deck: list[str] = []
        self.began_s = time.monotonic()
        self.published = 0
        self.rounds = 0
        self.repeated = 0  # runs that began with a batch that an earlier run had not finished
        self.killed: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()

    def report(self) -> str:
        minutes = (time.monotonic() - self.began_s) / 60
        return (
            f"{minutes:.1f} minutes, {self.rounds} rounds, {self.published} messages, lost 0, doubled 0; "
            f"kills {dict(sorted(self.killed.items()))}, runs that ended before {dict(sorted(self.missed.items()))}, "
            f"repeated batches {self.repeated}"
        )

    def round(self) -> None:
        """Runs the query several times, each with a fault, then without, and compares the rows."""
        expected: list[str] = []
        for number in range(RUNS):
            expected += self._publish()
            self._run(number == RUNS - 1)
        arrived = Counter(self._arrived())
        lost = [text for text in expected if not arrived[text]]
        doubled = {text: count for text, count in arrived.items() if count > 1}
        shown = (lost[:5], list(doubled.items())[:5], len(lost), len(doubled))
        assert shown == ([], [], 0, 0), f"seed {self.seed}, kills {dict(self.killed)}"
        assert arrived.total() == len(expected)
        self._check_nodes()
        self.rounds += 1

    # -- a run ----------------------------------------------------------------------------------
    def _run(self, whole: bool) -> None:
        """Runs the query under a cut of its own. A run in which a process was killed may fail."""
        self.repeated += self._batches("offsets") > self._batches("commits")
        rig = self.rig
        settings = {
            "servers": ",".join(node.server for node in rig.nodes), "user": rig.user,
            "password": rig.password, "queue": rig.queue, "read": rig.read, "folder": str(self.folder),
            "cores": self.random.choice(CORES), "partitions": self.random.choice(PARTITIONS),
        }  # fmt: skip
        query = QueryProcess(settings, self.folder)
        killed = False
        try:
            killed = not whole and self._fault(query)
        finally:
            status = query.wait()
        assert killed or status == 0, query.tail()

    def _fault(self, query: QueryProcess) -> bool:
        """Returns True if the run may fail."""
        if not self.deck:
            self.deck = self.random.sample(DECK, len(DECK))
        fault = self.deck.pop()
        self._wait_for_batch(query)
        time.sleep(self.random.uniform(0.0, 2.0))
        if fault == NODE:
            hit = query.process.poll() is None
            self._restart_node()
        else:
            hit = query.kill(fault, START_S)
        (self.killed if hit else self.missed)[fault] += 1
        if not hit:
            self.deck.insert(0, fault)
        return hit and fault != NODE

    def _restart_node(self) -> None:
        node = self.random.choice(self.rig.nodes)
        node.kill()
        time.sleep(self.random.uniform(0.0, 3.0))
        node.start()

    def _wait_for_batch(self, query: QueryProcess) -> None:
        """Returns when the run has begun a batch of its own, or ended."""
        before = self._batches("offsets")
        deadline = time.monotonic() + START_S
        while self._batches("offsets") == before and query.process.poll() is None:
            assert time.monotonic() < deadline, query.tail()
            time.sleep(0.02)

    def _batches(self, log: str) -> int:
        return sum(path.name.isdigit() for path in self.folder.glob(f"checkpoint/{log}/*"))

    # -- the nodes ------------------------------------------------------------------------------
    def _connect(self, node: Node) -> blocking.Connection:
        return blocking.connect(node.url, user=self.rig.user, password=self.rig.password)

    def _publish(self) -> list[str]:
        """Sends durable messages to every node, confirmed when this returns."""
        texts: list[str] = []
        for node in self.rig.nodes:
            own = [f"{self.published + number}" for number in range(MESSAGES)]
            self.published += MESSAGES
            with (
                self._connect(node) as connection,
                connection.producer(self.rig.address, routing=self.rig.routing) as producer,
            ):
                for text in own:
                    producer.send_soon(Message(text=text))
                producer.drain()
            texts += own
        return texts

    def _arrived(self) -> list[str]:
        """Takes all rows from the queue `out` of every node."""
        texts: list[str] = []
        for node in self.rig.nodes:
            with self._connect(node) as connection, connection.consumer("out") as consumer:
                while (message := consumer.receive(RECEIVE_S)) is not None:
                    texts.append(str(message.text))
                    message.acknowledge()
        return texts

    def _check_nodes(self) -> None:
        """Checks that no message is left in the queues, and no branch."""
        for node in self.rig.nodes:
            with self._connect(node) as connection:
                left = [connection.query_queue(name).message_count for name in (self.rig.queue, "out")]
                assert left == [0, 0], node.server
                assert connection.xa_resource.recover() == [], node.server
