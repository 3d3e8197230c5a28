"""Spark in a process of its own that answers a line with a line of JSON (bench/spark_process.py).

    {"do": "load", "options": {…}, "rows": N, "partitions": P}        N rows into a Kafka topic
    {"do": "stream" or "batch", "format": …, "options": {…}, "schema": …, "columns": […], "body": …,
     "broker": process id, "skipped_batches": N, "repeated": false}

`skipped_batches` of a stream do not count; of a `repeated` one only the second run does, which finds nothing.
A read goes to the sink `noop`; an observation beside it counts the rows and adds up a checksum of their bodies.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from atalanta import spark as atalanta_spark
from bench import rows_source
from bench.measure import cpu_seconds
from bench.spark_process import BODY_BYTES, NUMBER_BYTES, tree_cpu_seconds

CHECK = "check"


def main(jars: str, log: str) -> None:
    """`jars`: comma separated. What Spark says goes to the file `log`."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    with Path(log).open("ab") as target:
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
    spark = atalanta_spark.session("local[2]", "bench", {"spark.jars": jars})
    # Spark's Python processes do not find bench.
    cloudpickle.register_pickle_by_value(rows_source)  # type: ignore[no-untyped-call]
    spark.dataSource.register(rows_source.RowsSource)
    answers.write(json.dumps({"ready": 1}) + "\n")
    for line in sys.stdin:
        try:
            answer = answered(spark, json.loads(line))
        except Exception as problem:  # whatever it is, who asked shall know
            answer = {"error": f"{type(problem).__name__}: {problem}"[:2000]}
        answers.write(json.dumps(answer) + "\n")
    spark.stop()


def answered(spark: SparkSession, request: dict[str, Any]) -> dict[str, object]:
    if request["do"] == "load":
        load(spark, request)
        return {}
    with tempfile.TemporaryDirectory(prefix="bench-checkpoint-") as checkpoint:
        if request["do"] == "stream":
            return stream(spark, request, checkpoint)
        return batch(spark, request)


@dataclass(frozen=True)
class Mark:
    """Time and CPU so far."""

    seconds: float
    cpu: dict[str, float]  # by PARTS

    @staticmethod
    def now(broker: int) -> Mark:
        spark = tree_cpu_seconds(os.getpid())
        return Mark(time.monotonic(), {**spark, "broker": cpu_seconds([broker])})

    def until(self, end: Mark, rows: int, batches: int) -> dict[str, object]:
        """Returns the fields of a Reading."""
        return {
            "rows": rows,
            "batches": batches,
            "seconds": end.seconds - self.seconds,
            "cpu": {part: spent - self.cpu[part] for part, spent in end.cpu.items()},
        }


def load(spark: SparkSession, request: dict[str, Any]) -> None:
    """Bodies of zeros that end with the number of the row, over the partitions in turn."""
    zeros = sql.lit(bytearray(BODY_BYTES - NUMBER_BYTES))
    number = sql.unhex(sql.lpad(sql.hex("id"), 2 * NUMBER_BYTES, "0"))
    rows = spark.range(0, request["rows"], 1, 2).select(
        sql.concat(zeros, number).alias("value"),
        (sql.col("id") % request["partitions"]).cast("int").alias("partition"),
    )
    rows.write.format("kafka").options(**request["options"]).save()


def stream(spark: SparkSession, request: dict[str, Any], checkpoint: str) -> dict[str, object]:
    """Trigger.AvailableNow, with a checkpoint that is new, from start() to its end."""
    reader = spark.readStream.format(request["format"]).options(**request["options"])
    if request["schema"]:
        reader = reader.schema(request["schema"])
    frame = checked(reader.load(), request, CHECK)
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True)
    skipped = request["skipped_batches"]
    begin = Mark.now(request["broker"])
    query = writer.start()
    while skipped and query.isActive:
        progress = query.lastProgress
        if progress is not None and progress["batchId"] >= skipped - 1:
            skipped = progress["batchId"] + 1
            begin = Mark.now(request["broker"])
            break
        time.sleep(0.01)
    query.awaitTermination()
    end = Mark.now(request["broker"])
    rows = total = counted = 0
    for progress in query.recentProgress:
        observed = progress["observedMetrics"].get(CHECK)
        if observed is not None and observed["rows"]:
            rows += observed["rows"]
            total += observed["total"] or 0
            counted += observed["rows"] if progress["batchId"] >= skipped else 0
    batches = len([one for one in query.recentProgress if one["batchId"] >= skipped])
    if request["repeated"]:
        begin = Mark.now(request["broker"])
        writer.start().awaitTermination()
        end, counted, batches = Mark.now(request["broker"]), 0, 1
    return {"rows": rows, "total": total, "counted": begin.until(end, counted, batches)}


def batch(spark: SparkSession, request: dict[str, Any]) -> dict[str, object]:
    begin = Mark.now(request["broker"])
    reader = spark.read.format(request["format"]).options(**request["options"])
    if request["schema"]:
        reader = reader.schema(request["schema"])
    observation = Observation(CHECK)
    checked(reader.load(), request, observation).write.format("noop").mode("overwrite").save()
    found = observation.get
    counted = begin.until(Mark.now(request["broker"]), found["rows"], 1)
    return {"rows": found["rows"], "total": found["total"], "counted": counted}


def checked(frame: DataFrame, request: dict[str, Any], check: Observation | str) -> DataFrame:
    """The frame with an observation; without a body the rows that have the (one) column are counted."""
    rows = sql.count(request["columns"][0]).alias("rows")
    body = sql.crc32(request["body"]) if request["body"] else sql.lit(0)
    total = sql.sum(body).alias("total")
    return frame.select(*request["columns"]).observe(check, rows, total)


if __name__ == "__main__":
    main(*sys.argv[1:])
