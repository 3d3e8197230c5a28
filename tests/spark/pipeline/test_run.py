"""Pipelines in Spark: what arrives, what Spark refuses before the start, and a query that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from atalanta.spark.pipeline.frames import Frames
from atalanta.spark.pipeline.problems import PipelineError
from atalanta.spark.pipeline.progress import DONE, FAILED
from tests.spark.fake_node import FakeCluster
from tests.spark.pipeline.pipelines import Running, pipeline_of

pytestmark = pytest.mark.spark

BRIDGE = """\
name = "bridge"
checkpoints = "${OUT}/checkpoints"

[[source]]
name = "orders"
schema = "text string, customer string"
options = { servers = "${HERE}", queue = "orders" }

[[table]]
name = "customers"
format = "csv"
path = "${OUT}/customers.csv"
options = { header = true }

[[step]]
name = "named"
sql = "SELECT o.text, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.customer"

[[query]]
name = "there"
from = "named"
format = "atalanta"
trigger = "available_now"
options = { servers = "${THERE}", address = "copies", propertyColumns = "city" }
"""

ARCHIVES = """\
name = "archives"
checkpoints = "${OUT}/checkpoints"
on_failure = "continue"

[[source]]
name = "one"
schema = "text string"
options = { servers = "${HERE}", queue = "one" }

[[source]]
name = "other"
schema = "text string"
options = { servers = "${HERE}", queue = "other" }

[[query]]
name = "first"
from = "one"
format = "parquet"
path = "${OUT}/one"
trigger = "available_now"

[[query]]
name = "second"
from = "other"
format = "parquet"
path = "${OUT}/other"
trigger = "available_now"
"""


@pytest.fixture
def target() -> Iterator[FakeCluster]:
    made = FakeCluster(1)
    yield made
    made.close()


def test_a_bridge_to_another_cluster_with_a_table(
    fake: SparkSession, cluster: FakeCluster, target: FakeCluster, tmp_path: Path
) -> None:
    (tmp_path / "customers.csv").write_text("customer,city\na,Rome\n")
    for node in cluster.nodes:
        node.queue("orders").add(f"{node.node_id}-1", customer="a")
        node.queue("orders").add(f"{node.node_id}-2", customer="b")
    pipeline = pipeline_of(tmp_path, BRIDGE, HERE=cluster.servers, THERE=target.servers)
    with Running(fake, pipeline) as running:
        running.to_the_end()
    assert not running.failures
    arrived = sorted((str(one.text), one.properties) for one in target.nodes[0].sent)
    assert [text for text, _ in arrived] == sorted(
        f"{node.node_id}-{at}" for node in cluster.nodes for at in (1, 2)
    )
    assert all("Rome" in str(properties) for text, properties in arrived if text.endswith("1"))
    state = running.run.states["there"]
    assert (state.state, state.total_rows, sum(state.lag.values())) == (DONE, 4, 0)
    assert set(state.lag) == {node.address for node in cluster.nodes}
    assert [one.rows for one in running.batches] == [4]


def test_a_query_that_fails_is_told_once_and_the_other_goes_on(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    for node in cluster.nodes:
        node.queue("other").add("row")
    with Running(fake, pipeline_of(tmp_path, ARCHIVES, HERE=cluster.servers)) as running:
        running.to_the_end()
        running.run.look()
    (failed,) = running.failures
    assert (failed.name, failed.state) == ("first", FAILED)
    assert failed.error == f"no node of {cluster.servers.replace(',', ', ')} has a queue one"
    assert failed.remedy.startswith("remove the cause and start the pipeline again")
    assert running.run.failed
    assert running.run.states["second"].state == DONE
    assert len(fake.read.parquet(str(tmp_path / "other")).collect()) == len(cluster.nodes)


def refused(spark: SparkSession, tmp_path: Path, text: str, cluster: FakeCluster) -> list[str]:
    pipeline = pipeline_of(tmp_path, text, HERE=cluster.servers, THERE=cluster.servers)
    with pytest.raises(PipelineError) as raised:
        Frames(spark, pipeline).build()
    return [
        line.removeprefix(f"{tmp_path}/pipeline.toml:") for line in str(raised.value).splitlines()
    ]


def test_sql_that_spark_refuses_has_its_line(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    (tmp_path / "customers.csv").write_text("customer,city\na,Rome\n")
    (found,) = refused(fake, tmp_path, BRIDGE.replace("FROM orders o", "FROM order_s o"), cluster)
    assert found.startswith("17: step 'named': [TABLE_OR_VIEW_NOT_FOUND]") and "`order_s`" in found
    (found,) = refused(fake, tmp_path, BRIDGE.replace("o.text, c.city", "o.txt"), cluster)
    assert found.startswith("17: step 'named': [UNRESOLVED_COLUMN")
    (found,) = refused(fake, tmp_path, BRIDGE.replace(', propertyColumns = "city"', ""), cluster)
    assert found.startswith("24: query 'there': unknown column city")


def test_an_aggregate_without_a_watermark_and_a_queue_of_two_queries(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    step = '[[step]]\nname = "counts"\nsql = "SELECT text, count(1) AS n FROM one GROUP BY text"\n'
    text = ARCHIVES.replace('from = "other"', 'from = "counts"') + step
    shared, mode = refused(fake, tmp_path, text, cluster)
    assert shared.startswith("5: source 'one' is read by the queries first, second (a queue feeds")
    assert mode.startswith("22: query 'second': [STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION]")


def test_a_format_without_its_package(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    text = ARCHIVES.replace(
        'format = "parquet"\npath = "${OUT}/one"', 'format = "delta"\npath = "${OUT}/one"'
    )
    (found,) = refused(fake, tmp_path, text, cluster)
    assert found.startswith("18: query 'first': Spark has no format delta (io.delta:delta-spark_4.2_2.13 in")
