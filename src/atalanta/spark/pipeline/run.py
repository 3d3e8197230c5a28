"""The queries of a pipeline while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from atalanta.spark.pipeline.check import Pipeline
from atalanta.spark.pipeline.declaration import AVAILABLE_NOW, Query, texts
from atalanta.spark.pipeline.failure import brief, remedy
from atalanta.spark.pipeline.frames import Frames
from atalanta.spark.pipeline.progress import DONE, FAILED, RUNNING, QueryState

LOOK_S: Final = 0.25
Told = Callable[[QueryState], None]


class PipelineRun:
    """The queries and their states. `on_batch` is called after each batch, `on_failure` once for each failed query."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, on_batch: Told, on_failure: Told
    ) -> None:
        self.spark = spark
        self.declaration = pipeline.declaration
        self.pipeline = pipeline
        self.on_batch = on_batch
        self.on_failure = on_failure
        self.queries: dict[str, StreamingQuery] = {}
        # Replaced as a whole by this thread, read by those of the page.
        self.states = {query.name: QueryState(query.name) for query in pipeline.declaration.query}
        self._seen: dict[str, str] = {}

    @property
    def failed(self) -> bool:
        """True if a query has failed."""
        return any(state.state == FAILED for state in self.states.values())

    def start(self) -> None:
        """Starts the queries, when Spark has analysed all steps. Raises PipelineError if it refuses one."""
        frames = Frames(self.spark, self.pipeline).build()
        for query in self.declaration.query:
            try:
                self.queries[query.name] = self._start(query, frames[query.name])
            except (PySparkException, Py4JJavaError) as error:  # the latter for a folder that cannot be made
                self._fail(query.name, str(error))
                if self.declaration.on_failure == "stop":
                    return

    def wait(self, stop: threading.Event) -> None:
        """Returns when `stop` is set, all queries have ended, or one has failed and `on_failure` says so."""
        while not self._over():
            ended = stop.wait(LOOK_S)
            self.look()
            if ended:
                return

    def look(self) -> None:
        """Takes the progress of all queries, and the error of those that have failed."""
        for name, query in self.queries.items():
            if self.states[name].state != RUNNING:
                continue
            active = query.isActive
            for progress in query.recentProgress:
                if progress["timestamp"] <= self._seen.get(name, ""):
                    continue
                self._seen[name] = progress["timestamp"]
                before = self.states[name]
                self.states[name] = before.after(progress)
                if self.states[name].batch != before.batch:
                    self.on_batch(self.states[name])
            if not active:
                self._end(name, query.exception())

    def stop(self) -> None:
        """Stops the queries. A batch that is cut off is repeated from the checkpoint at the next start."""
        for query in self.queries.values():
            query.stop()

    def _over(self) -> bool:
        if self.failed and self.declaration.on_failure == "stop":
            return True
        return all(state.state != RUNNING for state in self.states.values())

    def _end(self, name: str, error: StreamingQueryException | None) -> None:
        if error is None:
            self.states[name] = replace(self.states[name], state=DONE, rows_per_second=0.0)
        else:
            self._fail(name, str(error))

    def _fail(self, name: str, error: str) -> None:
        self.states[name] = replace(
            self.states[name],
            state=FAILED,
            rows_per_second=0.0,
            error=brief(error),
            remedy=remedy(error),
        )
        self.on_failure(self.states[name])

    def _start(self, query: Query, frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.format(query.format).queryName(query.name).outputMode(query.mode)
        writer = writer.options(**texts(query.options))
        checkpoint = self.declaration.checkpoint(query)
        if checkpoint is not None:
            writer = writer.option("checkpointLocation", checkpoint)
        if query.partition_by:
            writer = writer.partitionBy(*query.partition_by)
        if query.trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=query.trigger)
        if query.table is not None:
            return writer.toTable(query.table)
        return writer.start(query.path)
