"""The frames of a pipeline: Spark analyses every step before a query starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from py4j.java_gateway import java_import
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from atalanta.spark.errors import OptionError
from atalanta.spark.options import write_options
from atalanta.spark.pipeline.check import Pipeline
from atalanta.spark.pipeline.declaration import (
    Input,
    Query,
    StaticTable,
    Step,
    StreamSource,
    Watermark,
    texts,
)
from atalanta.spark.pipeline.failure import brief
from atalanta.spark.pipeline.problems import Location, PipelineError, Problem
from atalanta.spark.write.rows import RowReader

# The package and the settings of each format; `{}` is the version of Spark.
PACKAGES: Final = {
    "delta": "io.delta:delta-spark_{}_2.13 in spark.jars.packages, and Delta's two settings",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{}_2.13 in spark.jars.packages, and a catalog",
}


class Frames:
    """The views of the pipeline in a session; `problems` has what Spark refuses."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.views: dict[str, DataFrame] = {}
        self.problems: list[Problem] = []
        self.failed: list[str] = [*pipeline.unknown]

    def build(self) -> dict[str, DataFrame]:
        """Returns the frame of every query. Raises PipelineError with all problems."""
        declaration = self.pipeline.declaration
        for at, source in enumerate(declaration.source):
            self.add(("source", at), source.name, partial(self.stream, source))
        for at, table in enumerate(declaration.table):
            self.add(("table", at), table.name, partial(self.table, table))
        for at, step in enumerate(declaration.step):
            self.add(("step", at, "sql"), step.name, partial(self.step, step))
        frames = {}
        for at, query in enumerate(declaration.query):
            if query.source in self.views:
                frames[query.name] = self.views[query.source]
                self.check_query(at, query)
        self.check_shared(frames)
        if self.problems:
            raise PipelineError(self.problems)
        return frames

    def add(self, location: Location, name: str, make: Callable[[], DataFrame]) -> None:
        """Makes one view; an error that only follows from an earlier one is not told."""
        if name in self.pipeline.unknown:
            return
        try:
            frame = make()
            frame.createOrReplaceTempView(name)
        except (PySparkException, OptionError, Py4JJavaError) as error:
            text = brief(str(error))
            if not any(f"`{one}`" in text for one in self.failed):
                self.problem(location, f"{location[0]} '{name}': {text}", "correct it")
            self.failed.append(name)
        else:
            self.views[name] = frame

    def problem(self, location: Location, text: str, remedy: str) -> None:
        self.problems.append(self.pipeline.document.problem(location, text, remedy))

    def stream(self, source: StreamSource) -> DataFrame:
        reader = self.spark.readStream.format(source.format).options(**texts(source.options))
        return with_watermark(loaded(reader, source), source.watermark)

    def table(self, table: StaticTable) -> DataFrame:
        reader = self.spark.read.format(table.format).options(**texts(table.options))
        return loaded(reader, table)

    def step(self, step: Step) -> DataFrame:
        return with_watermark(self.spark.sql(step.sql), step.watermark)

    def check_query(self, at: int, query: Query) -> None:
        """Checks what Spark and the sink would find only after the start."""
        frame = self.views[query.source]
        location = ("query", at)
        if not frame.isStreaming:
            text = f"query '{query.name}': '{query.source}' is not a stream"
            self.problem((*location, "from"), text, "select from a [[source]]")
            return
        for column in query.partition_by:
            if column.lower() not in [name.lower() for name in frame.columns]:
                text = f"query '{query.name}': there is no column '{column}' in '{query.source}'"
                remedy = f"columns: {', '.join(frame.columns)}"
                self.problem((*location, "partition_by"), text, remedy)
        if query.format == "atalanta":
            try:
                RowReader(write_options(texts(query.options)), frame.schema)
            except OptionError as error:
                text = f"query '{query.name}': {error}"
                self.problem(
                    (*location, "options"), text, f"change the columns of '{query.source}'"
                )
        if query.format in PACKAGES and not self.has_format(query.format):
            text = f"query '{query.name}': Spark has no format {query.format}"
            version = ".".join(self.spark.version.split(".")[:2])
            self.problem((*location, "format"), text, PACKAGES[query.format].format(version))
        try:
            self.check_mode(frame, query.mode)
        except PySparkException as error:
            remedy = "mode 'append' of an aggregate needs a watermark; others keep all groups"
            self.problem(location, f"query '{query.name}': {brief(str(error))}", remedy)

    def has_format(self, name: str) -> bool:
        """Returns False if the session does not know the format."""
        try:
            self.spark.read.format(name).load("/nowhere/atalanta").schema  # noqa: B018
        except (PySparkException, Py4JJavaError) as error:
            return "[DATA_SOURCE_NOT_FOUND]" not in str(error)
        return True

    def check_mode(self, frame: DataFrame, mode: str) -> None:
        """Raises AnalysisException if Spark does not run the plan in this output mode. Not with Spark Connect."""
        plan = analyzed(frame)
        if plan is None:
            return
        jvm: Any = self.spark._jvm
        java_import(jvm, "org.apache.spark.sql.streaming.OutputMode")
        java_import(jvm, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
        output = getattr(jvm.OutputMode, mode.capitalize())()
        jvm.UnsupportedOperationChecker.checkForStreaming(plan, output)

    def check_shared(self, frames: dict[str, DataFrame]) -> None:
        """Refuses a queue that two queries read: its acknowledged messages belong to one checkpoint."""
        declaration = self.pipeline.declaration
        for at, source in enumerate(declaration.source):
            if source.format != "atalanta" or source.name not in self.views:
                continue
            leaf = leaves(self.views[source.name])
            readers = [name for name, frame in frames.items() if leaf and leaf <= leaves(frame)]
            if len(readers) > 1:
                text = f"source '{source.name}' is read by the queries {', '.join(readers)}"
                remedy = (
                    "a queue feeds one query: a source and a queue for each, on a multicast address"
                )
                self.problem(("source", at), text, remedy)


def loaded(reader: Any, given: Input) -> DataFrame:
    """Returns the frame of a reader of either kind."""
    if given.schema_text is not None:
        reader = reader.schema(given.schema_text)
    frame: DataFrame = reader.load(given.path) if given.path is not None else reader.load()
    return frame


def with_watermark(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    return frame if watermark is None else frame.withWatermark(watermark.column, watermark.delay)


def analyzed(frame: DataFrame) -> Any:
    """Returns the JVM's analyzed plan, None with Spark Connect."""
    java: Any = getattr(frame, "_jdf", None)
    return None if java is None else java.queryExecution().analyzed()


def leaves(frame: DataFrame) -> set[str]:
    """Returns the texts of the plan's leaves; the ids of their columns are unique. Empty with Spark Connect."""
    plan = analyzed(frame)
    if plan is None:
        return set()
    found = plan.collectLeaves()
    return {str(found.apply(at).output().toString()) for at in range(found.size())}
