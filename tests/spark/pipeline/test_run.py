"""Pipelines in Spark: what arrives, what Spark refuses before the start, and a query that fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession

from atalanta.cli.pipeline import run
from atalanta.spark.pipeline.check import examine
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


def test_a_query_whose_folder_cannot_be_made_is_told_and_the_other_goes_on(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    for node in cluster.nodes:
        node.queue("one")
        node.queue("other").add("row")
    text = ARCHIVES.replace('path = "${OUT}/one"', 'path = "${OUT}/one"\ncheckpoint = "${OUT}/a-file/first"')
    (tmp_path / "a-file").write_text("no folder")
    with Running(fake, pipeline_of(tmp_path, text, HERE=cluster.servers)) as running:
        running.to_the_end()
    (failed,) = running.failures
    assert failed.name == "first"
    assert failed.error.endswith(f"Parent path is not a directory: file:{tmp_path}/a-file")
    assert running.run.states["second"].state == DONE


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


def test_check_tells_keys_options_files_and_sql_in_one_run(
    fake: SparkSession,
    cluster: FakeCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line for each problem, and none for what follows from another one."""
    monkeypatch.setattr(run, "open_session", lambda declaration: fake)
    monkeypatch.setattr(run, "end_session", lambda spark: None)
    wrong = (
        BRIDGE.replace('trigger = "available_now"', 'triger = "available_now"')
        .replace('queue = "orders"', 'quue = "orders", user = "${NOBODY}"')
        .replace("FROM orders o LEFT JOIN", "FROM orders o JOIN")
    )
    steps = (
        '[[step]]\nname = "cities"\nsql = "SELECT city FROM named"\n'
        '[[step]]\nname = "wrong"\nsql = "SELECT txt FROM orders"\n'
        '[[step]]\nname = "after"\nsql = "SELECT txt FROM wrong"\n'
    )
    path = tmp_path / "pipeline.toml"
    path.write_text(wrong + steps)
    for name, value in {"OUT": tmp_path, "HERE": cluster.servers, "THERE": cluster.servers}.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(typer.Exit) as ended:
        run.check_pipeline(path)
    assert ended.value.exit_code == 1
    said = capsys.readouterr()
    # PySpark's own log of refused statements is off in the session that `open_session` makes.
    lines = [line for line in said.err.splitlines() if not line.startswith("{")]
    told = [line.removeprefix(f"{path}:") for line in lines]
    wanted = [
        "7: variable NOBODY is not set",
        "7: unknown option quue: did you mean queue?",
        f"12: path '{tmp_path}/customers.csv': no such file",
        "23: unknown key 'triger' (did you mean 'trigger'?)",
        "30: step 'wrong': [UNRESOLVED_COLUMN",
    ]
    assert len(told) == len(wanted) and said.out == "", said
    assert all(line.startswith(begin) for line, begin in zip(told, wanted, strict=True)), said.err


def test_a_source_whose_options_are_wrong_hides_no_sql(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    (tmp_path / "customers.csv").write_text("customer,city\na,Rome\n")
    path = tmp_path / "pipeline.toml"
    wrong = BRIDGE.replace("${HERE}", "${NOWHERE}").replace("o.text, c.city", "o.text, c.town")
    path.write_text(wrong.replace('propertyColumns = "city"', "priority = 12"))
    variables = {"OUT": str(tmp_path), "THERE": cluster.servers}
    pipeline, problems = examine(path, variables)
    assert [problem.text.partition(":")[0] for problem in problems] == [
        "variable NOWHERE is not set",
        "option priority",
    ]
    assert pipeline is not None
    with pytest.raises(PipelineError) as raised:
        Frames(fake, pipeline).build()
    (found,) = raised.value.problems
    assert found.line == 17 and "c`.`town`" in found.text
