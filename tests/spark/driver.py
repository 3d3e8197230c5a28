"""A Spark driver in a process of its own, to be killed: the archive queue into Parquet, or into the address `out`.

    python -m tests.spark.driver SERVERS FOLDER [PARTITIONS]

reads what is there, in small batches, and ends (Trigger.AvailableNow). With PARTITIONS it writes to `out`, in so many
partitions.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from atalanta.spark import session
from tests.spark.nodes import PASSWORD, QUEUE, USER

BATCH_MESSAGES = 500


def run(spark: SparkSession, servers: str, folder: str, partitions: str = "") -> None:
    """Reads what is there, from where an earlier run was killed."""
    login = {"servers": servers, "user": USER, "password": PASSWORD, "nodeTimeout": "60s"}
    reader = spark.readStream.format("atalanta").options(
        **login, queue=QUEUE, maxOffsetsPerTrigger=BATCH_MESSAGES, minPartitions=partitions or "3"
    )
    frame = reader.load().select("node", "sequence", "text")
    if partitions:
        rows = frame.select("text").repartition(int(partitions))
        writer = rows.writeStream.format("atalanta").options(**login, address="out")
    else:
        writer = frame.writeStream.format("parquet").option("path", f"{folder}/out")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()


def main(*arguments: str) -> None:
    spark = session(name="driver")
    run(spark, *arguments)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
