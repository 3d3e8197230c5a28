"""Compaction: closed partitions as one file each, every row once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from atalanta.spark.pipeline.compaction import PartitionChanged, compact
from atalanta.spark.pipeline.declaration import CompactionTable, Query

pytestmark = pytest.mark.spark


def append(spark: SparkSession, folder: Path, *rows: tuple[str, int]) -> None:
    frame = spark.createDataFrame(list(rows), "day string, number int").coalesce(1)
    frame.write.mode("append").partitionBy("day").parquet(str(folder))


def rows(spark: SparkSession, folder: Path) -> list[tuple[str, int]]:
    found = spark.read.schema("number int, day string").parquet(str(folder)).collect()
    return sorted((row.day, row.number) for row in found)


def test_closed_partitions_are_compacted_once(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "archive", tmp_path / "compact"
    for number in range(2):
        append(spark, source, ("2026-01-01", number), ("2026-01-02 a/b", number), ("2026-01-03", 9))
    declared = {"name": "archive", "from": "x", "format": "parquet", "path": str(source)}
    query = Query.model_validate(declared | {"partition_by": ["day"]})
    compaction = CompactionTable(query="archive", path=str(target), closed="day < '2026-01-03'")
    before = rows(spark, source)
    # An earlier run was killed while it wrote.
    (target / "_unfinished-day=2026-01-01").mkdir(parents=True)
    found = compact(spark, query, compaction)
    assert [(one.rows, one.added) for one in found] == [(2, True), (2, True)]
    closed = [(day, n) for day in ("2026-01-01", "2026-01-02 a/b") for n in range(2)]
    assert rows(spark, target) == closed
    assert rows(spark, source) == before
    assert sorted(len(list(part.glob("*.parquet"))) for part in target.glob("day=*")) == [1, 1]
    again = compact(spark, query, compaction)
    assert [(one.rows, one.added) for one in again] == [(2, False), (2, False)]
    assert rows(spark, target) == closed
    append(spark, source, ("2026-01-01", 4))
    with pytest.raises(PartitionChanged, match="day=2026-01-01: rows came after the compaction"):
        compact(spark, query, compaction)
    assert rows(spark, target) == closed
