"""A job for spark-submit: the archive queue into Parquet and back to the address `out`.

    spark-submit --py-files atalanta-….whl submitted.py SERVERS FOLDER [FORMAT]

With FORMAT nothing is registered: Spark finds a source of that name. Every process Spark starts for it must have the
package from the archive, not from elsewhere. On stdout: the id of the application.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter
from pyspark.sql.types import StructType

import atalanta.spark

USER, PASSWORD, QUEUE = "spark", "a secret", "flights::archive"


def check_origin() -> None:
    file = atalanta.spark.__file__ or ""
    assert ".whl/" in file or ".zip/" in file, file


def rows(_: Iterable[int]) -> Iterable[int]:
    """In a task."""
    check_origin()
    return ()


class Checked(atalanta.spark.AtalantaDataSource):
    """Looks where the package comes from in the processes that plan and commit."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        check_origin()
        return super().streamReader(schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        check_origin()
        return super().streamWriter(schema, overwrite)


def main(servers: str, folder: str, found: str = "") -> None:
    spark = SparkSession.builder.getOrCreate()
    print(spark.sparkContext.applicationId, flush=True)
    if not found:
        atalanta.spark.register(spark)
        spark.dataSource.register(Checked)
    name = found or Checked.name()
    check_origin()
    spark.sparkContext.parallelize([0], 1).mapPartitions(rows).count()
    login = {"servers": servers, "user": USER, "password": PASSWORD}
    frame = spark.readStream.format(name).options(**login, queue=QUEUE).load()
    parquet = frame.select("text").writeStream.format("parquet")
    parquet = parquet.option("checkpointLocation", f"{folder}/archived")
    parquet.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
    texts = spark.readStream.schema("text string").parquet(f"{folder}/out")
    back = texts.writeStream.format(name).options(**login, address="out", routing="anycast")
    back = back.option("checkpointLocation", f"{folder}/sent")
    back.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
