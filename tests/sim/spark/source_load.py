"""`python -m tests.sim.spark.source_load --seed 1 --count 20`: worlds with a streaming query over a queue of all nodes.

Every confirmed message is a row once, whoever dies. In most worlds a consumer takes messages whenever the lease
has ended: a batch that is repeated then has the same rows, or the query tells of the loss.
"""

from __future__ import annotations

import logging
from typing import Final

from atalanta.node.config import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import then
from atalanta.sim.clients.queue_client import QueueClient, key_of
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import PORT, address_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client.consumer import Delivery
from atalanta.wire.core.client.reply import Reply
from tests.sim.spark.fibers import end_all
from tests.sim.spark.log_connection import LogConnection
from tests.sim.spark.source_query import STREAM, SourceQuery

PER_SECOND: Final = 4.0
LATER_S: Final = 10  # the query's own faults go on so long after those of the nodes, for which it waits
STAY_NS: Final = (SECOND // 10, SECOND // 2)  # of the other consumer
AWAY_NS: Final = (SECOND // 10, SECOND)

# The source warns of what the simulation does all the time.
logging.getLogger("atalanta.spark").addHandler(logging.NullHandler())


class SparkSource(SenderLoad):
    """The load: a query, a sender at each node, and perhaps another consumer at each node."""

    def __init__(self, world: World, network: Network, ledger: Ledger) -> None:
        end_all()
        super().__init__(world, network, ledger)
        self.random = world.random("spark source")
        self.taken: dict[str, bool] = {}  # by another consumer, perhaps without a settled acknowledgement
        self.rows: dict[str, bool] = {}
        self.others: list[Taker] = []

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(STREAM))
        config.settings.add(STREAM, {"redistribution_delay_ms": -1, "redelivery_delay_ms": 0})

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        self.staying = [host.name for host in hosts]
        connections = {}
        shared = self.random.random() < 0.7
        for host in hosts:
            name = f"ss-{host.name}"
            total = max(4, int((seconds + LATER_S) * PER_SECOND))
            self.senders.append(
                Sender(self.world, self.network, name, host.name, self.ledger, STREAM, total, PER_SECOND)
            )
            connection = LogConnection(self.world, self.network, f"sq-{host.name}", host.name)
            connections[f"{host.name}:{PORT}"] = connection
            self.takers.append(connection)
            if shared:
                other = Taker(self.world, self.network, f"st-{host.name}", host.name, self)
                self.others.append(other)
                self.takers.append(other)
        self.query = SourceQuery(self.world, "source", connections, self)
        self.world.at(self.random.randint(1, 2 * SECOND), self.query.start)

    def arrived(self, key: str) -> None:
        self.ledger.tell(key, f"{key} is a row")
        if key not in self.ledger.sent:
            raise Violation(f"{key} is a row, and nobody sent it", key)
        if key in self.rows and key not in self.taken:
            raise Violation(f"{key} is a row twice", key)
        self.rows[key] = True

    def may_be_lost(self) -> bool:
        return bool(self.others)

    def repair(self) -> None:
        for client in [*self.senders, *self.takers]:
            if not client.up:
                client.start()
        self.world.at(LATER_S * SECOND, self._finish)

    def _finish(self) -> None:
        super().repair()
        self.query.finish()
        for other in self.others:
            other.over = True

    def left(self) -> list[str]:
        if not self.query.calm:
            return [f"{self.query.name} is at batch {self.query.checkpoint.commits}"]
        found = super().left()
        missing = self._missing()
        if missing:
            found.append(f"{missing[:3]} are no rows yet")
        elif not found and not self._waiting():
            self.query.stop()
        if not self.query.stopped:
            found.append(f"{self.query.name} runs: {self.query.events}")
        return found

    def _waiting(self) -> int:
        """Returns the number of messages in the queues; 1 if a node is away."""
        nodes = [host.node for host in self.hosts]
        return sum(1 if node is None else node.broker.queues[STREAM].message_count for node in nodes)

    def check(self) -> None:
        end_all()
        for key in self._missing():
            raise Violation(f"confirmed message lost: {key} is no row", key)

    def _missing(self) -> list[str]:
        return [
            key
            for key in self.ledger.confirmed
            if key.startswith("ss-") and key not in self.rows and key not in self.taken
        ]


class Taker(QueueClient):
    """A consumer that comes and goes. During a lease the node does not admit it."""

    resume = False

    def __init__(
        self, world: World, network: Network, name: str, target: str, load: SparkSource
    ) -> None:
        super().__init__(world, network, name, target, STREAM)
        self.load = load
        self.over = False
        self.credit_bytes = 1_000
        self.random = world.random(f"taker/{name}")

    def on_session(self) -> None:
        self.later(self.random.randint(*AWAY_NS), self._come)

    def _come(self) -> None:
        if self.load.query.checkpoint.offsets and not self.over:
            self._consume()
            self.later(self.random.randint(*STAY_NS), self._go)
        else:
            self.on_session()

    def _go(self) -> None:
        self.session.close_consumer(self.consumer)
        self.later(self.random.randint(*AWAY_NS), self._come)

    def _ended(self, reply: Reply) -> None:
        """Does nothing: it comes again, whether it was admitted or not."""

    def on_message(self, delivery: Delivery) -> None:
        key = key_of(delivery.message)
        self.load.taken[key] = True
        self.load.ledger.tell(key, f"{self.name} gets {key}")
        then(self.consumer.acknowledge_and_wait(delivery, True), self._acknowledged)
        self.consumer.handled(delivery.cost)

    def _acknowledged(self, reply: Reply) -> None:
        if reply.error is not None and not self.cut_short(reply.error):
            raise Violation(f"{self.name}: {reply.error.text}")


if __name__ == "__main__":
    import pytest

    from tests.sim.spark.fibers import install
    from tests.sim.spark.worlds import main

    install(pytest.MonkeyPatch())
    main(SparkSource)
