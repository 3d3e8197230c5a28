"""The commands of `atalanta pipeline`: a file is read, checked by Spark and run."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import typer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from atalanta.cli.output import FAILED, Refused, ended, status_of_files
from atalanta.runtime.process import UNAVAILABLE
from atalanta.spark.environment.java import JavaMissing
from atalanta.spark.errors import SparkSourceError
from atalanta.spark.pipeline.check import Pipeline, examine, read_pipeline
from atalanta.spark.pipeline.compaction import compact
from atalanta.spark.pipeline.failure import brief
from atalanta.spark.pipeline.frames import Frames
from atalanta.spark.pipeline.page import PageServer
from atalanta.spark.pipeline.problems import PipelineError
from atalanta.spark.pipeline.progress import QueryState
from atalanta.spark.pipeline.run import PipelineRun
from atalanta.spark.pipeline.session import open_session
from atalanta.spark.pipeline.table_compaction import compact_table


def run_pipeline(path: Path, json_output: bool) -> None:
    """Runs the queries until SIGTERM, SIGINT, a failure, or the end of all queries."""
    with checked(path) as (spark, pipeline):
        run = PipelineRun(
            spark, pipeline, tell_batch if json_output else tell_nothing, tell_failure
        )
        server = page_server(pipeline, run)
        stop = threading.Event()

        def on_signal(number: int, frame: FrameType | None) -> None:
            stop.set()

        # After Spark, which has a handler of its own.
        signal.signal(signal.SIGTERM, on_signal)
        signal.signal(signal.SIGINT, on_signal)
        try:
            run.start()
            if server is not None:
                server.start()
            at = f", {server.url}" if server is not None else ""
            typer.echo(f"started: {', '.join(run.queries)}{at}", err=True)
            run.wait(stop)
            run.stop()
            run.look()
        finally:
            if server is not None:
                server.stop()
        if run.failed:
            raise typer.Exit(FAILED)


def check_pipeline(path: Path) -> None:
    """Checks the file and, whatever is wrong there, its SQL in Spark; starts nothing, and connects to no node."""
    with told(path):
        pipeline, problems = examine(path)
        for problem in problems:
            typer.echo(str(problem), err=True)
        if pipeline is not None:
            with opened(pipeline) as spark:
                Frames(spark, pipeline).build()
        if problems:
            raise typer.Exit(FAILED)
        typer.echo(f"{path}: no problems")


def compact_pipeline(path: Path) -> None:
    """Does all compactions of the file once."""
    with checked(path) as (spark, pipeline):
        queries = {query.name: query for query in pipeline.declaration.query}
        for compaction in pipeline.declaration.compaction:
            query = queries[compaction.query]
            if query.format != "parquet":
                files = compact_table(spark, query, compaction)
                typer.echo(f"{query.name}: {files.before} files rewritten as {files.after}")
                continue
            for part in compact(spark, query, compaction):
                state = "compacted" if part.added else "as before"
                typer.echo(f"{query.name}: {part.folder}: {part.rows} rows, {state}")


@contextmanager
def checked(path: Path) -> Iterator[tuple[SparkSession, Pipeline]]:
    """Yields the session and the file, which has no problems."""
    with told(path):
        pipeline = read_pipeline(path)
        with opened(pipeline) as spark:
            yield spark, pipeline


@contextmanager
def opened(pipeline: Pipeline) -> Iterator[SparkSession]:
    """Yields the session of a pipeline."""
    spark = open_session(pipeline.declaration)
    try:
        yield spark
    finally:
        end_session(spark)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turns errors into lines on stderr and an exit status."""
    try:
        yield
    except PipelineError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(status_of_files([path])) from error
    except (SparkSourceError, JavaMissing, Refused) as error:
        raise ended(str(error), getattr(error, "status", FAILED)) from error
    except (PySparkException, Py4JJavaError) as error:
        raise ended(brief(str(error)), FAILED) from error
    except (Py4JError, ConnectionError) as error:
        text = "Spark's JVM has ended; start the pipeline again: it goes on from its checkpoints"
        raise ended(text, FAILED) from error


def end_session(spark: SparkSession) -> None:
    """Stops the session; a JVM that has ended is stopped already."""
    try:
        spark.stop()
    except (Py4JError, ConnectionError):
        pass


def page_server(pipeline: Pipeline, run: PipelineRun) -> PageServer | None:
    """Returns the server of the page, bound but not started. Raises Refused if its address is taken."""
    page = pipeline.declaration.page
    if page is None:
        return None
    try:
        return PageServer(pipeline.declaration.name, lambda: run.states, page.listen)
    except (OSError, OverflowError) as error:
        problem = pipeline.document.problem(
            ("page", "listen"), f"{page.listen}: {error}", "another port"
        )
        raise Refused(str(problem), UNAVAILABLE) from error


def tell_nothing(state: QueryState) -> None:
    """Tells nothing about a batch: the page has it."""


def tell_batch(state: QueryState) -> None:
    """Prints a batch as one line of JSON."""
    print(json.dumps(asdict(state)), flush=True)


def tell_failure(state: QueryState) -> None:
    """Prints why a query has failed, and what to do."""
    print(
        f"atalanta: query {state.name} failed: {state.error} ({state.remedy})",
        file=sys.stderr,
        flush=True,
    )
