"""A simulated streaming query that writes through the Spark sink. Its checkpoint survives its driver.

The driver plans a batch, cuts it into partitions, has the tasks prepare them, and commits with the sink's own code
(batch_commit.py). It dies between any two steps. Tasks fail, run twice, or outlive their driver. Nodes with prepared
branches are scaled down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StringType, StructType

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.world.world import SECOND, World
from atalanta.spark.errors import NodeTimeout, NodeUnavailable, SparkSourceError
from atalanta.spark.gateway.gateway import Credentials, Gateway
from atalanta.spark.options import write_options
from atalanta.spark.write.batch_commit import BatchCommit, Prepared
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.servers import server_for
from atalanta.spark.write.sink import AtalantaStreamWriter, Written, prepared_of
from tests.sim.spark.connection import OUT, BranchConnection, DecisionConnection
from tests.sim.spark.steps import Call, Steps

DRIVER_DIES: Final = 0.02  # at each call, before it is made or when its answer arrives
TASK_DIES: Final = 0.1  # after its branch was prepared
BATCH_FAILS: Final = 0.04  # for each task
SPECULATIVE: Final = 0.15  # share of the tasks with a second attempt
GIVES_UP: Final = 0.3  # share of the lost calls after which nodeTimeout is over
NODE_LEAVES: Final = 0.02  # at each call of the driver
ROWS_MAX: Final = 12
PARTITIONS_MAX: Final = 5
DECIDING: Final = ("decisions", "decide", "take_over", "is_taken_over", "forget_decisions")
COLUMNS: Final = StructType().add("value", StringType())


class Book(Protocol):
    """The record of the batches, for the checks."""

    def planned(self, batch: int, keys: list[str]) -> None: ...

    def prepared(self, batch: int, branch: str, keys: list[str]) -> None: ...

    def committed(self, batch: int) -> None: ...

    def scaled_down(self) -> bool: ...


class SparkQuery:
    """The query. `finish` lets it end after one more batch, without faults, at every node."""

    def __init__(
        self,
        world: World,
        name: str,
        book: Book,
        branches: dict[str, BranchConnection],
        decisions: dict[str, DecisionConnection],
        executors: dict[str, list[BranchConnection]],
        leave: Callable[[str], None],
    ) -> None:
        self.world = world
        self.name = name
        self.book = book
        self.branches = branches
        self.decisions = decisions
        self.executors = executors
        self.leave = leave
        self.random = world.random(f"spark/{name}")
        self.leaving = world.random(f"spark/leaving/{name}")
        options = write_options({"servers": ",".join(branches), "address": OUT})
        self.login = options.login
        self.servers = options.login.servers
        self.writer = AtalantaStreamWriter(options, COLUMNS, away)
        # The checkpoint.
        self.rows: dict[int, list[str]] = {}
        self.batch = 0
        # The driver and its current run of the batch.
        self.life = 0
        self.run = 0
        self.parts: list[list[str]] = []
        self.written: list[WriterCommitMessage | None] = []
        self.last = -1  # the batch after which it ends
        self.calm = False
        self.cleaned = False
        self.ended = False
        self.repeats = 0
        self.timeouts = 0

    def finish(self) -> None:
        self.calm = True
        self.last = self.batch + 1

    # -- a batch --------------------------------------------------------------------------------
    def start(self) -> None:
        """Starts the driver with its checkpoint."""
        self.life += 1
        self._begin()

    def _begin(self) -> None:
        """Runs the batch of the checkpoint, under a new cut."""
        self.run += 1
        if self.batch not in self.rows:
            count = self.random.randint(1, ROWS_MAX) if self.batch != self.last else 8 * len(self.servers)
            self.rows[self.batch] = [f"{self.name}/{self.batch}.{row}" for row in range(count)]
            self.book.planned(self.batch, self.rows[self.batch])
        else:
            self.repeats += 1
        self.parts = self._cut(self.rows[self.batch])
        self.written = [None] * len(self.parts)
        run = self.run
        for number, keys in enumerate(self.parts):
            if not keys:
                self.written[number] = Written(self.name, 0, None)
                continue
            attempts = 2 if self._happens(SPECULATIVE) else 1
            for _ in range(attempts):
                self._attempt(run, self.batch, number, keys)

    def _cut(self, rows: list[str]) -> list[list[str]]:
        """Returns the rows by partition. The last batch has one at each server at least."""
        count = self.random.randint(1, PARTITIONS_MAX)
        if self.batch == self.last:
            while {server_for(self.servers, self.name, each) for each in range(count)} != set(self.servers):
                count += 1
            return [rows[number::count] for number in range(count)]
        parts: list[list[str]] = [[] for _ in range(count)]
        for row in rows:
            self.random.choice(parts).append(row)
        return parts

    def _attempt(self, run: int, batch: int, number: int, keys: list[str]) -> None:
        server = server_for(self.servers, self.name, number)
        branch = str(BranchName(self.name, batch, f"{number}.{self.random.getrandbits(128):032x}"))
        self.book.prepared(batch, branch, keys)
        executor = self.random.choice(self.executors[server])
        executor.ask(
            "prepare", (keys, branch), lambda result: self._attempted(run, batch, number, keys, result)
        )

    def _attempted(self, run: int, batch: int, number: int, keys: list[str], result: object) -> None:
        """Takes the result of a task's attempt. The driver asks again for one that died, and drops a second one."""
        if run != self.run or self.written[number] is not None:
            return
        if isinstance(result, NodeUnavailable) or self._happens(TASK_DIES):
            self._attempt(run, batch, number, keys)
            return
        if self._happens(BATCH_FAILS):
            self._give_up()
            return
        branch = BranchName.parse(str(result))
        assert branch is not None
        server = server_for(self.servers, self.name, number)
        self.written[number] = Written(self.name, len(keys), Prepared(server, branch))
        if None not in self.written:
            self._commit()

    def _commit(self) -> None:
        prepared = prepared_of(self.written)

        def commit(steps: Steps) -> None:
            BatchCommit(self.login, steps).decide_and_finish(self.name, self.batch, prepared)

        self._perform(commit, self._committed, True)

    def _committed(self) -> None:
        if self._happens(DRIVER_DIES):
            self._die()
            return
        self.book.committed(self.batch)
        self.batch += 1
        if self.batch - 1 == self.last:
            self._clean_up()
        else:
            life = self.life
            self.world.at(self.random.randint(1, SECOND // 2), lambda: self._next(life))

    def _next(self, life: int) -> None:
        if life == self.life:
            self._begin()

    # -- failures -------------------------------------------------------------------------------
    def _happens(self, share: float) -> bool:
        return not self.calm and self.random.random() < share

    def _give_up(self) -> None:
        """Aborts the batch as Spark does after an error of a task or of the commit, and starts the query again."""
        self.run += 1
        written = self.written

        def abort(steps: Steps) -> None:
            self.writer.writer.connect = steps.open
            self.writer.abort(written, self.batch)

        self._perform(abort, self._die, False)

    def _die(self) -> None:
        """Kills the driver; in half of the cases with the executors, whose tasks go on otherwise."""
        self.life += 1
        self.run += 1
        dying = [*self.branches.values(), *self.decisions.values()]
        if self.random.random() < 0.5:
            dying += [each for some in self.executors.values() for each in some]
        for connection in dying:
            connection.die()
        life = self.life

        def again() -> None:
            if life == self.life:
                self.start()

        self.world.at(self.random.randint(1, SECOND), again)

    # -- the driver's calls ---------------------------------------------------------------------
    def _perform(
        self, code: Callable[[Steps], None], then: Callable[[], None], timeouts: bool
    ) -> None:
        """Runs the driver's code, then `then`. `timeouts`: the code waits for nodes, up to nodeTimeout."""
        steps = Steps(self.login)
        life = self.life

        def advance() -> None:
            try:
                call = steps.run(code)
            except NodeTimeout:
                self.timeouts += 1
                self._give_up()
                return
            except SparkSourceError as error:
                raise Violation(f"{self.name} at batch {self.batch}: {error}") from error
            if call is None:
                then()
            elif self._happens(DRIVER_DIES):
                self._die()
            else:
                if not self.calm and self.leaving.random() < NODE_LEAVES:
                    self.leave(self.leaving.choice(list(self.branches.values())).target)
                self._connection(call).ask(call.method, call.arguments, answered)

        def answered(result: object) -> None:
            if life != self.life:
                return
            if isinstance(result, NodeUnavailable) and timeouts and self._happens(GIVES_UP):
                result = NodeTimeout("nodeTimeout")
            steps.answers.append(result)
            if self._happens(DRIVER_DIES):
                self._die()
            else:
                advance()

        advance()

    def _connection(self, call: Call) -> BranchConnection | DecisionConnection:
        if call.method in DECIDING:
            return self.decisions[call.server]
        return self.branches[call.server]

    # -- the end --------------------------------------------------------------------------------
    def _clean_up(self) -> None:
        """Checks that the decision of the last batch is kept, and removes it. A scale-down may leave older ones.

        Those are removed again until none is left: a consumer draws messages from other nodes.
        """
        found: dict[str, list[int]] = {}

        def clean(steps: Steps) -> None:
            found.clear()
            for server in self.servers:
                decisions = steps.call(server, lambda node: node.decisions(self.name))
                if decisions:
                    found[server] = list(decisions)
            for server in found:
                steps.call(server, lambda node: node.forget_decisions(self.name, self.last + 1))

        def cleaned() -> None:
            newest = any(self.last in batches for batches in found.values())
            alone = list(found.values()) == [[self.last]]
            if not self.cleaned and not (alone or (newest and self.book.scaled_down())):
                raise Violation(f"decisions of {self.name} after batch {self.last}: {found}")
            self.cleaned = True
            self.ended = not found
            if found:
                self.world.at(SECOND, self._clean_up)

        self._perform(clean, cleaned, False)


def away(server: str, credentials: Credentials) -> Gateway:
    """Connects to nothing: a writer that is made knows no pairs yet."""
    raise NodeUnavailable(f"{server} is away")
