"""Our Spark source beside Spark's own Kafka source: the same rows, the same Spark, the same two cores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.broker_xml import QUEUE_PREFIX, Plan
from bench.brokers import Broker
from bench.context import Context, Scenario
from bench.figures import Figure, Goal
from bench.kafka_node import KAFKA_VERSION, KafkaNode
from bench.spark_process import BODY_BYTES, Reading, SparkProcess

ROWS = 500_000
ROWS_A_BATCH = 100_000  # of a stream
TASKS = 2  # as many as cores: partitions of the topic, minPartitions of ours
TOPIC = "bench"
QUEUE = f"{QUEUE_PREFIX}0"
MEMORY = "1G"  # of ours, as Kafka's heap: the rows are in no page files
SETTLE_SECONDS = 1.5
FILL: dict[str, object] = {
    "consumers": 0, "bytes": BODY_BYTES, "burst": 500, "window": 5_000, "durable": True,
    "numbered": True, "count": ROWS,
}  # fmt: skip
# The producer's batches: large ones, which are read at less cost.
LOAD = {"kafka.batch.size": "131072", "kafka.linger.ms": "20"}

# What is measured, in words; "batches" is a stream with a limit for each of its batches.
WAYS = {
    "stream": "stream beside Kafka's",
    "batches": f"stream in batches of {ROWS_A_BATCH:,}",
    "batch": "batch read beside Kafka's",
}

Reader = Callable[[str], Reading]


def scenarios() -> dict[str, Scenario]:
    return {"spark-source": spark_source}


def spark_source(context: Context, name: str) -> list[Figure]:
    context.brokers.close_shared()
    with two_cores():
        kafka = KafkaNode(TASKS)
        broker = context.brokers.new("atalanta", Plan(queues=1, memory=MEMORY))
        spark = SparkProcess()
        try:
            kafka.begin()
            broker.start()
            spark.begin()
            return _measured(
                context, name, _kafka_reader(spark, kafka), _our_reader(context, spark, broker)
            )
        finally:
            spark.close()
            kafka.close()
            broker.close()


def _measured(context: Context, name: str, kafka: Reader, ours: Reader) -> list[Figure]:
    """In turns, each after queries of its kind that do not count."""
    figures = []
    for how in WAYS:
        for reader in (kafka, ours):
            begin = time.monotonic()
            reader(how)
            while time.monotonic() - begin < context.settings.jvm_warm_up_seconds:
                reader(how)
        found: dict[str, list[Reading]] = {"kafka": [], "ours": []}
        for run in range(context.settings.repeats):
            turns = [("kafka", kafka), ("ours", ours)]
            for kind, reader in turns if run % 2 == 0 else reversed(turns):
                found[kind].append(reader(how))
        figures += _figures(name, how, found["ours"], found["kafka"])
    figures[0].note = (
        f"the column Artemis has Spark's own source, reading Kafka {KAFKA_VERSION}; {ROWS:,} rows of 1 KiB from the "
        "start of a query to its end"
    )
    return figures


def _figures(name: str, how: str, ours: list[Reading], kafka: list[Reading]) -> list[Figure]:
    words = WAYS[how]
    rate = Figure(name, f"{words}, rows a second", "", Goal.RATIO, 1)
    cost = Figure(name, f"{words}, CPU of all a row", "µs", lower_is_better=True)
    broker = Figure(name, f"{words}, CPU of the broker a row", "µs", lower_is_better=True)
    for readings, values in ((ours, "ours"), (kafka, "theirs")):
        setattr(rate, values, [one.rate for one in readings])
        setattr(cost, values, [one.cost_us for one in readings])
        setattr(broker, values, [one.broker_cpu / one.rows * 1e6 for one in readings])
    return [rate, cost, broker]


def _kafka_reader(spark: SparkProcess, kafka: KafkaNode) -> Reader:
    """The topic is loaded once; reading leaves it as it is."""
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{kafka.port}"}
    options = {**servers, **LOAD, "topic": TOPIC}
    spark.ask({"do": "load", "options": options, "rows": ROWS, "partitions": TASKS})

    def read(how: str) -> Reading:
        more = {"maxOffsetsPerTrigger": str(ROWS_A_BATCH)} if how == "batches" else {}
        request: dict[str, object] = {
            "do": "batch" if how == "batch" else "stream",
            "format": "kafka",
            "options": {**servers, "subscribe": TOPIC, "startingOffsets": "earliest", **more},
            "schema": "",
            "columns": ["value", "topic", "partition", "offset", "timestamp"],
            "body": "value",
        }
        return spark.read(request, ROWS, kafka.pid)

    return read


def _our_reader(context: Context, spark: SparkProcess, broker: Broker) -> Reader:
    """A stream acknowledges what it read: the queue is filled again before each, and left full for batch reads."""
    full = False

    def read(how: str) -> Reading:
        nonlocal full
        if not full:
            context.load(broker.port, FILL)
            time.sleep(SETTLE_SECONDS)
        more = {"maxOffsetsPerTrigger": str(ROWS_A_BATCH)} if how == "batches" else {}
        servers = {"servers": f"127.0.0.1:{broker.port}", "user": "admin", "password": "admin"}
        request: dict[str, object] = {
            "do": "batch" if how == "batch" else "stream",
            "format": "atalanta",
            "options": {**servers, "queue": QUEUE, "minPartitions": str(TASKS), **more},
            "schema": "body binary, queue string, node string, sequence bigint, timestamp timestamp",
            "columns": ["body", "queue", "node", "sequence", "timestamp"],
            "body": "body",
        }
        full = how == "batch"
        return spark.read(request, ROWS, broker.pid)

    return read


@contextmanager
def two_cores() -> Iterator[None]:
    """Whatever is started meanwhile stays on the same two cores, also on a machine with more."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
