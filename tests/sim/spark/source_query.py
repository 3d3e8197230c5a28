"""A simulated streaming query that reads through the Spark source. Its checkpoint survives its driver.

It runs the source's own code (stream_reader.py, leases.py, partition_reader.py) in the order of Spark's calls. It is
killed at any call, stopped, or paused while another driver goes on with its checkpoint. Pauses between two drivers are
often longer than the lease.
"""

from __future__ import annotations

import copy
from typing import Any, Final, Protocol

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.world.world import SECOND, World
from atalanta.spark.arrow.schema import default_schema
from atalanta.spark.errors import DataLost, LeaseTaken, NodeTimeout, NodeUnavailable
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import read_options
from atalanta.spark.read import partition_reader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.sim.spark.fibers import SimProcess, die, sleep
from tests.sim.spark.log_connection import LogConnection, LogGateway

STREAM: Final = "stream"
LEASES_S: Final = (1, 1, 2)
DIES: Final = 0.002  # at each call of a node
STOPS: Final = 0.1  # after a batch
DIES_BEFORE_COMMIT: Final = 0.2
PAUSES: Final = 0.05  # before the plan of a batch, and before its tasks
AGAIN: Final = 0.1  # share of the tasks with a second attempt
ABSENCE_S: Final = (0.05, 2.0, 3.0)
PAUSE_S: Final = (0.6, 3.0)
BATCH_MESSAGES: Final = 12


class Superseded(Exception):
    """The end of a driver whose checkpoint another one has changed."""


class Book(Protocol):
    """The record of the rows, for the checks."""

    def arrived(self, key: str) -> None: ...

    def may_be_lost(self) -> bool:
        """Returns True if a consumer has taken messages, or could have."""
        ...


class Checkpoint:
    """The offset log, the commit log, and a sink that takes each batch once."""

    def __init__(self) -> None:
        self.offsets: list[tuple[dict[str, Any], dict[str, Any]]] = []  # start and end of each batch
        self.commits = 0
        self.sink: dict[int, list[str]] = {}
        self.seen: list[str] | None = None  # rows of the last batch, after a whole read
        self.accepts_loss = False  # in the last batch


class Driver:
    """One process of the query."""

    def __init__(self, query: SourceQuery) -> None:
        self.query = query
        self.process = SimProcess(query.world)
        self.reader: AtalantaStreamReader | None = None
        self.ended = False
        self.process.start(self._run)

    def _run(self) -> None:
        """Runs the query until it ends. Raises Violation for an error that its user must not get."""
        query, checkpoint = self.query, self.query.checkpoint
        try:
            self._stream()
        except Superseded:
            pass
        except (NodeTimeout, NodeUnavailable):
            query.note("nodes away")
        except LeaseTaken as error:
            if query.driver is self and "consumers" not in str(error):
                raise Violation(f"{query.name} is fenced by nobody: {error}") from error
            query.note("fenced")
        except DataLost as error:
            if query.driver is not self:
                raise Violation(f"{query.name} was taken over, and is told: {error}") from error
            if not query.book.may_be_lost():
                raise Violation(f"{query.name}: {error}, and nobody has taken any") from error
            query.note("data lost")
            checkpoint.accepts_loss = True
        if self.reader is not None:
            self.reader.stop()
        self.ended = True
        query.ended(self)

    def _stream(self) -> None:
        """Calls the source as MicroBatchExecution does."""
        query, checkpoint = self.query, self.query.checkpoint
        options = dict(query.options)
        if checkpoint.accepts_loss:
            options["failOnDataLoss"] = "false"
        read = read_options(options)
        self.reader = reader = AtalantaStreamReader(
            read, default_schema(True, read.columns), self._connect
        )
        reader.leases.owner = f"{query.name}/{query.lives}"
        number = len(checkpoint.offsets)
        if number > checkpoint.commits:
            self._batch(number - 1)
        start = checkpoint.offsets[-1][1] if checkpoint.offsets else reader.initialOffset()
        while not query.stopping:
            if reader.leases.epochs and query.happens(PAUSES):
                query.pause(self)
            end = reader.latestOffset(copy.deepcopy(start), reader.getDefaultReadLimit())
            if end == start:
                sleep(query.random.uniform(0.01, 0.3))
                continue
            self._check_owner()
            checkpoint.offsets.append((start, copy.deepcopy(end)))
            checkpoint.seen = None
            if checkpoint.commits:
                reader.commit(copy.deepcopy(start))
            self._batch(len(checkpoint.offsets) - 1)
            start = end
            if checkpoint.accepts_loss or query.happens(STOPS):
                checkpoint.accepts_loss = False
                return

    def _batch(self, number: int) -> None:
        query, checkpoint, reader = self.query, self.query.checkpoint, self.reader
        assert reader is not None
        start, end = copy.deepcopy(checkpoint.offsets[number])
        parts = reader.partitions(start, end)
        if query.happens(PAUSES):
            query.pause(self)
        keys: list[str] = []
        for part in parts:
            rows = rows_of(reader, part)
            if query.happens(AGAIN) and rows_of(reader, part) != rows and not checkpoint.accepts_loss:
                raise Violation(f"{query.name}: two attempts of the task {part} have other rows")
            keys += rows
        self._check_owner()
        if checkpoint.seen is not None and sorted(checkpoint.seen) != sorted(keys):
            missing = sorted(set(checkpoint.seen) - set(keys)) or ["a"]
            if not checkpoint.accepts_loss:
                raise Violation(
                    f"{query.name}: batch {number} had {sorted(checkpoint.seen)}, and its repeat {sorted(keys)}",
                    missing[0],
                )
        checkpoint.seen = keys
        if query.happens(DIES_BEFORE_COMMIT):
            die()
        if number not in checkpoint.sink:
            checkpoint.sink[number] = keys
            for key in keys:
                query.book.arrived(key)
        if query.happens(DIES):
            die()
        checkpoint.commits = number + 1

    def _connect(self, server: str, credentials: Credentials) -> Any:
        if self.query.happens(DIES):
            die()
        return Gate(self.query, self.query.connections[server])

    def _check_owner(self) -> None:
        if self.query.driver is not self:
            raise Superseded


def rows_of(reader: AtalantaStreamReader, part: Any) -> list[str]:
    """Returns the keys of the rows of one task."""
    batches = reader.read(part)
    return [body.rstrip(b"\0").decode() for one in batches for body in one.column("body").to_pylist()]


class Gate(LogGateway):
    """A gateway at whose calls the driver may die."""

    def __init__(self, query: SourceQuery, connection: LogConnection) -> None:
        self.query = query
        super().__init__(connection)

    def _ask(self, method: str, *arguments: object) -> Any:
        if self.query.happens(DIES):
            die()
        answer = super()._ask(method, *arguments)
        if self.query.happens(DIES):
            die()
        return answer


class SourceQuery:
    """The query. `finish` lets it go on without faults, `stop` ends it."""

    def __init__(
        self, world: World, name: str, connections: dict[str, LogConnection], book: Book
    ) -> None:
        self.world = world
        self.name = name
        self.connections = connections
        self.book = book
        self.random = world.random(f"spark/{name}")
        self.checkpoint = Checkpoint()
        self.options = {
            "servers": ",".join(connections), "queue": STREAM, "group": name,
            "columns": "node,sequence,body", "requestTimeout": "1s", "nodeTimeout": "20s",
            "leaseTimeout": f"{self.random.choice(LEASES_S)}s",
            "maxOffsetsPerTrigger": str(self.random.randint(1, BATCH_MESSAGES)),
            "minPartitions": str(self.random.randint(1, 4)),
        }  # fmt: skip
        self.driver: Driver | None = None
        self.lives = 0
        self.calm = False
        self.stopping = False
        self.stopped = False
        self.events: dict[str, int] = {}
        partition_reader._idle.clear()

    def start(self) -> None:
        """Starts a driver with the checkpoint. An older one that is paused is superseded."""
        self.lives += 1
        self.driver = Driver(self)
        self._watch(self.driver)

    def finish(self) -> None:
        self.calm = True

    def stop(self) -> None:
        self.stopping = True

    def note(self, event: str) -> None:
        self.events[event] = self.events.get(event, 0) + 1

    def happens(self, share: float) -> bool:
        return not self.calm and self.random.random() < share

    def ended(self, driver: Driver) -> None:
        """Starts the next driver, unless the one that ended was superseded."""
        if driver is not self.driver:
            return
        if self.stopping:
            self.stopped = True
        else:
            self.world.at(self._absence_ns(), lambda: self._again(driver))

    def pause(self, driver: Driver) -> None:
        """Pauses the process, and starts another driver meanwhile."""
        self.note("paused")
        driver.process.paused_until = self.world.now + int(self.random.uniform(*PAUSE_S) * SECOND)
        self.world.at(SECOND // 2, lambda: self._again(driver))
        sleep(0.0)

    def _again(self, driver: Driver) -> None:
        if driver is self.driver:
            self.start()

    def _watch(self, driver: Driver) -> None:
        """Starts the next driver after a process died."""
        if driver.ended or driver is not self.driver:
            return
        if driver.process.killed:
            self.note("died")
            for connection in self.connections.values():
                connection.die()
            partition_reader._idle.clear()
            self.world.at(self._absence_ns(), lambda: self._again(driver))
        else:
            self.world.at(SECOND // 20, lambda: self._watch(driver))

    def _absence_ns(self) -> int:
        absence_s = 0.1 if self.calm else self.random.choice(ABSENCE_S)
        return int(absence_s * SECOND)
