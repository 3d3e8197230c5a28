"""The sink: a batch is one unit, whatever its partitions and whoever dies."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from atalanta.spark.errors import BatchDecided, BranchLost, DuplicateRow, GatewayError, NodeTimeout
from atalanta.spark.options import write_options
from atalanta.spark.write.batch_commit import branches_of
from atalanta.spark.write.servers import DECISIONS_PARTITION, server_for
from atalanta.spark.write.sink import AtalantaStreamWriter, PartitionWriter, Written
from tests.spark.fake_node import FakeCluster, FakeDataSource, FakeNode
from tests.spark.read.streaming_rig import fill, source, waiting
from tests.spark.write.sink_rig import batches, prepared, sent
from tests.waiting import until

TEXT = StructType().add("value", StringType())


def test_the_node_of_a_partition_does_not_depend_on_the_order_of_servers() -> None:
    servers = ["c:3", "a:1", "b:2"]
    chosen = [server_for(servers, "query", partition) for partition in range(50)]
    assert chosen == [server_for(sorted(servers), "query", partition) for partition in range(50)]
    assert set(chosen) == set(servers)


def writer(cluster: FakeCluster, timeout: str = "10s") -> PartitionWriter:
    options = {"servers": cluster.servers, "address": "out", "nodeTimeout": timeout}
    return PartitionWriter(write_options(options), TEXT, FakeDataSource.connect)


def run(cluster: FakeCluster, batch: int, *partitions: str) -> list[Written]:
    """Writes a batch as tasks do; each partition is a string of one-letter rows."""
    return [
        writer(cluster).write(iter(batches(*rows)), "q", batch, number)
        for number, rows in enumerate(partitions)
    ]


def commit(cluster: FakeCluster, batch: int, written: list[Written], timeout: str = "10s") -> None:
    writer(cluster, timeout).commit("q", batch, written)


def test_nothing_is_seen_before_the_commit_of_the_batch(cluster: FakeCluster) -> None:
    written = run(cluster, 0, "ab", "c", "")
    assert [one.messages for one in written] == [2, 1, 0]
    assert (sent(cluster), prepared(cluster)) == ([], 2)
    commit(cluster, 0, written)
    assert (sent(cluster), prepared(cluster)) == (["a", "b", "c"], 0)


def test_a_batch_that_is_written_again_under_another_cut_arrives_once(cluster: FakeCluster) -> None:
    commit(cluster, 0, run(cluster, 0, "ab", "cd"))
    commit(cluster, 0, run(cluster, 0, "a", "b", "c", "d"))
    commit(cluster, 0, run(cluster, 0, "dcba"))
    commit(cluster, 1, run(cluster, 1, "e"))
    assert (sent(cluster), prepared(cluster)) == (["a", "b", "c", "d", "e"], 0)


def test_a_driver_that_died_before_its_decision_leaves_nothing(cluster: FakeCluster) -> None:
    run(cluster, 0, "ab", "cd", "ef", "gh")
    commit(cluster, 0, run(cluster, 0, "abcd", "ef", "gh", "i"))
    commit(cluster, 1, run(cluster, 1, "k", "l", "m", "n"))
    assert sent(cluster) == sorted("abcdefghiklmn")
    assert prepared(cluster) == 0


def test_a_run_in_fewer_partitions_ends_the_branches_at_every_server(cluster: FakeCluster) -> None:
    run(cluster, 0, *"abcdef")
    assert all(node.prepared for node in cluster.nodes)
    written = run(cluster, 0, "abcdef")
    commit(cluster, 0, written)
    assert (sent(cluster), prepared(cluster)) == (list("abcdef"), 0)


def test_a_server_without_a_branch_of_the_batch_is_not_waited_for(cluster: FakeCluster) -> None:
    used = home(cluster)
    servers = cluster.servers.split(",")
    number = next(n for n in range(9) if server_for(servers, "q", n) == used.address)
    first = writer(cluster).write(iter(batches("a")), "q", 0, number)
    commit(cluster, 0, [first])
    second = writer(cluster).write(iter(batches("b")), "q", 1, number)
    for node in cluster.nodes:
        if node is not used:
            node.stop()
    commit(cluster, 1, [second], "300ms")
    assert sent(cluster) == ["a", "b"]


@pytest.mark.parametrize("node_number", [0, 1])
def test_a_driver_that_died_after_its_decision_is_finished_by_the_next(
    cluster: FakeCluster, node_number: int
) -> None:
    written = run(cluster, 0, "a", "b", "c", "d", "e", "f")
    assert len({one.prepared.server for one in written if one.prepared}) == 2
    away = cluster.nodes[node_number]
    away.dies_at["commit_branch"] = 0
    with pytest.raises(NodeTimeout, match=r"server 127.0.0.1:\d+ did not answer for 0.3 s"):
        commit(cluster, 0, written, "300ms")
    away.start()
    commit(cluster, 0, run(cluster, 0, "fed", "cba"))
    assert (sent(cluster), prepared(cluster)) == (list("abcdef"), 0)


def stream_commit(cluster: FakeCluster, batch: int, written: list[Written], timeout: str = "10s") -> None:
    """The commit as Spark calls it, which names no query."""
    AtalantaStreamWriter(writer(cluster, timeout).options, TEXT, FakeDataSource.connect).commit([*written], batch)


def test_a_decided_batch_is_finished_by_a_repeat_without_rows(cluster: FakeCluster) -> None:
    written = run(cluster, 0, *"abcdef")
    away = cluster.nodes[0]
    away.dies_at["commit_branch"] = 0
    with pytest.raises(NodeTimeout):
        stream_commit(cluster, 0, written, "300ms")
    away.start()
    stream_commit(cluster, 0, run(cluster, 0, "", ""))
    assert (sent(cluster), prepared(cluster)) == (list("abcdef"), 0)


def test_an_undecided_batch_leaves_nothing_after_a_repeat_without_rows(cluster: FakeCluster) -> None:
    run(cluster, 0, *"abcdef")
    stream_commit(cluster, 0, run(cluster, 0, ""))
    assert (sent(cluster), prepared(cluster)) == ([], 0)


def test_a_driver_that_comes_back_after_a_repeat_without_rows_adds_none(cluster: FakeCluster) -> None:
    late = run(cluster, 0, *"abcdef")
    stream_commit(cluster, 0, run(cluster, 0, ""))
    stream_commit(cluster, 0, [*late[:3], *run(cluster, 0, *"def")])
    stream_commit(cluster, 1, run(cluster, 1, "g"))
    assert (sent(cluster), prepared(cluster)) == (["g"], 0)


@pytest.mark.parametrize("went_on", [False, True])
def test_a_driver_whose_batch_another_has_finished_loses_nothing(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, went_on: bool
) -> None:
    """The first driver stands still between its decision and its commits; the second finishes the batch."""
    first = run(cluster, 0, *"abcd")
    decide = FakeNode.do_decide

    def overtaken(node: FakeNode, query: str, batch: int, decision: str) -> None:
        monkeypatch.setattr(FakeNode, "do_decide", decide)
        decide(node, query, batch, decision)
        node.lock.release()  # the node answers others meanwhile
        try:
            stream_commit(cluster, 0, run(cluster, 0, "abcd"))
            if went_on:
                stream_commit(cluster, 1, run(cluster, 1, "e"))
        finally:
            node.lock.acquire()

    monkeypatch.setattr(FakeNode, "do_decide", overtaken)
    if went_on:
        with pytest.raises(BatchDecided, match="another driver of the query runs"):
            stream_commit(cluster, 0, first)
    else:
        stream_commit(cluster, 0, first)
    assert (sent(cluster), prepared(cluster)) == (list("abcde" if went_on else "abcd"), 0)


def test_a_repeat_of_a_decided_batch_that_the_node_refuses_as_duplicates(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with a duplicate_id: the node has them already, from the decided run."""
    commit(cluster, 0, run(cluster, 0, "ab", "cd"))

    def refuse(node: FakeNode, messages: object, branch: str) -> None:
        raise DuplicateRow("seen before", 113)

    monkeypatch.setattr(FakeNode, "do_prepare", refuse)
    written = run(cluster, 0, "ab", "cd")
    stream_commit(cluster, 0, written)
    assert (sent(cluster), prepared(cluster)) == (list("abcd"), 0)
    with pytest.raises(DuplicateRow):
        run(cluster, 1, "e")


def test_two_drivers_of_one_batch_agree(cluster: FakeCluster) -> None:
    first, second = run(cluster, 0, "ab", "cd"), run(cluster, 0, "abc", "d")
    commit(cluster, 0, second)
    commit(cluster, 0, first)
    assert (sent(cluster), prepared(cluster)) == (list("abcd"), 0)


def test_a_checkpoint_that_is_older_than_the_data_is_refused(cluster: FakeCluster) -> None:
    for batch, rows in enumerate("ab"):
        commit(cluster, batch, run(cluster, batch, rows))
    with pytest.raises(BatchDecided, match="checkpoint is older than the data"):
        commit(cluster, 0, run(cluster, 0, "a"))
    assert sent(cluster) == ["a", "b"]


def test_a_branch_that_is_gone_is_told(cluster: FakeCluster) -> None:
    written = run(cluster, 0, "ab")
    for node in cluster.nodes:
        node.prepared.clear()
    with pytest.raises(BranchLost, match="no node has the prepared branch q/0/0"):
        commit(cluster, 0, written)


def scale_down(source: FakeNode, target: FakeNode) -> None:
    """Moves branches and decisions to the target. The source starts again without them."""
    target.prepared |= source.prepared
    for query, decisions in source.decided.items():
        target.decided.setdefault(query, {}).update(decisions)
    source.prepared, source.decided = {}, {}


def home(cluster: FakeCluster) -> FakeNode:
    """Returns the node with the decisions of the query."""
    server = server_for(cluster.servers.split(","), "q", DECISIONS_PARTITION)
    return next(node for node in cluster.nodes if node.address == server)


@pytest.fixture
def trio(cluster: FakeCluster) -> FakeCluster:
    """Three nodes, of which the options of `pair` name the first two."""
    cluster.join()
    return cluster


def pair(cluster: FakeCluster, timeout: str = "10s") -> PartitionWriter:
    servers = ",".join(node.address for node in cluster.nodes[:2])
    options = {"servers": servers, "address": "out", "nodeTimeout": timeout}
    return PartitionWriter(write_options(options), TEXT, FakeDataSource.connect)


def run_pair(cluster: FakeCluster, batch: int, *partitions: str) -> list[Written]:
    return [
        pair(cluster).write(iter(batches(*rows)), "q", batch, number)
        for number, rows in enumerate(partitions)
    ]


@pytest.mark.parametrize("named", [True, False], ids=["all_servers_named", "target_not_named"])
def test_a_scale_down_between_prepare_and_commit(trio: FakeCluster, named: bool) -> None:
    make = writer if named else pair
    written = (run if named else run_pair)(trio, 0, *"abcdef")
    for node in trio.nodes[:2]:
        scale_down(node, trio.nodes[2])
    make(trio).commit("q", 0, written)
    assert (sent(trio), prepared(trio)) == (list("abcdef"), 0)


@pytest.mark.parametrize("leaving", [0, 1])
def test_a_scale_down_after_the_decision_and_a_repeat(trio: FakeCluster, leaving: int) -> None:
    """The repeat finds the decided branches that the driver had not committed, at a further node."""
    written = run_pair(trio, 0, *"abcdef")
    trio.nodes[leaving].dies_at["commit_branch"] = 0
    with pytest.raises(NodeTimeout):
        pair(trio, "300ms").commit("q", 0, written)
    trio.nodes[leaving].start()
    scale_down(trio.nodes[leaving], trio.nodes[2])
    pair(trio).commit("q", 0, run_pair(trio, 0, "fed", "cba"))
    pair(trio).commit("q", 1, run_pair(trio, 1, *"ghijkl"))
    assert (sent(trio), prepared(trio)) == (list("abcdefghijkl"), 0)


def test_a_server_that_was_scaled_down_for_good(trio: FakeCluster) -> None:
    """Its branches and decisions are found after it was removed from the options."""
    written = run(trio, 0, *"abcdefgh")
    gone = home(trio)
    gone.dies_at["commit_branch"] = 0
    with pytest.raises(NodeTimeout):
        commit(trio, 0, written, "300ms")
    trio.nodes.remove(gone)
    scale_down(gone, trio.nodes[0])
    commit(trio, 0, run(trio, 0, "abcd", "efgh"))
    gone_sent = [str(one.text) for one in gone.sent]
    assert (sorted(sent(trio) + gone_sent), prepared(trio)) == (list("abcdefgh"), 0)


def test_a_removed_server_that_may_have_branches_is_named(trio: FakeCluster) -> None:
    written = run(trio, 0, *"abcdefgh")
    away = next(node for node in trio.nodes if node is not home(trio))
    away.dies_at["commit_branch"] = 0
    with pytest.raises(NodeTimeout):
        commit(trio, 0, written, "300ms")
    trio.nodes.remove(away)
    with pytest.raises(NodeTimeout, match="It is not in servers, and no other node has its branches"):
        commit(trio, 0, run(trio, 0, "abcd", "efgh"), "300ms")
    away.start()
    commit(trio, 0, run(trio, 0, "abcd", "efgh"))
    away.stop()
    away_sent = [str(one.text) for one in away.sent]
    assert sorted(sent(trio) + away_sent) == list("abcdefgh")
    assert (prepared(trio), len(away.prepared)) == (0, 0)


@pytest.mark.parametrize("text", ["x", "[]", '{"branches": [["h:1", "no branch"]]}'])
def test_a_message_that_is_no_decision_stops_the_query(text: str) -> None:
    with pytest.raises(GatewayError, match="is no decision"):
        branches_of(text)


def test_a_decision_that_the_node_does_not_keep_is_told(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = run(cluster, 0, "ab")
    monkeypatch.setattr(FakeNode, "do_decide", lambda self, query, batch, decision: None)
    with pytest.raises(GatewayError, match="the decision of batch 0 of query q is gone"):
        commit(cluster, 0, written)
    assert sent(cluster) == []


def test_decisions_are_found_after_servers_has_changed(cluster: FakeCluster) -> None:
    written = run(cluster, 0, "a")
    commit(cluster, 0, written)
    for _ in range(5):
        cluster.join()
    commit(cluster, 0, run(cluster, 0, "a"))
    assert (sent(cluster), prepared(cluster)) == (["a"], 0)


def test_an_aborted_batch_leaves_nothing(cluster: FakeCluster) -> None:
    writer(cluster).abort([*run(cluster, 0, "ab", "c"), None])
    assert (sent(cluster), prepared(cluster)) == ([], 0)


def test_an_abort_after_a_failed_commit_keeps_what_was_decided(cluster: FakeCluster) -> None:
    written = run(cluster, 0, "ab", "c", "d", "e")
    node = next(node for node in cluster.nodes if node.prepared)
    node.dies_at["commit_branch"] = 0
    with pytest.raises(NodeTimeout):
        commit(cluster, 0, written, "300ms")
    node.start()
    options = write_options({"servers": cluster.servers, "address": "out"})
    AtalantaStreamWriter(options, TEXT, FakeDataSource.connect).abort([*written], 0)
    commit(cluster, 0, run(cluster, 0, "abcde"))
    assert (sent(cluster), prepared(cluster)) == (["a", "b", "c", "d", "e"], 0)


def test_a_job_is_committed_once(cluster: FakeCluster) -> None:
    written = run(cluster, 0, "ab", "c")
    writer(cluster).commit_job(written)
    assert (sent(cluster), prepared(cluster)) == (["a", "b", "c"], 0)


def test_a_write_waits_for_its_node(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.stop()
    done: list[Written] = []
    task = threading.Thread(target=lambda: done.extend(run(cluster, 0, "a")))
    task.start()
    for node in cluster.nodes:
        node.start()
    task.join(20)
    commit(cluster, 0, done)
    assert sent(cluster) == ["a"]


@pytest.mark.parametrize("request_name", ["prepare", "decide", "commit_branch", "decisions", "forget_decisions"])
def test_a_node_that_dies_meanwhile_gets_the_batch_once(
    cluster: FakeCluster, request_name: str
) -> None:
    for node in cluster.nodes:
        node.dies_at[request_name] = 0
    task = threading.Thread(target=lambda: commit(cluster, 0, run(cluster, 0, "ab", "c", "d")))
    task.start()
    until(lambda: any(node.stopped.is_set() for node in cluster.nodes), "the crash")
    while task.is_alive():
        for node in cluster.nodes:
            if node.stopped.is_set():
                node.start()
        task.join(0.1)
    assert (sent(cluster), prepared(cluster)) == (list("abcd"), 0)


def test_a_node_that_stays_away_is_named(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.stop()
    with pytest.raises(NodeTimeout, match=r"server 127.0.0.1:\d+ did not answer for 0.3 s"):
        writer(cluster, "300ms").write(iter(batches("a")), "q", 0, 0)


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_batches_are_written_and_overwriting_is_refused(
    fake: SparkSession, cluster: FakeCluster
) -> None:
    frame = fake.range(20).selectExpr("cast(id as string) value", "id % 3 as third")
    target = frame.repartition(3).write.format("atalanta").option("servers", cluster.servers)
    target = target.option("address", "out").option("propertyColumns", "third")
    target.mode("append").save()
    assert sent(cluster) == sorted(str(number) for number in range(20))
    first = next(one for node in cluster.nodes for one in node.sent)
    assert first.properties == {"third": int(str(first.text)) % 3}
    with pytest.raises(Exception, match='use mode\\("append"\\)'):
        target.mode("overwrite").save()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_streaming_query_writes_each_batch_once(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 50, 50)
    frame = source(fake, cluster, maxOffsetsPerTrigger=30).selectExpr("text as value")
    for _ in range(2):
        query = (
            frame.writeStream.format("atalanta")
            .option("servers", cluster.servers)
            .option("address", "out")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        texts = sent(cluster)
        assert len(texts) == len(set(texts)) == 100
    assert waiting(cluster) == [0, 0]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_query_whose_repeat_has_no_rows_finishes_what_was_decided(
    fake: SparkSession, cluster: FakeCluster, tmp_path: Path
) -> None:
    fill(cluster, 5, 5)

    def start(condition: str) -> None:
        rows = source(fake, cluster).where(condition).selectExpr("text as value").repartition(4)
        sink = rows.writeStream.format("atalanta").option("servers", cluster.servers).option("address", "out")
        sink = sink.option("nodeTimeout", "300ms").option("checkpointLocation", str(tmp_path))
        sink.trigger(availableNow=True).start().awaitTermination(60)

    away = cluster.nodes[0]
    away.dies_at["commit_branch"] = 0
    with pytest.raises(Exception, match="did not answer"):
        start("true")
    assert prepared(cluster) > 0
    away.start()
    start("false")
    assert (len(set(sent(cluster))), len(sent(cluster)), prepared(cluster)) == (10, 10, 0)
