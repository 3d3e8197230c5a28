"""The Spark program: a queue of the broker into Parquet, until the queue is empty. It may be killed at any time."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from atalanta.spark import session


def main(servers: str, queue: str, folder: str) -> None:
    """Reads the queue. User and password are in the environment."""
    spark = session(name="foreign")
    login = {name: os.environ[f"FOREIGN_{name.upper()}"] for name in ("user", "password")}
    reader = spark.readStream.format("atalanta").options(
        servers=servers, queue=queue, maxOffsetsPerTrigger=500, walLocation=f"{folder}/wal", **login
    )
    rows = reader.load().select("node", "sequence", "text")
    writer = rows.writeStream.format("parquet").option("path", f"{folder}/rows")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    texts = spark.read.parquet(f"{folder}/rows").select("text")
    counts = {"rows": texts.count(), "different": texts.distinct().count()}
    Path(folder, "counts.json").write_text(json.dumps(counts))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
