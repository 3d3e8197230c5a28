"""The Avro recipe of docs/guide/spark.md, as a driver of its own: Spark takes a package only when it starts.

    python -m tests.spark.avro_job JAR SERVERS REGISTRY

prints id, shop and note of each row, in the order of the sequence. The fake node has the messages.
"""

from __future__ import annotations

import json
import sys
from urllib.request import urlopen

from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from atalanta.spark import session
from tests.spark.fake_node import FakeDataSource


def schema_of(registry: str, number: int) -> str:
    with urlopen(f"{registry}/schemas/ids/{number}") as answer:
        return str(json.load(answer)["schema"])


def main(jar: str, servers: str, registry: str) -> None:
    spark = session(name="avro", settings={"spark.jars": jar})
    spark.dataSource.register(FakeDataSource)
    rows = spark.read.format("atalanta").options(servers=servers, queue="orders").load()
    newest = schema_of(registry, 8)
    known = (7, 8)
    framed = rows.withColumn(
        "schema_id", F.expr("if(substring(body, 1, 1) = X'00', conv(hex(substring(body, 2, 4)), 16, 10), null)")
    ).withColumn("payload", F.expr("substring(body, 6)"))
    decoded = F.coalesce(
        *(
            F.when(
                F.col("schema_id") == number,
                from_avro(
                    F.col("payload"),
                    schema_of(registry, number),
                    {"mode": "PERMISSIVE", "avroSchema": newest},
                ),
            )
            for number in known
        )
    )
    orders = framed.withColumn("order", decoded).orderBy("sequence")
    for row in orders.select("order.*", (F.col("order").isNull()).alias("unknown")).collect():
        print("row", row.id, row.shop, row.note, row.unknown)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
