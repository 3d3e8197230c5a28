"""A Spark driver in a process of its own, to be killed: the archive queue into Parquet.

    python -m tests.spark.driver SERVERS FOLDER

reads what is there, in small batches, and ends (Trigger.AvailableNow).
"""

from __future__ import annotations

import sys

from atalanta.spark import session
from tests.spark.nodes import PASSWORD, QUEUE, USER

BATCH_MESSAGES = 500


def main(servers: str, folder: str) -> None:
    spark = session(name="driver")
    reader = spark.readStream.format("atalanta").options(
        servers=servers, queue=QUEUE, user=USER, password=PASSWORD, nodeTimeout="60s",
        maxOffsetsPerTrigger=BATCH_MESSAGES, minPartitions=3,
    )  # fmt: skip
    frame = reader.load().select("node", "sequence", "text")
    writer = frame.writeStream.format("parquet").option(
        "checkpointLocation", f"{folder}/checkpoint"
    )
    query = writer.trigger(availableNow=True).start(f"{folder}/out")
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
