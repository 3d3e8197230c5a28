"""Branches of queries that do not run any more: another sink at their node ends them, and never loses a decided one."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from atalanta.spark.errors import GatewayError
from atalanta.spark.options import write_options
from atalanta.spark.write.abandoned_branches import AbandonedBranches
from atalanta.spark.write.batch_commit import end_others
from atalanta.spark.write.node_calls import NodeCalls
from atalanta.spark.write.sink import PartitionWriter, Written
from tests.spark.fake_node import FakeCluster, FakeDataSource

TEXT = StructType().add("value", StringType())
HOUR_S = 3600
# So many that each node has some.
LOW = "abcdefghijklmnop"
HIGH = LOW.upper()
DIGITS = "0123456789+-*/=%"


def writer(cluster: FakeCluster, servers: str = "") -> PartitionWriter:
    options = {"servers": servers or cluster.servers, "address": "out", "nodeTimeout": "300ms"}
    return PartitionWriter(write_options(options), TEXT, FakeDataSource.connect)


def prepare(cluster: FakeCluster, query: str, rows: str, servers: str = "") -> list[Written]:
    """Writes a batch of one-letter rows, each in a partition of its own."""
    return [
        writer(cluster, servers).write(
            iter([pa.RecordBatch.from_pydict({"value": [row]})]), query, 0, number
        )
        for number, row in enumerate(rows)
    ]


def write(cluster: FakeCluster, query: str, rows: str) -> None:
    writer(cluster).commit(query, 0, prepare(cluster, query, rows))


def sent(cluster: FakeCluster) -> str:
    return "".join(sorted(str(one.text) for node in cluster.nodes for one in node.sent))


def prepared(cluster: FakeCluster) -> int:
    return sum(len(node.prepared) for node in cluster.nodes)


def pass_time(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    later_s = time.time() + hours * HOUR_S
    monkeypatch.setattr(time, "time", lambda: later_s)


def test_branches_of_a_dead_query_end_after_a_day(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(cluster, "dead", LOW)
    pass_time(monkeypatch, 23)
    write(cluster, "first", HIGH)
    assert prepared(cluster) == len(LOW)
    pass_time(monkeypatch, 2)
    write(cluster, "second", DIGITS)
    assert (sent(cluster), prepared(cluster)) == ("".join(sorted(HIGH + DIGITS)), 0)


def test_a_decided_branch_of_a_dead_query_is_committed(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = prepare(cluster, "dead", LOW)
    for node in cluster.nodes:
        node.dies_at["commit_branch"] = 0
    with pytest.raises(Exception, match="did not answer"):
        writer(cluster).commit("dead", 0, written)
    for node in cluster.nodes:
        node.dies_at.clear()
        if node.stopped.is_set():
            node.start()
    assert prepared(cluster) == len(LOW)
    pass_time(monkeypatch, 25)
    write(cluster, "other", HIGH)
    assert (sent(cluster), prepared(cluster)) == (HIGH + LOW, 0)
    # Its driver comes back after all.
    write(cluster, "dead", LOW[::-1])
    assert (sent(cluster), prepared(cluster)) == (HIGH + LOW, 0)


def test_branches_stay_while_a_server_that_may_have_their_decision_is_away(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = prepare(cluster, "dead", LOW)
    here, away = cluster.nodes
    left = len(here.prepared)
    assert 0 < left < len(written)
    pass_time(monkeypatch, 25)
    options = writer(cluster).options
    away.stop()
    with NodeCalls(options.login, FakeDataSource.connect) as nodes:
        others = end_others(nodes.gateway(here.address), "other", 0, set())
        AbandonedBranches(options.login.servers, nodes).end({here.address: others})
    assert len(here.prepared) == left
    away.start()
    with NodeCalls(options.login, FakeDataSource.connect) as nodes:
        others = end_others(nodes.gateway(here.address), "other", 0, set())
        AbandonedBranches(options.login.servers, nodes).end({here.address: others})
    assert len(here.prepared) == 0


def test_a_batch_lists_the_branches_of_a_node_once(cluster: FakeCluster) -> None:
    written = prepare(cluster, "dead", LOW)
    for node in cluster.nodes:
        node.requests.clear()
    writer(cluster).commit("dead", 0, written)
    assert [node.requests.count("prepared_branches") for node in cluster.nodes] == [1, 1]


def test_branches_of_a_query_with_other_servers_or_of_a_job_stay(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (node.address for node in cluster.nodes)
    prepare(cluster, "dead", "ab", servers=one)
    prepare(cluster, "dead", "cd", servers=other)
    prepare(cluster, "batch-1", "ef")
    pass_time(monkeypatch, 25)
    write(cluster, "other", HIGH)
    assert (sent(cluster), prepared(cluster)) == (HIGH, 6)


def test_a_batch_that_was_prepared_long_ago_is_not_decided(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = prepare(cluster, "slow", "abc")
    pass_time(monkeypatch, 13)
    with pytest.raises(GatewayError, match="prepared more than 12 hours ago"):
        writer(cluster).commit("slow", 0, written)
    assert sent(cluster) == ""
    write(cluster, "slow", "abc")
    assert (sent(cluster), prepared(cluster)) == ("abc", 0)
