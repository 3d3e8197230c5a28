"""The start of a query: nothing that it skips is acknowledged by accident, and a lost checkpoint skips nothing."""

from __future__ import annotations

import pytest

from atalanta.spark.errors import OptionError, SparkSourceError
from tests.spark.fake_node import FakeCluster
from tests.spark.read.query_rig import Query, add
from tests.spark.read.streaming_rig import QUEUE, waiting

SKIPPING = {"latest": {"startingOffsets": "latest"}, "time": {"startingTimestamp": "5"},
            "times": {"startingTimestamp": '{"node-1": 5, "node-2": 5}'},
            "named": {"startingOffsets": '{"node-1": 3, "node-2": 3}'}}  # fmt: skip


@pytest.mark.parametrize("start", SKIPPING)
def test_a_start_that_skips_messages_is_refused(cluster: FakeCluster, start: str) -> None:
    add(cluster, 3)
    with pytest.raises(OptionError, match="messages up to sequence 3, before the start .* skipped=discard"):
        Query(cluster, **SKIPPING[start]).reader.initialOffset()
    assert waiting(cluster) == [3, 3]


@pytest.mark.parametrize("start", SKIPPING)
def test_skipped_messages_are_discarded_if_that_is_asked_for(
    cluster: FakeCluster, start: str
) -> None:
    add(cluster, 3)
    query = Query(cluster, skipped="discard", **SKIPPING[start])
    initial = query.reader.initialOffset()
    assert waiting(cluster) == [0, 0]
    add(cluster, 2)
    assert sorted(query.read(initial, query.plan(initial))) == [4, 4, 5, 5]


def test_an_empty_queue_is_read_from_latest_without_a_word(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.queue(QUEUE)
    query = Query(cluster, startingOffsets="latest")
    initial = query.reader.initialOffset()
    add(cluster, 1)
    assert query.read(initial, query.plan(initial)) == [1, 1]


def test_a_group_without_its_checkpoint_goes_on_where_it_was(cluster: FakeCluster) -> None:
    add(cluster, 3)
    first = Query(cluster, startingOffsets="latest", skipped="discard")
    first.reader.initialOffset()
    first.reader.stop()
    add(cluster, 2)
    second = Query(cluster, startingOffsets="latest", skipped="discard")
    initial = second.reader.initialOffset()
    assert sorted(second.read(initial, second.plan(initial))) == [4, 4, 5, 5]


SKIPPED = {"latest": {"startingOffsets": "latest"}, "time": {"startingTimestamp": "5"}}


@pytest.mark.parametrize("start", SKIPPED)
def test_a_start_that_was_refused_has_not_begun(cluster: FakeCluster, start: str) -> None:
    add(cluster, 3)
    refused = Query(cluster, **SKIPPED[start])
    with pytest.raises(OptionError, match="skipped=discard"):
        refused.reader.initialOffset()
    refused.reader.stop()
    assert [node.queue(QUEUE).lease_ms for node in cluster.nodes] == [0, 0]
    query = Query(cluster, skipped="discard", **SKIPPED[start])
    initial = query.reader.initialOffset()
    assert query.plan(initial) == initial
    assert waiting(cluster) == [0, 0]


def test_a_driver_that_died_before_it_recorded_a_position_has_not_begun(cluster: FakeCluster) -> None:
    add(cluster, 3)
    first = Query(cluster, startingOffsets="latest", skipped="discard")
    first.reader.choose_start()  # with the leases
    query = Query(cluster, startingOffsets="latest", skipped="discard")
    initial = query.reader.initialOffset()
    assert query.plan(initial) == initial


def test_an_unknown_queue_gets_the_names_like_it(cluster: FakeCluster) -> None:
    for node in cluster.nodes:
        node.queue("orders.eu")
    with pytest.raises(SparkSourceError, match=r"has a queue order.eu: did you mean orders.eu\?"):
        Query(cluster, queue="order.eu").reader.initialOffset()
