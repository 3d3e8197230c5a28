"""The Spark program of the demo: three Structured Streaming queries over the queues of the whole cluster.

    archive   queue archive           -> Parquet by month, every flight once
    delays    queue delays            -> windows of carrier and hour -> address flights.delays
    windows   queue windows of that   -> Parquet

`python -m examples.flights.streams SETTINGS`, settings in JSON (class Settings). On stdout one line `progress {…}` a
batch; a line on stdin, or its end, stops the program. Killed at any moment it goes on from its checkpoints.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import atalanta.spark
from examples.flights import results
from examples.flights.airports import (
    ARCHIVE_QUEUE,
    DELAYS_ADDRESS,
    DELAYS_QUEUE,
    FLIGHTS_ADDRESS,
    SERVERS,
    SPARK_LOGIN,
    WINDOWS_QUEUE,
)
from examples.flights.data import END, KEY, NUMBERS, WORDS

ARCHIVE = "archive"
DELAYS = "delays"
WINDOWS = "windows"
CHECKPOINTS = "checkpoints"
PROGRESS = "progress "
LOOK_S = 0.25
TRIGGER = "250 milliseconds"
SPARK_SETTINGS = {
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    # Readers see times in UTC, not times of no zone (the default is INT96).
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A short life on two cores: the second compiler and a parallel collector cost more than they give.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}

FLIGHT = StructType(
    [
        StructField(KEY, StringType()),
        *(StructField(name, IntegerType()) for name in NUMBERS),
        *(StructField(name, StringType()) for name in WORDS),
    ]
)
WINDOW = StructType(
    [
        StructField("carrier", StringType()),
        StructField("hour", TimestampType()),
        *(StructField(name, LongType()) for name in ("flights", "departed", "cancelled", "delay_sum")),
        StructField("delay_max", IntegerType()),
    ]
)


@dataclass(frozen=True)
class Settings:
    """What the program is told: the folder of the run, Spark's master, limits in messages, the delay in seconds."""

    out: str
    master: str
    batch_rows: int
    watermark_delay_s: int

    def as_json(self) -> str:
        return json.dumps(asdict(self))


def source(
    spark: SparkSession, settings: Settings, queue: str, group: str, schema: StructType
) -> DataFrame:
    """The messages of the distributed queue `queue` (address::queue), from all nodes."""
    reader = spark.readStream.format("atalanta").schema(schema)
    return reader.options(
        servers=SERVERS,
        queue=queue,
        group=group,
        user=SPARK_LOGIN.user,
        password=SPARK_LOGIN.password,
        maxOffsetsPerTrigger=settings.batch_rows,
    ).load()


def columns(**types: Any) -> StructType:
    """A schema: columns of the source, and typed properties under their own names."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


def to_parquet(settings: Settings, frame: DataFrame, name: str, folder: str, *by: str) -> StreamingQuery:
    """Appends to Parquet files, each row exactly once."""
    out = Path(settings.out)
    writer = frame.writeStream.format("parquet").queryName(name).outputMode("append")
    return writer.partitionBy(*by).trigger(processingTime=TRIGGER).start(
        str(out / folder), checkpointLocation=str(out / CHECKPOINTS / name)
    )  # fmt: skip


def archive_query(spark: SparkSession, settings: Settings) -> StreamingQuery:
    """Every flight with all its columns, and where it lay in the cluster."""
    schema = columns(
        text=StringType(), timestamp=TimestampType(), node=StringType(), sequence=LongType(),
        cancelled=BooleanType(), **{END: BooleanType()},
    )  # fmt: skip
    messages = source(spark, settings, f"{FLIGHTS_ADDRESS}::{ARCHIVE_QUEUE}", ARCHIVE, schema)
    flight = f.from_json("text", FLIGHT).alias("flight")
    flights = messages.where(f.col(END).isNull()).select(
        flight, "cancelled", f.col("timestamp").alias("scheduled"), "node", "sequence"
    )
    flat = flights.select("flight.*", "cancelled", "scheduled", "node", "sequence")
    return to_parquet(settings, flat, ARCHIVE, results.ARCHIVE, "month")


def delays_query(spark: SparkSession, settings: Settings) -> StreamingQuery:
    """Delay figures by carrier and hour of scheduled departure, sent to the cluster when an hour is over."""
    schema = columns(
        timestamp=TimestampType(), carrier=StringType(), dep_delay=IntegerType(), cancelled=BooleanType()
    )
    flights = source(spark, settings, f"{FLIGHTS_ADDRESS}::{DELAYS_QUEUE}", DELAYS, schema)
    windows = (
        flights.withWatermark("timestamp", f"{settings.watermark_delay_s} seconds")
        .groupBy(f.window("timestamp", "1 hour").alias("window"), "carrier")
        .agg(
            f.count(f.lit(1)).alias("flights"),
            f.count("dep_delay").alias("departed"),
            f.sum(f.col("cancelled").cast("int")).alias("cancelled"),
            f.coalesce(f.sum("dep_delay"), f.lit(0)).alias("delay_sum"),
            f.max("dep_delay").alias("delay_max"),
        )
        .withColumn("hour", f.col("window.start"))
    )
    figures: list[Column] = [f.col(field.name) for field in WINDOW.fields]
    answers = windows.select(
        f.to_json(f.struct(*figures)).alias("text"), f.col("hour").alias("timestamp"), "carrier"
    )
    writer = answers.writeStream.format("atalanta").queryName(DELAYS).outputMode("append")
    return writer.trigger(processingTime=TRIGGER).options(
        servers=SERVERS,
        address=DELAYS_ADDRESS,
        routing="multicast",
        propertyColumns="carrier",
        user=SPARK_LOGIN.user,
        password=SPARK_LOGIN.password,
        checkpointLocation=str(Path(settings.out) / CHECKPOINTS / DELAYS),
    ).start()  # fmt: skip


def windows_query(spark: SparkSession, settings: Settings) -> StreamingQuery:
    """What the second query sent, from the cluster into Parquet."""
    schema = columns(text=StringType(), node=StringType(), sequence=LongType())
    messages = source(spark, settings, f"{DELAYS_ADDRESS}::{WINDOWS_QUEUE}", WINDOWS, schema)
    figures = messages.select(f.from_json("text", WINDOW).alias("window"), "node", "sequence")
    flat = figures.select("window.*", "node", "sequence")
    return to_parquet(settings, flat, WINDOWS, results.DELAYS)


class Reporter:
    """Prints one line for each batch of each query."""

    def __init__(self, queries: list[StreamingQuery]) -> None:
        self.queries = queries
        self.seen: dict[str, int] = {}

    def look(self) -> None:
        """Prints what is new."""
        for query in self.queries:
            for progress in query.recentProgress:
                self.show(query.name or "", progress)

    def check(self) -> None:
        """Raises the exception of a query that has ended."""
        for query in self.queries:
            if not query.isActive:
                failure = query.exception()
                raise failure if failure is not None else RuntimeError(f"query {query.name} ended")

    def show(self, name: str, progress: Any) -> None:
        """One batch; Spark repeats the last batch's number while a query is idle."""
        batch = int(progress["batchId"])
        if batch <= self.seen.get(name, -1) or "addBatch" not in progress["durationMs"]:
            return
        self.seen[name] = batch
        states = progress["stateOperators"]
        line = {
            "query": name,
            "batch": batch,
            "rows": int(progress["numInputRows"]),
            "watermark": (progress["eventTime"] or {}).get("watermark"),
            "dropped": sum(int(state["numRowsDroppedByWatermark"]) for state in states),
            "state_rows": sum(int(state["numRowsTotal"]) for state in states),
            "ms": int(progress["durationMs"]["triggerExecution"]),
        }
        print(PROGRESS + json.dumps(line), flush=True)


def wait_for_word(stop: threading.Event) -> None:
    """Sets `stop` at a line on stdin or at its end; that comes also when the demo itself was killed."""
    sys.stdin.readline()
    stop.set()


def main() -> None:
    """Runs the queries until told to stop. A failed query ends the program with its exception."""
    settings = Settings(**json.loads(sys.argv[1]))
    stop = threading.Event()
    threading.Thread(target=wait_for_word, args=(stop,), daemon=True).start()
    spark = atalanta.spark.session(settings.master, "flights", SPARK_SETTINGS)
    queries = [make(spark, settings) for make in (archive_query, delays_query, windows_query)]
    reporter = Reporter(queries)
    print("started", flush=True)
    while not stop.wait(LOOK_S):
        reporter.look()
        reporter.check()
    for query in queries:
        query.stop()
    reporter.look()
    spark.stop()


if __name__ == "__main__":
    main()
