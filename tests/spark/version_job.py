"""A job for any version of Spark, classic or Connect, which finds the source without `register`.

    python -m tests.spark.version_job classic|connect SERVERS FOLDER [batch|stream|sink|table|wal|queues …]

On stdout: a line of JSON for each step that ends as it should. The queue `flights::archive` has 30 messages at the
start.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from atalanta.client import Message, blocking
from atalanta.spark.environment.session import DEFAULTS, prepare_environment
from tests.spark.nodes import PASSWORD, QUEUE, USER

MESSAGES = 30


def started(mode: str, folder: str) -> SparkSession:
    prepare_environment("local[2]")
    builder = SparkSession.builder.appName("versions")
    builder = builder.remote("local[2]") if mode == "connect" else builder.master("local[2]")
    for key, value in DEFAULTS.items():
        builder = builder.config(key, value)
    return builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()


class Job:
    """The steps, on one cluster."""

    def __init__(self, mode: str, servers: str, folder: str) -> None:
        self.servers = servers
        self.folder = folder
        self.login = {"servers": servers, "user": USER, "password": PASSWORD}
        self.spark = started(mode, folder)

    def done(self, step: str, **more: object) -> None:
        print(json.dumps({"version": pyspark.__version__, "step": step} | more), flush=True)

    def publish(self, texts: list[str], address: str = "flights", routing: str = "multicast") -> None:
        server = self.servers.split(",")[0]
        with blocking.connect(f"tcp://{server}", user=USER, password=PASSWORD) as connection:
            producer = connection.producer(address, routing=routing)
            for text in texts:
                producer.send_soon(Message(text=text))
            producer.drain()

    def batch(self) -> None:
        reader = self.spark.read.format("atalanta").options(**self.login, queue=QUEUE)
        assert reader.load().count() == MESSAGES
        self.done("batch read")
        rows = self.spark.createDataFrame([("sink-1",), ("sink-2",)], "value string")
        writer = rows.write.format("atalanta").options(**self.login, address="out")
        writer.mode("append").save()
        assert self.texts("out") == ["sink-1", "sink-2"]
        self.done("batch write")

    def texts(self, queue: str) -> list[str]:
        reader = self.spark.read.format("atalanta").options(**self.login, queue=queue)
        return sorted(row.text for row in reader.load().select("text").collect())

    def stream(self) -> None:
        """The queue into Parquet: in steps of 10, then after a restart with more messages."""
        self.run("processing", "maxOffsetsPerTrigger", 10, available_now=False)
        assert len(self.archived()) == MESSAGES
        batches = len([p for p in Path(f"{self.folder}/processing/offsets").iterdir()
                       if p.name.isdigit()])  # fmt: skip
        assert batches >= 3, batches
        self.done("stream in limited batches", batches=batches)
        self.publish([f"more-{number}" for number in range(25)])
        self.run("processing", "maxOffsetsPerTrigger", 10, available_now=True)
        rest = len(self.archived()) - MESSAGES
        while len(self.archived()) < MESSAGES + 25:
            before = len(self.archived())
            self.run("processing", "maxOffsetsPerTrigger", 10, available_now=True)
            assert len(self.archived()) > before
        found = self.archived()
        assert len(set(found)) == len(found) == MESSAGES + 25
        self.done("available now, limited", first_run=rest, left=len(self.texts(QUEUE)))
        self.publish([f"last-{number}" for number in range(25)])
        self.run("processing", "nodeTimeout", "60s", available_now=True)
        found = self.archived()
        assert len(set(found)) == len(found) == MESSAGES + 50
        self.run("processing", "nodeTimeout", "60s", available_now=True)
        assert sorted(self.archived()) == sorted(found)
        self.done("available now", left=len(self.texts(QUEUE)))

    def archived(self) -> list[str]:
        return [row.text for row in self.spark.read.parquet(f"{self.folder}/out").collect()]

    def run(self, name: str, option: str, value: object, available_now: bool) -> None:
        reader = self.spark.readStream.format("atalanta").options(**self.login, queue=QUEUE)
        frame = reader.option(option, str(value)).load().select("node", "sequence", "text")
        writer = frame.writeStream.option("checkpointLocation", f"{self.folder}/{name}")
        if available_now:
            query = writer.trigger(availableNow=True).start(f"{self.folder}/out")
            assert query.awaitTermination(300)
            return
        query = writer.trigger(processingTime="0 seconds").start(f"{self.folder}/out")
        query.processAllAvailable()
        query.stop()

    def sink(self) -> None:
        texts = self.spark.readStream.schema("text string").parquet(f"{self.folder}/out")
        writer = texts.selectExpr("text as value").writeStream.format("atalanta")
        writer = writer.options(**self.login, address="out", routing="anycast")
        writer = writer.option("checkpointLocation", f"{self.folder}/sink")
        assert writer.trigger(availableNow=True).start().awaitTermination(300)
        sent = [text for text in self.texts("out") if not text.startswith("sink-")]
        assert sent == sorted(self.archived())
        self.done("stream write")

    def table(self) -> None:
        """SELECT of a temporary view over a queue, and of a table whose statements name the options."""
        words = ", ".join(f"'{name}' '{text}'" for name, text in self.login.items())
        self.spark.sql(
            f"CREATE TEMPORARY VIEW queue_out USING atalanta OPTIONS ({words}, queue 'out')"
        )
        found = self.spark.sql("SELECT text FROM queue_out").collect()
        assert sorted(row.text for row in found) == self.texts("out")
        self.done("select from a view")
        self.spark.sql("CREATE TABLE messages (text STRING) USING atalanta")
        options = ", ".join(f"{name} = '{text}'" for name, text in self.login.items())
        self.spark.sql(f"INSERT INTO messages WITH ({options}, address = 'out') VALUES ('inserted')")
        found = self.spark.sql(f"SELECT text FROM messages WITH ({options}, queue = 'out')").collect()
        assert sorted(row.text for row in found) == self.texts("out")
        assert "inserted" in self.texts("out")
        self.done("select from a table")


    def wal(self) -> None:
        """The queue `out` as that of a node without the log view, in two runs."""
        expected = self.texts("out")
        given = {"queue": "out", "sourceMode": "wal", "walLocation": f"{self.folder}/wal-files"}
        assert self.drained("wal", given) == expected
        self.publish(["wal-1", "wal-2"], "out", "anycast")
        assert self.drained("wal", given) == sorted([*expected, "wal-1", "wal-2"])
        assert self.texts("out") == []
        self.done("stream of nodes without the log view", rows=len(expected) + 2)

    def queues(self) -> None:
        """Both queues in one stream, in two runs."""
        self.publish(["eu-1", "eu-2"])
        self.publish(["us-1", "us-2"], "out", "anycast")
        expected = [*self.texts(QUEUE), *self.texts("out")]
        given = {"queue": f"{QUEUE},out"}
        assert self.drained("queues", given) == sorted(expected)
        self.publish(["us-3"], "out", "anycast")
        assert self.drained("queues", given) == sorted([*expected, "us-3"])
        self.done("stream of several queues", left=len(self.texts(QUEUE)) + len(self.texts("out")))

    def drained(self, name: str, given: dict[str, str]) -> list[str]:
        """Reads what is there into a table. Returns the texts of all runs so far."""
        frame = self.spark.readStream.format("atalanta").options(**self.login, **given).load()
        writer = frame.select("text").writeStream.option("checkpointLocation", f"{self.folder}/{name}")
        query = writer.trigger(availableNow=True).start(f"{self.folder}/{name}-rows")
        assert query.awaitTermination(300)
        rows = self.spark.read.schema("text string").parquet(f"{self.folder}/{name}-rows")
        return sorted(row.text for row in rows.collect())


def main(mode: str, servers: str, folder: str, *parts: str) -> None:
    job = Job(mode, servers, folder)
    for part in parts or ("batch", "stream", "sink", "table", "wal", "queues"):
        getattr(job, part)()
    job.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
