"""Compaction of Delta and Iceberg tables by their own commands, in place: readers see every row once."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from atalanta.spark.pipeline.compaction import file_system
from atalanta.spark.pipeline.declaration import CompactionTable, Query


@dataclass(frozen=True)
class Rewritten:
    """The numbers of data files that a compaction has replaced and written."""

    before: int
    after: int


def compact_table(spark: SparkSession, query: Query, compaction: CompactionTable) -> Rewritten:
    """Rewrites the small files of a table's closed partitions. Raises PySparkException if the table refuses.

    Delta: OPTIMIZE. Iceberg: the procedure rewrite_data_files.
    """
    statement = optimize if query.format == "delta" else rewrite_data_files
    row = spark.sql(statement(spark, query, compaction.closed)).collect()[0]
    if query.format == "delta":
        return Rewritten(row.metrics.numFilesRemoved, row.metrics.numFilesAdded)
    return Rewritten(row.rewritten_data_files_count, row.added_data_files_count)


def optimize(spark: SparkSession, query: Query, closed: str) -> str:
    """Returns Delta's statement; `closed` may name partition columns only."""
    if query.table is not None:
        return f"OPTIMIZE {query.table} WHERE {closed}"
    files, path = file_system(spark, str(query.path))
    # Delta looks for a relative path in the catalog.
    return f"OPTIMIZE delta.`{files.makeQualified(path).toString()}` WHERE {closed}"


def rewrite_data_files(spark: SparkSession, query: Query, closed: str) -> str:
    """Returns Iceberg's call, in the catalog of the table. Two files in a partition are enough to rewrite them."""
    first, _, _ = str(query.table).partition(".")
    catalog = first if spark.conf.get(f"spark.sql.catalog.{first}", None) else "spark_catalog"
    arguments = f"table => {quoted(str(query.table))}, where => {quoted(closed)}"
    options = "options => map('min-input-files', '2')"
    return f"CALL {catalog}.system.rewrite_data_files({arguments}, {options})"


def quoted(text: str) -> str:
    """Returns a text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
