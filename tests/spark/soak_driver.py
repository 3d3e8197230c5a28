"""The Spark driver of the soak, in a process of its own: a queue, a shuffle, the address `out`.

    python -m tests.spark.soak_driver SETTINGS

reads what is there, in small batches, and ends (Trigger.AvailableNow). SETTINGS is a JSON text: `servers`, `user`,
`password`, `queue`, `folder`, `cores`, `partitions` (0: of Spark's choice) and `read` (further options of the source).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from atalanta.spark import session
from tests.spark.checkpoint import drop_unfinished_offsets

BATCH_MESSAGES = 500


def main(text: str) -> None:
    given: dict[str, Any] = json.loads(text)
    cores, partitions = int(given["cores"]), int(given["partitions"])
    spark = session(f"local[{cores}]", "soak", {"spark.sql.shuffle.partitions": str(cores + 1)})
    login = {name: given[name] for name in ("servers", "user", "password")} | {"nodeTimeout": "90s"}
    reader = spark.readStream.format("atalanta").options(
        **login, **given["read"], queue=given["queue"], maxOffsetsPerTrigger=BATCH_MESSAGES,
        minPartitions=partitions or 1,
    )  # fmt: skip
    rows = reader.load().select("text")
    rows = rows.repartition(partitions) if partitions else rows.repartition("text")
    writer = rows.writeStream.format("atalanta").options(**login, address="out", routing="anycast")
    checkpoint = Path(given["folder"]) / "checkpoint"
    drop_unfinished_offsets(checkpoint)
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
