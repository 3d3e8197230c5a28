"""A damaged page file of a real node: the query is told which messages are lost, or goes on without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import DataLost
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.options import read_options
from atalanta.spark.read.partition_reader import RangePartition
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster, BrokerNode
from tests.spark.read.query_rig import EVERYTHING

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

COUNT = 600
PAGING = "<max-size-bytes>100000</max-size-bytes><page-size-bytes>40000</page-size-bytes>"


def small_pages(node: BrokerNode) -> None:
    broker_xml = node.broker_xml
    setting = "<redistribution-delay>0</redistribution-delay>"
    broker_xml.write_text(broker_xml.read_text().replace(setting, setting + PAGING))


def query(node: BrokerNode, **more: str) -> AtalantaStreamReader:
    given = {"servers": node.server, "queue": QUEUE, "user": USER, "password": PASSWORD}
    settings = {"nodeTimeout": "20s", "positionCache": "0s", "maxOffsetsPerTrigger": "10"}
    return AtalantaStreamReader(read_options({**given, **settings, **more}), COLUMNS, connect)


def batch(reader: AtalantaStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    found: list[int] = []
    for part in reader.partitions(start, end):
        assert isinstance(part, RangePartition)
        for rows in reader.read(part):
            found += rows.column("sequence").to_pylist()
    return found


def damage(node: BrokerNode) -> None:
    """Flips a byte of the second page file."""
    files = sorted(node.instance.rglob("page-*.page"))
    assert len(files) > 2
    data = bytearray(files[1].read_bytes())
    data[-1] ^= 1
    files[1].write_bytes(data)


def test_a_damaged_page_file_stops_the_query_unless_it_may_lose(tmp_path: Path) -> None:
    brokers = BrokerCluster(tmp_path, 1)
    (node,) = brokers.nodes
    small_pages(node)
    with brokers:
        for _ in range(COUNT // 100):
            node.publish(["x" * 500] * 100)
        first = query(node)
        start = first.initialOffset()
        some = first.latestOffset(start, first.getDefaultReadLimit())
        assert batch(first, start, some) == list(range(1, 11))
        everything = first.latestOffset(some, EVERYTHING)
        first.close()
        node.kill()
        damage(node)
        node.start()

        # Planned before the damage: the task finds it.
        with pytest.raises(DataLost, match=r"after they were planned: \d+ to \d+ \(the page file is damaged\)"):
            batch(query(node), some, everything)
        got = batch(query(node, failOnDataLoss="false"), some, everything)
        lost = sorted(set(range(11, COUNT + 1)) - set(got))
        assert got == sorted(got) and 50 < len(lost) < 150 and lost == list(range(lost[0], lost[-1] + 1))

        # Planned after it: the driver finds it.
        span = rf"left the queue unread: {lost[0]} to {lost[-1]} \(the page file is damaged\)"
        with pytest.raises(DataLost, match=span):
            query(node).latestOffset(some, EVERYTHING)
        careless = query(node, failOnDataLoss="false")
        end = careless.latestOffset(some, EVERYTHING)
        careless.commit(some)
        assert batch(careless, some, end) == got
        careless.latestOffset(end, EVERYTHING)  # acknowledges it
        assert query(node).latestOffset(end, EVERYTHING) == end
