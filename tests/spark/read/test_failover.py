"""A pair as a source: its node is one, whichever member serves and whichever of them `servers` names."""

from __future__ import annotations

import json

import pytest

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import NodeTimeout, OptionError
from atalanta.spark.options import read_options
from atalanta.spark.read.batch import AtalantaBatchReader
from tests.spark.fake_node import FakeCluster, FakeGateway
from tests.spark.read.query_rig import Query, add
from tests.spark.read.streaming_rig import QUEUE, waiting

SERVERS = ["active", "both", "passive first", "as a group"]


def servers_of(cluster: FakeCluster, form: str) -> str:
    """The option `servers` for the pair that is the first node, and the second node."""
    active, backup = cluster.nodes[0].pair().split(",")
    forms = {
        "active": active, "both": f"{active},{backup}", "passive first": f"{backup},{active}",
        "as a group": f"{backup}|{active}",
    }  # fmt: skip
    return f"{forms[form]},{cluster.nodes[1].address}"


def batch_rows(cluster: FakeCluster, servers: str, **more: str) -> int:
    options = read_options({"servers": servers, "queue": QUEUE, "nodeTimeout": "5s"} | more)
    reader = AtalantaBatchReader(options, COLUMNS, FakeGateway)
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


@pytest.mark.parametrize("form", SERVERS)
def test_a_batch_read_has_each_row_of_a_pair_once(cluster: FakeCluster, form: str) -> None:
    add(cluster, 3)
    assert batch_rows(cluster, servers_of(cluster, form)) == 6


@pytest.mark.parametrize("form", SERVERS)
def test_a_stream_goes_on_at_the_backup(cluster: FakeCluster, form: str) -> None:
    query = Query(cluster, servers=servers_of(cluster, form))
    add(cluster, 3)
    start = query.reader.initialOffset()
    end = query.plan(start)
    cluster.nodes[0].fail_over()  # between the plan and the tasks
    assert sorted(query.read(start, end)) == [1, 1, 2, 2, 3, 3]
    add(cluster, 1)
    last = query.plan(end)
    assert query.read(end, last) == [4, 4]
    query.plan(last)
    assert waiting(cluster) == [0, 0]


@pytest.mark.parametrize("form", SERVERS)
def test_a_restart_after_a_failover_finds_the_node_by_its_checkpoint(cluster: FakeCluster, form: str) -> None:
    servers = servers_of(cluster, form)
    first = Query(cluster, servers=servers)
    add(cluster, 3)
    start = first.reader.initialOffset()
    end = first.plan(start)
    assert len(first.read(start, end)) == 6
    cluster.nodes[0].fail_over()
    add(cluster, 1)
    again = Query(cluster, servers=servers)
    again.read(start, end)
    assert again.read(end, again.plan(end)) == [4, 4]


def test_a_first_start_after_a_failover_needs_the_members_as_one_node(cluster: FakeCluster) -> None:
    active, backup = cluster.nodes[0].pair().split(",")
    add(cluster, 2)
    cluster.nodes[0].fail_over()
    other = cluster.nodes[1].address
    assert batch_rows(cluster, f"{active}|{backup},{other}") == 4
    with pytest.raises(NodeTimeout, match=f"server {active}.*write them as one node: a:61616|b:61616") as caught:
        batch_rows(cluster, f"{active},{backup},{other}", nodeTimeout="300ms")
    assert "removedNodes" not in str(caught.value)


def test_a_pair_without_the_queue_is_no_obstacle(cluster: FakeCluster) -> None:
    servers = servers_of(cluster, "both")
    cluster.nodes[1].queue(QUEUE).add("row")
    assert batch_rows(cluster, servers) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_starting_offsets_by_server_hold_after_a_failover(cluster: FakeCluster, fails: bool) -> None:
    active, backup = cluster.nodes[0].pair().split(",")
    other = cluster.nodes[1].address
    add(cluster, 5)
    if fails:
        cluster.nodes[0].fail_over()
    starting = json.dumps({active: 3, other: 5})
    assert batch_rows(cluster, f"{active}|{backup},{other}", startingOffsets=starting) == 2


def test_starting_offsets_by_another_name_of_the_server(cluster: FakeCluster) -> None:
    port, other = cluster.nodes[0].port, cluster.nodes[1].address
    add(cluster, 5)
    starting = json.dumps({f"127.0.0.1:{port}": 3, other: 5})
    assert batch_rows(cluster, f"localhost:{port},{other}", startingOffsets=starting) == 2


@pytest.mark.parametrize("option", ["startingOffsets", "startingTimestamp", "endingOffsets", "endingTimestamp"])
def test_a_value_for_a_node_that_is_not_there_is_an_error(cluster: FakeCluster, option: str) -> None:
    add(cluster, 5)
    with pytest.raises(OptionError, match=f"option {option} names typo:61616, which is no node here: there are node-1"):
        batch_rows(cluster, cluster.servers, **{option: '{"typo:61616": 3}'})


def test_two_nodes_that_are_written_as_one_are_both_read(cluster: FakeCluster) -> None:
    """They are in no cluster, so no topology shows the second one."""
    add(cluster, 3)
    two = cluster.nodes.pop()
    other = FakeCluster(0)
    two.cluster = other
    other.nodes.append(two)
    try:
        assert batch_rows(cluster, f"{cluster.nodes[0].address}|{two.address}") == 6
    finally:
        cluster.nodes.append(two)
