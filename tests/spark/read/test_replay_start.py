"""The start of a query in the retained past: by sequence and by time, over restarts, and refused if nothing is kept."""

from __future__ import annotations

import pytest

from atalanta.spark.errors import DataLost, OptionError
from atalanta.spark.options import read_options
from tests.spark.fake_node import FakeCluster
from tests.spark.read.query_rig import Query
from tests.spark.read.streaming_rig import QUEUE, waiting

NAMED = {"startingOffsets": '{"node-1": 2, "node-2": 4}'}
ALL = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def add(cluster: FakeCluster, numbers: range) -> None:
    for node in cluster.nodes:
        for number in numbers:
            node.queue(QUEUE).add("row", number)


def finished(cluster: FakeCluster, **options: str) -> None:
    """A query that has read and acknowledged all."""
    query = Query(cluster, **options)
    initial = query.reader.initialOffset()
    end = query.plan(initial)
    assert query.plan(end) == end
    query.reader.stop()


@pytest.fixture
def past(cluster: FakeCluster) -> FakeCluster:
    add(cluster, range(1, 6))
    finished(cluster, retention="7d")
    assert waiting(cluster) == [0, 0]
    return cluster


@pytest.mark.parametrize("group", ["spark", "other"])
def test_a_replay_begins_at_the_named_offsets(past: FakeCluster, group: str) -> None:
    query = Query(past, group=group, **NAMED)
    initial = query.reader.initialOffset()
    end = query.plan(initial)
    assert sorted(query.read(initial, end)) == [3, 4, 5, 5]
    add(past, range(6, 7))
    following = query.plan(end)
    assert query.read(end, following) == [6, 6]
    assert query.plan(following) == following
    assert waiting(past) == [0, 0]


@pytest.mark.parametrize(("time", "expected"), [("0", ALL), ("4", [4, 4, 5, 5]), ("9", [])])
def test_a_replay_begins_at_a_time(past: FakeCluster, time: str, expected: list[int]) -> None:
    query = Query(past, group="other", startingTimestamp=time)
    initial = query.reader.initialOffset()
    assert sorted(query.read(initial, query.plan(initial))) == expected


def test_a_new_group_reads_the_past_only_if_it_asks_for_it(past: FakeCluster) -> None:
    query = Query(past, group="other")
    initial = query.reader.initialOffset()
    assert query.plan(initial) == initial


def test_a_replay_that_is_started_again_goes_on(past: FakeCluster) -> None:
    first = Query(past, group="other", startingTimestamp="0", maxOffsetsPerTrigger="4")
    initial = first.reader.initialOffset()
    batch = first.plan(initial, limited=True)
    assert sorted(first.read(initial, batch)) == [1, 1, 2, 2]
    second_batch = first.plan(batch, limited=True)
    # Killed in the second batch; Spark repeats it.
    second = Query(past, group="other", startingTimestamp="0", maxOffsetsPerTrigger="4")
    assert sorted(second.read(batch, second_batch)) == [3, 3, 4, 4]
    assert sorted(second.read(second_batch, second.plan(second_batch, limited=True))) == [5, 5]


def test_an_offset_that_is_not_retained_is_refused_or_replaced_by_the_oldest(past: FakeCluster) -> None:
    for node in past.nodes:
        for at in (1, 2, 3):
            del node.queue(QUEUE).past[at]
    with pytest.raises(DataLost, match="can be read from 3 on, so it cannot be read from 2"):
        Query(past, **NAMED).reader.initialOffset()
    query = Query(past, failOnDataLoss="false", **NAMED)
    initial = query.reader.initialOffset()
    assert sorted(query.read(initial, query.plan(initial))) == [4, 5, 5]


def test_the_end_of_the_retention(past: FakeCluster) -> None:
    finished(past, retention="none")
    with pytest.raises(DataLost, match="is acknowledged up to 5 and can be read from 5 on"):
        Query(past, **NAMED).reader.initialOffset()


@pytest.mark.parametrize(
    ("text", "limits"),
    [("7d", (604_800_000, 0)), ("12h", (43_200_000, 0)), ("30min, 500MB", (1_800_000, 500 << 20)),
     ("10GiB", (0, 10 << 30)), ("1tb,90s", (90_000, 1 << 40)), ("none", (0, 0))],
)  # fmt: skip
def test_a_retention_is_a_time_a_size_or_both(text: str, limits: tuple[int, int]) -> None:
    assert read_options({"servers": "a:1", "queue": "q", "retention": text}).retention == limits


@pytest.mark.parametrize("text", ["7", "7m", "d", "0d", "7d,8d", "7d,", "-1d", "1.5h", "forever"])
def test_anything_else_is_no_retention(text: str) -> None:
    with pytest.raises(OptionError, match="option retention: .* is not a time"):
        read_options({"servers": "a:1", "queue": "q", "retention": text})
