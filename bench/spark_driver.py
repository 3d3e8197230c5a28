"""Spark in a process of its own that answers a line with a line of JSON (bench/spark_process.py).

    {"do": "load", "options": {…}, "rows": N, "partitions": P}        N rows into a Kafka topic
    {"do": "stream" or "batch", "format": …, "options": {…}, "schema": …, "columns": […], "body": …}

A read goes to the sink `noop`; an observation beside it counts the rows and adds up a checksum of their bodies.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from atalanta import spark as atalanta_spark
from bench.spark_process import BODY_BYTES, NUMBER_BYTES

CHECK = "check"


def main(jars: str, log: str) -> None:
    """`jars`: comma separated. What Spark says goes to the file `log`."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    with Path(log).open("ab") as target:
        os.dup2(target.fileno(), 1)
        os.dup2(target.fileno(), 2)
    spark = atalanta_spark.session("local[2]", "bench", {"spark.jars": jars})
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
        begin = time.monotonic_ns()
        found = (
            stream(spark, request, checkpoint)
            if request["do"] == "stream"
            else batch(spark, request)
        )
        return {**found, "seconds": (time.monotonic_ns() - begin) / 1e9}


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
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    rows = total = 0
    for progress in query.recentProgress:
        observed = progress["observedMetrics"].get(CHECK)
        if observed is not None and observed["rows"]:
            rows += observed["rows"]
            total += observed["total"]
    return {"rows": rows, "total": total, "batches": len(query.recentProgress)}


def batch(spark: SparkSession, request: dict[str, Any]) -> dict[str, object]:
    reader = spark.read.format(request["format"]).options(**request["options"])
    if request["schema"]:
        reader = reader.schema(request["schema"])
    observation = Observation(CHECK)
    checked(reader.load(), request, observation).write.format("noop").mode("overwrite").save()
    found = observation.get
    return {"rows": found["rows"], "total": found["total"]}


def checked(frame: DataFrame, request: dict[str, Any], check: Observation | str) -> DataFrame:
    rows = sql.count(sql.lit(1)).alias("rows")
    total = sql.sum(sql.crc32(request["body"])).alias("total")
    return frame.select(*request["columns"]).observe(check, rows, total)


if __name__ == "__main__":
    main(*sys.argv[1:])
