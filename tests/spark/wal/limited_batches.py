"""Messages of many sizes at a node, read by a write-ahead stream with maxBytesPerTrigger, without Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.streaming.datasource import ReadMaxBytes
from pyspark.sql.types import BinaryType, StructType

from atalanta.client import Message, blocking
from atalanta.spark.options import read_options
from atalanta.spark.wal.wal_node import open_node
from atalanta.spark.wal.wal_stream_reader import WalStreamReader

LIMIT = 1_000_000
SIZES = (400_000, 400_000, 400_000, 3_000_000, 100, 200)
# Number and size of the messages of each batch: a batch of one message may exceed the limit.
EXPECTED = [[(0, 400_000), (1, 400_000)], [(2, 400_000)], [(3, 3_000_000)], [(4, 100), (5, 200)]]


def limited_batches(server: str, user: str, password: str, queue: str, folder: Path) -> list[list[tuple[int, int]]]:
    """Sends the messages, and returns number and size of those of each batch."""
    with (
        blocking.connect(f"tcp://{server}", user=user, password=password) as connection,
        connection.producer(queue, routing="anycast") as producer,
    ):
        for number, size in enumerate(SIZES):
            producer.send(Message(bytes([number]) * size))
    given = {"servers": server, "user": user, "password": password, "queue": queue}
    given |= {"walLocation": str(folder), "maxBytesPerTrigger": str(LIMIT)}
    reader = WalStreamReader(read_options(given), StructType().add("body", BinaryType()), open_node)
    batches = []
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, ReadMaxBytes(LIMIT))) != start:
        parts = reader.partitions(start, end)
        columns = [batch.column("body").to_pylist() for part in parts for batch in reader.read(part)]
        batches.append([(body[0], len(body)) for column in columns for body in column])
        start = end
    reader.stop()
    return batches
