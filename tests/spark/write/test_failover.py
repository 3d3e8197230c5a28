"""A pair as a sink: a batch arrives once, whichever member prepares and whichever commits."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructType

from atalanta.spark.errors import NodeTimeout
from atalanta.spark.options import write_options
from atalanta.spark.write.servers import DECISIONS_PARTITION, server_for
from atalanta.spark.write.sink import AtalantaStreamWriter, PartitionWriter
from tests.spark.fake_node import FakeCluster, FakeDataSource
from tests.spark.write.sink_rig import batches, prepared, sent

TEXT = StructType().add("value", StringType())
FORMS = ["active", "both", "as a group"]


def sink(servers: str, timeout: str = "10s") -> PartitionWriter:
    options = {"servers": servers, "address": "out", "nodeTimeout": timeout}
    return PartitionWriter(write_options(options), TEXT, FakeDataSource.connect)


def servers_of(cluster: FakeCluster, form: str) -> str:
    active, backup = cluster.nodes[0].pair().split(",")
    pair = {"active": active, "both": f"{active},{backup}", "as a group": f"{active}|{backup}"}[form]
    return f"{pair},{cluster.nodes[1].address}"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("query", ["q", "r", "s", "t"])  # decided at one node or the other
def test_a_batch_arrives_once_if_the_node_fails_over_between_prepare_and_commit(
    cluster: FakeCluster, form: str, query: str
) -> None:
    servers = servers_of(cluster, form)
    texts = "abcdefgh"
    written = [sink(servers).write(iter(batches(text)), query, 0, at) for at, text in enumerate(texts)]
    cluster.nodes[0].fail_over()
    sink(servers).commit(query, 0, written)
    assert (sent(cluster), prepared(cluster)) == ([*texts], 0)


@pytest.mark.parametrize("query", ["q", "r", "s", "t"])
def test_the_next_batches_go_on_at_the_backup(cluster: FakeCluster, query: str) -> None:
    servers = servers_of(cluster, "both")
    for batch, text in enumerate("abc"):
        written = [sink(servers).write(iter(batches(text)), query, batch, at) for at in range(6)]
        if batch == 1:
            cluster.nodes[0].fail_over()
        sink(servers).commit(query, batch, written)
        if batch == 1:
            servers = servers.replace(",", "|", 1)  # no topology shows the member that has ended
    assert (sent(cluster), prepared(cluster)) == (sorted("abc" * 6), 0)


def test_the_decisions_of_a_former_batch_name_the_pair(cluster: FakeCluster) -> None:
    active, backup = cluster.nodes[0].pair().split(",")
    servers = [active, backup, cluster.nodes[1].address]
    query = next(name for name in "abcdefghijk" if server_for(servers, name, DECISIONS_PARTITION) == active)
    number = next(n for n in range(50) if server_for(servers, query, n) == servers[2])
    written = [sink(",".join(servers)).write(iter(batches("x")), query, 0, number)]
    sink(",".join(servers)).commit(query, 0, written)
    cluster.nodes[0].fail_over()
    written = [sink(",".join(servers)).write(iter(batches("x")), query, 0, number)]
    sink(",".join(servers)).commit(query, 0, written)  # a repeat, in a process that knows nothing
    assert (sent(cluster), prepared(cluster)) == (["x"], 0)


def test_a_node_that_is_away_and_unknown_is_an_error_with_the_remedy(cluster: FakeCluster) -> None:
    active, backup = cluster.nodes[0].pair().split(",")
    servers = [active, backup]
    number = next(n for n in range(50) if server_for(servers, "q", n) == active)
    cluster.nodes[0].fail_over()
    with pytest.raises(NodeTimeout, match="write them as one node in option servers: a:61616|b:61616"):
        sink(",".join(servers), "300ms").write(iter(batches("x")), "q", 0, number)
    assert sink("|".join(servers)).write(iter(batches("x")), "q", 0, number).prepared is not None


def test_partitions_are_spread_over_nodes_and_not_over_names(cluster: FakeCluster) -> None:
    servers = servers_of(cluster, "both")
    for at in range(40):
        sink(servers).write(iter(batches("x")), "q", 0, at)
    share = len(cluster.nodes[0].prepared)
    assert 12 <= share <= 28  # a half; two thirds would be 27 of 40 on average, by names


def test_pairs_of_two_clusters_are_learnt_at_the_start(cluster: FakeCluster) -> None:
    one, two = cluster.nodes
    other = FakeCluster(0)
    cluster.nodes.remove(two)
    other.nodes.append(two)
    two.cluster = other
    options = {"servers": f"{one.pair()},{two.pair()}", "address": "out", "nodeTimeout": "2s"}
    try:
        writer = AtalantaStreamWriter(write_options(options), TEXT, FakeDataSource.connect).writer
        two.fail_over()
        for at in range(8):
            writer.write(iter(batches("x")), "q", 0, at)
    finally:
        cluster.nodes.append(two)
    assert prepared(cluster) == 8


@pytest.mark.parametrize("dies", [False, True])
def test_a_batch_is_decided_once_if_servers_change_and_change_back(cluster: FakeCluster, dies: bool) -> None:
    """The members of a pair are added to `servers`, the driver dies, and the change is undone."""
    a, (b, b2) = cluster.nodes[0].address, cluster.nodes[1].pair().split(",")
    old, new = f"{a},{b}", f"{a},{b}|{b2}"
    query = next(
        name
        for name in map(str, range(999))
        if server_for([a, b], name, DECISIONS_PARTITION) == a and server_for([a, b, b2], name, DECISIONS_PARTITION) != a
    )
    sink(old).commit(query, 0, [sink(old).write(iter(batches("x")), query, 0, 0)])
    written = [sink(new).write(iter(batches(text)), query, 1, at) for at, text in enumerate("lmno")]
    if dies:
        cluster.nodes[0].dies_at["forget_decisions"] = 0
        with pytest.raises(NodeTimeout):
            sink(new, "300ms").commit(query, 1, written)
        cluster.nodes[0].start()
    else:
        sink(new).commit(query, 1, written)
    again = [sink(old).write(iter(batches(text)), query, 1, at) for at, text in enumerate("lmno")]
    sink(old).commit(query, 1, again)
    assert (sent(cluster), prepared(cluster)) == ([*"lmnox"], 0)
