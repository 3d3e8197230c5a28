"""A stream that is received into a folder (sourceMode=wal) from our own node: the cost without the log view."""

from __future__ import annotations

import tempfile
import time

from bench.broker_xml import Plan
from bench.context import Context, Scenario
from bench.figures import Figure
from bench.spark_process import Reading, SparkProcess
from bench.spark_source import FILL, MEMORY, QUEUE, SETTLE_SECONDS, two_cores

ROWS = 50_000


def scenarios() -> dict[str, Scenario]:
    return {"spark-wal": spark_wal}


def spark_wal(context: Context, name: str) -> list[Figure]:
    context.brokers.close_shared()
    with two_cores():
        broker = context.brokers.new("atalanta", Plan(queues=1, memory=MEMORY))
        spark = SparkProcess()
        try:
            broker.start()
            spark.begin()
            readings = []
            for _ in range(1 + context.settings.repeats):
                context.load(broker.port, {**FILL, "count": ROWS})
                time.sleep(SETTLE_SECONDS)
                readings.append(_read(spark, broker.port, broker.pid))
            return _figures(name, readings[1:])  # the first one warms up
        finally:
            spark.close()
            broker.close()


def _read(spark: SparkProcess, port: int, broker: int) -> Reading:
    columns = ["body", "queue", "node", "sequence", "timestamp"]
    with tempfile.TemporaryDirectory(prefix="bench-wal-") as folder:
        request: dict[str, object] = {
            "do": "stream",
            "format": "atalanta",
            "options": {
                "servers": f"127.0.0.1:{port}", "user": "admin", "password": "admin", "queue": QUEUE,
                "sourceMode": "wal", "walLocation": folder,
            },
            "schema": "body binary, queue string, node string, sequence bigint, timestamp timestamp",
            "columns": columns,
            "body": "body",
            "skipped_batches": 0,
            "repeated": False,
            "broker": broker,
        }  # fmt: skip
        return spark.read(request, ROWS, True)


def _figures(name: str, readings: list[Reading]) -> list[Figure]:
    rate = Figure(name, "stream by a folder, rows a second", "", ours=[one.rate for one in readings])
    cost = Figure(
        name, "stream by a folder, CPU of all a row", "µs", ours=[one.cost_us for one in readings]
    )
    for part in readings[0].cpu:
        shares = sorted(one.cpu[part] / one.rows * 1e6 for one in readings)
        cost.note += f"{part} {shares[len(shares) // 2]:.1f} µs a row; "
    return [rate, cost]
