"""A pipeline in the session of the tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from atalanta.spark.pipeline.check import Pipeline, read_pipeline
from atalanta.spark.pipeline.progress import QueryState
from atalanta.spark.pipeline.run import PipelineRun


def pipeline_of(folder: Path, text: str, **variables: str) -> Pipeline:
    """Returns the checked pipeline; `${OUT}` is the folder."""
    path = folder / "pipeline.toml"
    path.write_text(text)
    return read_pipeline(path, {"OUT": str(folder), **variables})


class Running:
    """A run whose failures and batches are kept; `until` waits for an outcome."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.batches: list[QueryState] = []
        self.failures: list[QueryState] = []
        self.run = PipelineRun(spark, pipeline, self.batches.append, self.failures.append)

    def __enter__(self) -> Running:
        self.run.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.run.stop()

    def to_the_end(self) -> None:
        """Waits until all queries have ended, or one has failed."""
        stop = threading.Event()
        timer = threading.Timer(60.0, stop.set)
        timer.start()
        self.run.wait(stop)
        timer.cancel()
        assert not stop.is_set(), self.run.states

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not reached():
            self.run.look()
            assert not self.failures, self.failures
            assert time.monotonic() < deadline, self.run.states
            time.sleep(0.1)
