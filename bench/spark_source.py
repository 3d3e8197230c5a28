"""Our Spark source beside Spark's own Kafka source: the same rows, the same Spark, the same two cores."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from bench.broker_xml import QUEUE_PREFIX, Plan
from bench.brokers import Broker
from bench.context import Context, Scenario
from bench.figures import Figure, Goal, shown
from bench.kafka_node import KAFKA_VERSION, KafkaNode
from bench.spark_process import BODY_BYTES, PARTS, Reading, SparkProcess

ROWS = 500_000
SMALL_ROWS = 3_000
TASKS = 2  # as many as cores: partitions of the topic, minPartitions of ours
TOPIC = "bench"
QUEUE = f"{QUEUE_PREFIX}0"
MEMORY = "1G"  # of ours, as Kafka's heap: the rows are in no page files
SETTLE_SECONDS = 1.5
SKIPPED_BATCHES = 2  # of a steady stream
COST_RATIO = 1.5  # rows a CPU-second of everything together, beside Kafka's
FILL: dict[str, object] = {
    "consumers": 0, "bytes": BODY_BYTES, "burst": 500, "window": 5_000, "durable": True,
    "numbered": True, "count": ROWS,
}  # fmt: skip
# The columns that are asked of our source.
ONE_COLUMN = "timestamp timestamp"
SCHEMA = f"body binary, queue string, node string, sequence bigint, {ONE_COLUMN}"
COLUMNS = ["body", "queue", "node", "sequence", "timestamp"]
# What is compared; the last is no peer, but the least that any Python source costs.
OURS = "ours"
KAFKA = "Kafka's"
SPARK = "Spark alone"
# The producer's batches: large ones, which are read at less cost.
LOAD = {"kafka.batch.size": "131072", "kafka.linger.ms": "20"}


@dataclass(frozen=True)
class Way:
    """A query that is measured. `limit`: rows in a batch; `repeated`: only a second run counts, which finds nothing."""

    words: str
    rows: int = ROWS
    do: str = "stream"
    limit: int | None = None
    one_column: bool = False
    repeated: bool = False

    @property
    def steady(self) -> bool:
        """Returns true if the first batches do not count: the start of a stream has rows of its own."""
        return self.limit is not None


# A batch read leaves its rows in our queue: the first stream takes them.
WAYS = (
    Way("batch read beside Kafka's", do="batch"),
    Way("batch read of one column", do="batch", one_column=True),
    Way("stream beside Kafka's"),
    Way("stream in batches of 100,000, steady", limit=100_000),
    Way("stream in batches of 10,000, steady", rows=300_000, limit=10_000),
    Way("stream in batches of 100, steady", rows=SMALL_ROWS, limit=100),
    Way("stream that finds nothing new", rows=SMALL_ROWS, repeated=True),
)
Reader = Callable[[Way], Reading]


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
            readers = {
                KAFKA: _kafka_reader(spark, kafka),
                OURS: _our_reader(context, spark, broker),
                SPARK: _memory_reader(spark, broker),
            }
            return _measured(context, name, readers)
        finally:
            spark.close()
            kafka.close()
            broker.close()


def _measured(context: Context, name: str, readers: dict[str, Reader]) -> list[Figure]:
    """In turns, each after queries of its kind that do not count."""
    figures = []
    for way in WAYS:
        for reader in readers.values():
            begin = time.monotonic()
            reader(way)
            while time.monotonic() - begin < context.settings.jvm_warm_up_seconds:
                reader(way)
        found: dict[str, list[Reading]] = {kind: [] for kind in readers}
        for run in range(context.settings.repeats):
            turns = list(readers.items())
            for kind, reader in turns if run % 2 == 0 else reversed(turns):
                found[kind].append(reader(way))
        figures += _figures(name, way, found)
    figures[0].note = (
        f"the column Artemis has Spark's own source, reading Kafka {KAFKA_VERSION}; {ROWS:,} rows of 1 KiB from the "
        "start of a query to its end"
    )
    return figures


def _figures(name: str, way: Way, found: dict[str, list[Reading]]) -> list[Figure]:
    """Rows for a query of many, milliseconds for a query of few."""
    if way.rows <= SMALL_ROWS:
        what = "a batch" if way.limit else "in all"
        time = Figure(name, f"{way.words}, time {what}", "ms", Goal.RATIO, 1, lower_is_better=True)
        cost = Figure(name, f"{way.words}, CPU of all {what}", "ms", lower_is_better=True)
        for readings, values in ((found[OURS], "ours"), (found[KAFKA], "theirs")):
            setattr(time, values, [one.batch_ms for one in readings])
            setattr(cost, values, [one.batch_cpu_ms for one in readings])
        cost.note = f"{way.words}, by parts: {_parts(found, 1e3, 'ms a batch')}"
        return [time, cost]
    rate = Figure(name, f"{way.words}, rows a second", "", Goal.RATIO, 1)
    cost = Figure(
        name, f"{way.words}, CPU of all a row", "µs", Goal.RATIO, COST_RATIO, lower_is_better=True
    )
    broker = Figure(name, f"{way.words}, CPU of the broker a row", "µs", lower_is_better=True)
    for readings, values in ((found[OURS], "ours"), (found[KAFKA], "theirs")):
        setattr(rate, values, [one.rate for one in readings])
        setattr(cost, values, [one.cost_us for one in readings])
        setattr(broker, values, [one.cpu["broker"] / one.rows * 1e6 for one in readings])
    cost.note = f"{way.words}, by parts: {_parts(found, 1e6, 'µs a row')}"
    return [rate, cost, broker]


def _parts(found: dict[str, list[Reading]], scale: float, unit: str) -> str:
    """The medians of the CPU of each part, of a row or of a batch if it has no rows to speak of."""
    texts = []
    for name, readings in found.items():
        shares = [
            (part, median(one.cpu[part] / (one.rows if scale == 1e6 else one.batches) for one in readings))
            for part in PARTS
        ]
        whole = sum(share for _, share in shares)
        parts = ", ".join(f"{part} {shown(share * scale)}" for part, share in shares if share)
        texts.append(f"{name} {shown(whole * scale)}: {parts}")
    return f"{'; '.join(texts)} ({unit})"


def _request(way: Way, options: dict[str, str], broker: int) -> dict[str, object]:
    limit = {} if way.limit is None else {"maxOffsetsPerTrigger": str(way.limit)}
    return {
        "do": way.do,
        "options": {**options, **limit},
        "skipped_batches": SKIPPED_BATCHES if way.steady else 0,
        "repeated": way.repeated,
        "broker": broker,
    }


def _kafka_reader(spark: SparkProcess, kafka: KafkaNode) -> Reader:
    """The topic is loaded once; reading leaves it as it is."""
    servers = {"kafka.bootstrap.servers": f"127.0.0.1:{kafka.port}"}
    options = {**servers, **LOAD, "topic": TOPIC}
    spark.ask({"do": "load", "options": options, "rows": ROWS, "partitions": TASKS})

    def read(way: Way) -> Reading:
        # The topic has always all rows: a query of fewer begins near its end.
        begin = (ROWS - way.rows) // TASKS
        offsets = json.dumps({TOPIC: {str(number): begin for number in range(TASKS)}})
        columns = ["value", "topic", "partition", "offset", "timestamp"]
        request: dict[str, object] = {
            **_request(way, {**servers, "subscribe": TOPIC, "startingOffsets": offsets}, kafka.pid),
            "format": "kafka",
            "schema": "",
            "columns": ["timestamp"] if way.one_column else columns,
            "body": "" if way.one_column else "value",
        }
        # Two tasks wrote the topic, so that the rows at its end are not those of the highest numbers.
        return spark.read(request, way.rows, not way.one_column and way.rows == ROWS)

    return read


def _our_reader(context: Context, spark: SparkProcess, broker: Broker) -> Reader:
    """A stream acknowledges what it read: the queue is filled again before each, and left full for batch reads."""
    waiting = 0

    def read(way: Way) -> Reading:
        nonlocal waiting
        if waiting != way.rows:
            assert waiting == 0, "a batch read stands before a stream of as many rows"
            context.load(broker.port, {**FILL, "count": way.rows})
            time.sleep(SETTLE_SECONDS)
        servers = {"servers": f"127.0.0.1:{broker.port}", "user": "admin", "password": "admin"}
        options = {**servers, "queue": QUEUE, "minPartitions": str(TASKS)}
        request: dict[str, object] = {
            **_request(way, options, broker.pid),
            "format": "atalanta",
            "schema": ONE_COLUMN if way.one_column else SCHEMA,
            "columns": ["timestamp"] if way.one_column else COLUMNS,
            "body": "" if way.one_column else "body",
        }
        waiting = way.rows if way.do == "batch" else 0
        return spark.read(request, way.rows, not way.one_column)

    return read


def _memory_reader(spark: SparkProcess, broker: Broker) -> Reader:
    """Spark's own part: rows from the memory of its Python processes. The broker has nothing to do."""

    def read(way: Way) -> Reading:
        options = {"rows": str(way.rows), "tasks": str(TASKS), "bodyBytes": str(BODY_BYTES)}
        request: dict[str, object] = {
            **_request(way, options, broker.pid),
            "format": "rows",
            "schema": ONE_COLUMN if way.one_column else SCHEMA,
            "columns": ["timestamp"] if way.one_column else COLUMNS,
            "body": "" if way.one_column else "body",
        }
        return spark.read(request, way.rows, False)

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
