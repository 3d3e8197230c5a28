"""A Spark driver in a process of its own, to be killed: a queue of a node without the log view into Parquet.

python -m tests.interop.spark_wal_driver SERVERS QUEUE FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from atalanta.spark import session
from tests.interop.harness.jms import PASSWORD, USER
from tests.spark.checkpoint import drop_unfinished_offsets

BATCH_MESSAGES = 300


def main(servers: str, queue: str, folder: str) -> None:
    """Reads a queue, or the queues of a pattern."""
    names = {"queuePattern" if "*" in queue else "queue": queue}
    spark = session(name="driver")
    reader = spark.readStream.format("atalanta").options(
        servers=servers, user=USER, password=PASSWORD, nodeTimeout="60s",
        maxOffsetsPerTrigger=BATCH_MESSAGES, walLocation=f"{folder}/wal", **names,
    )  # fmt: skip
    frame = reader.load().select("queue", "node", "sequence", "message_id", "text")
    writer = frame.writeStream.format("parquet").option("path", f"{folder}/out")
    checkpoint = Path(folder) / "checkpoint"
    drop_unfinished_offsets(checkpoint)
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    # Files that a killed task has left in the folder are no rows: Spark reads what its batches have committed.
    spark.read.parquet(f"{folder}/out").write.mode("overwrite").parquet(f"{folder}/rows")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
