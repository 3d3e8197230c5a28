"""`python -m tests.sim.spark.sink_load --seed 1 --count 20`: worlds with streaming queries that write through the sink.

The rows of a batch in the query's commit log arrive exactly once, whoever dies, and no branch is left.
"""

from __future__ import annotations

import logging
from typing import Final

from atalanta.message.message import Message
from atalanta.node.config import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import SimWatcher
from atalanta.sim.host import Host
from atalanta.sim.loads.xa.branches import branches_in_doubt
from atalanta.sim.nodes import PORT, address_of
from atalanta.sim.subject import Subject
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from tests.sim.spark.connection import OUT, BranchConnection, DecisionConnection
from tests.sim.spark.query import SparkQuery

QUERIES: Final = ("spark0", "spark1")
EXECUTORS: Final = 2  # at each node

# The sink warns of what the simulation does all the time.
logging.getLogger("atalanta.spark").addHandler(logging.NullHandler())


class SparkSinks(Subject):
    """The load: two queries with all nodes as servers, and a consumer of their rows at every node."""

    def __init__(self, world: World, network: Network, ledger: Ledger) -> None:
        super().__init__(world, network, ledger)
        self.queries: list[SparkQuery] = []
        self.batch_of: dict[str, tuple[str, int]] = {}  # query and batch by key
        self.branch_of: dict[str, list[str]] = {}  # branches that have the row, by key
        self.arrived: dict[str, str] = {}  # branch by key
        self.finished: dict[tuple[str, int], bool] = {}

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(OUT))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        for name in QUERIES:
            self.queries.append(self._query(name))
        for host in hosts:
            self.takers.append(
                SimWatcher(
                    self.world, self.network, f"sw-{host.name}", host.name, self.ledger, OUT,
                    self._arrived,
                )
            )  # fmt: skip

    def _query(self, name: str) -> SparkQuery:
        branches, decisions, executors = {}, {}, {}
        for host in self.hosts:
            node, server = host.name, f"{host.name}:{PORT}"
            branches[server] = BranchConnection(self.world, self.network, f"{name}-x-{node}", node)
            decisions[server] = DecisionConnection(self.world, self.network, f"{name}-d-{node}", node)
            executors[server] = [
                BranchConnection(self.world, self.network, f"{name}-{number}-{node}", node)
                for number in range(EXECUTORS)
            ]
            self.takers += [branches[server], decisions[server], *executors[server]]
        query = SparkQuery(
            self.world, name, Batches(self, name), branches, decisions, executors,
            lambda node: self.leave(node),
        )  # fmt: skip
        self.world.at(self.world.random("spark").randint(1, 2 * SECOND), query.start)
        return query

    def repair(self) -> None:
        super().repair()
        for query in self.queries:
            query.calm = True
        self._finish()

    def _finish(self) -> None:
        """Lets the queries end after the last scale-down: it may move a branch that no task knows of any more."""
        if self.departed.under_way() or any(host.node is None for host in self.hosts):
            self.world.at(SECOND, self._finish)
            return
        for query in self.queries:
            query.finish()

    def left(self) -> list[str]:
        found = [f"{each.name} is at batch {each.batch}" for each in self.queries if not each.ended]
        for host in self.hosts:
            if host.node is not None and (doubtful := branches_in_doubt(host.node)):
                found.append(f"{host.name} has {doubtful} in doubt")
        return found

    def _arrived(self, message: Message) -> None:
        key = str(message.properties.get("key"))
        branch = str(message.properties.get("branch"))
        if branch not in self.branch_of.get(key, ()):
            raise Violation(f"{key} arrived in the branch {branch}, which had not got it", key)
        if self.arrived.setdefault(key, branch) != branch:
            raise Violation(f"{key} arrived in the branches {self.arrived[key]} and {branch}", key)

    def check(self) -> None:
        for key, batch in self.batch_of.items():
            if batch not in self.finished:
                raise Violation(f"batch {batch} is unfinished", key)
            if key not in self.arrived:
                raise Violation(f"row lost: {key} of the finished batch {batch} did not arrive", key)


class Batches:
    """The record of one query's batches."""

    def __init__(self, load: SparkSinks, query: str) -> None:
        self.load = load
        self.query = query

    def planned(self, batch: int, keys: list[str]) -> None:
        for key in keys:
            self.load.batch_of[key] = (self.query, batch)
            self.load.ledger.sent[key] = True

    def prepared(self, batch: int, branch: str, keys: list[str]) -> None:
        for key in keys:
            self.load.ledger.tell(key, f"a task prepares {key} in the branch {branch}")
            self.load.branch_of.setdefault(key, []).append(branch)

    def committed(self, batch: int) -> None:
        self.load.finished[self.query, batch] = True

    def scaled_down(self) -> bool:
        return bool(self.load.departed.sources)


if __name__ == "__main__":
    from tests.sim.spark.worlds import main

    main(SparkSinks)
