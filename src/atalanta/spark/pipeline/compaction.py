"""Compaction: each closed partition of a Parquet query as one file of a second table.

The table of the query stays as it is, so its readers see every row once. A partition of the second table comes with
one rename, when its rows have been counted: its readers see all rows of a partition, or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from py4j.java_gateway import java_import
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from atalanta.spark.errors import SparkSourceError
from atalanta.spark.pipeline.declaration import CompactionTable, Query

FOLDER = "_folder"
UNFINISHED = "_unfinished-"


class PartitionChanged(SparkSourceError):
    """A closed partition that has got rows after its compaction."""


@dataclass(frozen=True)
class Partition:
    """A partition of the second table; `folder` is column=value."""

    folder: str
    rows: int
    added: bool


def compact(spark: SparkSession, query: Query, compaction: CompactionTable) -> list[Partition]:
    """Writes the closed partitions that the second table does not have.

    Raises PartitionChanged if a partition has got rows since, SparkSourceError if the counts of a new one differ.
    """
    place = str(compaction.path).rstrip("/")
    frame = spark.read.parquet(str(query.path))
    folder = f.regexp_extract("_metadata.file_path", "/([^/]+)/[^/]+$", 1)
    closed = frame.where(compaction.closed).withColumn(FOLDER, folder)
    counts = {row[0]: int(row[1]) for row in closed.groupBy(FOLDER).count().collect()}
    found, changed = [], []
    for name in sorted(counts):
        # Spark names a file by its URI.
        target = f"{place}/{unquote(name)}"
        rows = counts[name]
        if not exists(spark, target):
            part = closed.where(f.col(FOLDER) == name).drop(FOLDER, *query.partition_by)
            write(spark, part, place, unquote(name), rows)
            found.append(Partition(unquote(name), rows, True))
        elif rows_of(spark, target) == rows:
            found.append(Partition(unquote(name), rows, False))
        else:
            changed.append(target)
    if changed:
        raise PartitionChanged(
            f"query {query.name}: {', '.join(changed)}: rows came after the compaction; delete the folders and compact "
            "again, and let 'closed' wait longer"
        )
    return found


def write(spark: SparkSession, part: DataFrame, path: str, name: str, rows: int) -> None:
    """Writes one partition beside its place, counts it, and renames it. Readers pass over names that begin with _."""
    unfinished = f"{path}/{UNFINISHED}{name}"
    part.coalesce(1).write.mode("overwrite").parquet(unfinished)
    written = rows_of(spark, unfinished)
    if written != rows:
        raise SparkSourceError(
            f"{name}: {written} rows written, {rows} read: is it closed already?"
        )
    files, source = file_system(spark, unfinished)
    _, target = file_system(spark, f"{path}/{name}")
    if files.exists(target) or not files.rename(source, target):
        raise SparkSourceError(f"{name}: not renamed; does another compaction run?")


def rows_of(spark: SparkSession, folder: str) -> int:
    return spark.read.parquet(folder).count()


def exists(spark: SparkSession, folder: str) -> bool:
    files, path = file_system(spark, folder)
    return bool(files.exists(path))


def file_system(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    """Returns Hadoop's file system of a folder, and its path."""
    jvm: Any = spark._jvm
    java_import(jvm, "org.apache.hadoop.fs.Path")
    path = jvm.Path(folder)
    java: Any = spark._jsparkSession
    return path.getFileSystem(java.sessionState().newHadoopConf()), path
