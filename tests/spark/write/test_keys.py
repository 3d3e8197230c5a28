"""Rows with a key: complete mode, and the newest row of each key in a last-value queue."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from atalanta.spark.errors import OptionError, SparkSourceError
from atalanta.spark.options import write_options
from atalanta.spark.write.rows import RowReader
from tests.spark.fake_node import FakeCluster
from tests.spark.read.streaming_rig import QUEUE, source

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SCHEMA = StructType().add("value", StringType()).add("carrier", StringType()).add("day", LongType())
KEY = "_AMQ_LVQ_NAME"


def keys(columns: str, *rows: tuple[str | None, int]) -> list[object]:
    given = {"servers": "a:1", "address": "out", "propertyColumns": "day", "keyColumns": columns}
    reader = RowReader(write_options(given), SCHEMA)
    batch = pa.RecordBatch.from_pydict({
        "value": ["x"] * len(rows), "carrier": [row[0] for row in rows], "day": [row[1] for row in rows],
    })  # fmt: skip
    return [message.properties[KEY] for message in reader.messages(batch)]


def test_a_key_is_the_text_of_one_column_or_an_array_of_several() -> None:
    assert keys("carrier", ("LH", 1), ('"', 2)) == ["LH", '"']
    assert keys("carrier,day", ("LH", 1), ("[1", 2)) == ['["LH",1]', '["[1",2]']
    with pytest.raises(SparkSourceError, match="column carrier of keyColumns is null in a row"):
        keys("carrier", (None, 1))
    with pytest.raises(OptionError, match="keyColumns: there is no column airline"):
        keys("airline")
    with pytest.raises(OptionError, match="cannot be double: cast it to string"):
        options = write_options({"servers": "a:1", "address": "out", "keyColumns": "delay"})
        RowReader(options, StructType().add("value", StringType()).add("delay", DoubleType()))


def counts(spark: SparkSession, cluster: FakeCluster) -> DataFrame:
    words = source(spark, cluster, maxOffsetsPerTrigger=2)
    return words.groupBy("text").count().selectExpr("text", "cast(count as string) value")


def run(frame: DataFrame, cluster: FakeCluster, folder: Path, **options: str) -> None:
    writer = frame.selectExpr("value", "text as word").writeStream.format("atalanta")
    given = {"servers": cluster.servers, "address": "out", "checkpointLocation": str(folder)}
    writer.options(**given, **options).outputMode("complete").trigger(availableNow=True).start().awaitTermination()


def test_complete_mode_writes_every_key_of_each_batch_to_one_node(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    for text in "abab":
        cluster.nodes[0].queue(QUEUE).add(text)
    frame = counts(fake, cluster)
    with pytest.raises(Exception, match="name its key in keyColumns"):
        run(frame, cluster, tmp_path / "refused", propertyColumns="word")
    run(frame, cluster, tmp_path / "kept", keyColumns="word", propertyColumns="word")
    assert cluster.nodes[1].sent == []
    newest = {one.properties[KEY]: one.text for one in cluster.nodes[0].sent}
    assert newest == {"a": "2", "b": "2"}
    assert len(cluster.nodes[0].sent) == 4, "both keys in both batches"


def test_update_mode_goes_through_foreach_batch(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    for text in "aaab":
        cluster.nodes[0].queue(QUEUE).add(text)
    servers = cluster.servers

    def write(rows: DataFrame, batch: int) -> None:
        writer = rows.write.format("atalanta").option("servers", servers).option("address", "out")
        writer.option("keyColumns", "word").mode("append").save()

    changed = counts(fake, cluster).selectExpr("text as word", "value")
    frame = changed.writeStream.outputMode("update").foreachBatch(write)
    frame.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    sent = [(one.properties[KEY], one.text) for one in cluster.nodes[0].sent]
    assert dict(sent)["a"] == "3" and dict(sent)["b"] == "1"
