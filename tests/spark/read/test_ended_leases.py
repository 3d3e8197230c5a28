"""A query of real nodes whose lease a user ends: at each node for itself, and no row is lost or comes twice unsaid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atalanta.client import blocking
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import DataLost, LeaseEnded, LeaseTaken
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import read_options
from atalanta.spark.read.batch_plan import BatchLimits
from atalanta.spark.read.partition_reader import RangePartition
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.cli.calls import Cli
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster, BrokerNode

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

EVERYTHING = BatchLimits(None, None).read_limit()
Json = dict[str, Any]


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path, 2) as cluster:
        yield cluster


class Query:
    """The source as Spark's driver and tasks call it; `checkpoint` is the last offset in the offset log."""

    def __init__(self, brokers: BrokerCluster, checkpoint: Json | None = None, **options: str) -> None:
        settings = {"servers": brokers.servers, "queue": QUEUE, "positionCache": "0s"}
        settings |= {"user": USER, "password": PASSWORD}
        self.reader = AtalantaStreamReader(read_options(settings | options), COLUMNS, connect, "")
        self.reader.getDefaultReadLimit()
        self.begin = self.reader.initialOffset() if checkpoint is None else checkpoint

    def plan(self) -> Json:
        end: Json = self.reader.latestOffset(self.begin, EVERYTHING)
        return end

    def read(self, start: Json, end: Json) -> list[str]:
        found: list[str] = []
        for part in self.reader.partitions(start, end):
            assert isinstance(part, RangePartition)
            for batch in self.reader.read(part):
                found += batch.column("text").to_pylist()
        return sorted(found)


def end_lease(node: BrokerNode) -> None:
    cli = Cli(f"tcp://{node.server}")
    cli.environment |= {"ATALANTA_USER": USER, "ATALANTA_PASSWORD": PASSWORD}
    said = cli("queue", "end-lease", "archive", "--yes")
    assert said.startswith("ended the lease of group ")


def take(node: BrokerNode, count: int) -> list[str]:
    """What a consumer of the queue gets."""
    with blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection:
        consumer = connection.consumer(QUEUE)
        found = []
        for _ in range(count):
            message = consumer.receive(10)
            assert message is not None
            found.append(str(message.text))
            message.acknowledge()
        return found


def published(brokers: BrokerCluster) -> list[str]:
    for at, node in enumerate(brokers.nodes):
        node.publish([f"{at}{letter}" for letter in "abc"])
    return ["0a", "0b", "0c", "1a", "1b", "1c"]


def test_a_planned_batch_comes_again_and_is_acknowledged_once(brokers: BrokerCluster) -> None:
    texts = published(brokers)
    query = Query(brokers)
    end = query.plan()
    assert query.read(query.begin, end) == texts
    end_lease(brokers.nodes[0])
    with pytest.raises(LeaseEnded, match="so this query stops: .*ended by user spark from 127.0.0.1") as told:
        query.reader.commit(end)
        query.reader.latestOffset(end, EVERYTHING)
    assert "another query took over" not in str(told.value)
    query.reader.stop()
    assert brokers.waiting() >= 3, "what was not acknowledged is still there"
    again = Query(brokers, query.begin)
    assert again.read(query.begin, end) == texts
    again.begin = end
    again.reader.commit(end)
    assert again.plan() == end
    again.reader.stop()
    brokers.wait_until_empty()


def test_only_the_lease_of_the_named_node_is_ended(brokers: BrokerCluster) -> None:
    published(brokers)
    query = Query(brokers)
    end = query.plan()
    end_lease(brokers.nodes[0])
    other = connect(brokers.nodes[1].server, Credentials(USER, PASSWORD, 5.0, 10.0))
    with pytest.raises(LeaseTaken, match="is leased to the log-view group"):
        other.lease(QUEUE, "other", "me", 5_000, 0)
    other.close()
    assert take(brokers.nodes[0], 1) == ["0a"]
    query.reader.stop()
    again = Query(brokers, query.begin)
    with pytest.raises(DataLost, match="acknowledged by another consumer"):
        again.read(query.begin, end)
    again.reader.stop()


def test_a_restarted_node_keeps_the_end_and_the_age_of_a_lease(brokers: BrokerCluster) -> None:
    texts = published(brokers)
    query = Query(brokers)
    end = query.plan()
    end_lease(brokers.nodes[0])
    for node in brokers.nodes:
        node.kill()
        node.start()
    assert brokers.waiting() == 6
    with pytest.raises(LeaseEnded, match="ended by user spark"):
        query.read(query.begin, end)
        query.reader.commit(end)
        query.reader.latestOffset(end, EVERYTHING)
    query.reader.stop()
    again = Query(brokers, query.begin)
    assert again.read(query.begin, end) == texts
    again.reader.stop()
