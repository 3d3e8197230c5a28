"""Several queues of nodes without the log view in one query: each message once, whatever becomes of the queues."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch
from atalanta.spark.errors import OptionError, SparkSourceError
from atalanta.spark.options import read_options
from atalanta.spark.wal import queue_names
from atalanta.spark.wal.browse_reader import BrowseReader
from atalanta.spark.wal.queue_names import expression
from tests.spark.wal.fake_broker import FakeBroker, FakeServers, Killed
from tests.spark.wal.query_rig import SCHEMA, Kill, Query, expected

EU, US = "orders.eu", "orders.us"


@pytest.fixture(autouse=True)
def search_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_names, "SEARCH_EVERY_S", 0.0)


def filled(node_id: str = "node-1", *more: str) -> FakeBroker:
    broker = FakeBroker(node_id, EU, US, *more)
    broker.add(5, EU)
    broker.add(3, US)
    return broker


@pytest.mark.parametrize("names", [{"queue": f"{EU},{US}"}, {"queue": "", "queuePattern": "orders.#"}])
def test_each_message_of_each_queue_is_in_one_batch_wherever_a_driver_ends(
    tmp_path: Path, names: dict[str, str]
) -> None:
    first = len(names)  # other steps with the list than with the pattern
    for at in range(first, 300, 8):
        brokers = [filled("node-1"), filled("node-2", "other")]
        brokers[1].queues["other"] = [1]
        servers = FakeServers(a=brokers[0], b=brokers[1])
        query = Query(str(tmp_path / str(at)), servers, **names)
        kill = servers.kill = Kill(at, Killed())
        try:
            query.run()
        except Killed:
            servers.kill = lambda step: None
            brokers[0].add(1, US)
            query.run()
        wanted = expected(*brokers)
        assert Counter(query.rows) == wanted, kill.where
        assert query.queues == {
            EU: sum(count for row, count in wanted.items() if EU in row),
            US: sum(count for row, count in wanted.items() if US in row),
        }
        assert not any(broker.prepared for broker in brokers), kill.where
        if not kill.where:
            return
    raise AssertionError("the run never ended")


def test_a_pattern_finds_new_queues_and_forgets_deleted_ones(tmp_path: Path) -> None:
    broker = filled()
    query = Query(str(tmp_path), FakeServers(a=broker), queue="", queuePattern="orders.*")
    query.run()
    del broker.queues[EU]  # as Artemis deletes an empty queue that it has created by itself
    broker.add(2, "orders.asia")
    query.run()
    broker.add(1, EU)
    query.run()
    assert Counter(query.rows) == expected(broker)
    assert query.queues == {EU: 6, US: 3, "orders.asia": 2}


def test_a_missing_queue_of_the_first_start_is_told(tmp_path: Path) -> None:
    servers = FakeServers(a=filled())
    with pytest.raises(SparkSourceError, match="has a queue orders.asia"):
        Query(str(tmp_path / "1"), servers, queue=f"{EU},orders.asia").run()
    with pytest.raises(SparkSourceError, match=r"matches 'invoices\.#'"):
        Query(str(tmp_path / "2"), servers, queue="", queuePattern="invoices.#").run()


def test_the_list_of_a_checkpoint_may_grow_and_shrinks_by_removed_queues(tmp_path: Path) -> None:
    broker = filled()
    query = Query(str(tmp_path), FakeServers(a=broker), queue=EU)
    query.run()
    query.run(queue=f"{EU},{US}")
    assert Counter(query.rows) == expected(broker)
    broker.add(1, EU)
    broker.add(1, US)
    with pytest.raises(SparkSourceError, match=f"removedQueues={EU}"):
        query.run(queue=US)
    query.run(queue=US, removedQueues=EU)
    assert query.queues == {EU: 5, US: 4} and broker.queues[EU] == [6]
    query.run(queue="", queuePattern="orders.#")
    assert Counter(query.rows) == expected(broker)


def test_a_run_to_the_end_reads_what_was_there(tmp_path: Path) -> None:
    broker = filled()
    query = Query(str(tmp_path), FakeServers(a=broker), queue="", queuePattern="orders.#")
    reader = query.reader()
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    before, start = start, reader.latestOffset(start, ReadMaxRows(4))
    broker.add(7, US)
    broker.add(7, "orders.asia")
    while before != start:
        before, start = start, reader.latestOffset(start, ReadMaxRows(4))
    assert {name: len(left) for name, left in broker.queues.items()} == {EU: 0, US: 7, "orders.asia": 7}


def test_a_batch_read_browses_every_queue() -> None:
    broker = filled("node-1", "other")
    options = {"servers": "a:1", "sourceMode": "wal", "queuePattern": "orders.#"}
    reader = BrowseReader(read_options(options), SCHEMA, FakeServers(a=broker))
    found = Counter[str]()
    for part in reader.partitions():
        for batch in reader.read(part):
            found.update(batch.column("queue").to_pylist())
    assert found == {EU: 5, US: 3}
    assert [len(left) for left in broker.queues.values()] == [5, 3, 0]


def test_the_pattern_matches_as_at_our_nodes() -> None:
    chance = random.Random(7)
    for _ in range(5_000):
        pattern = "".join(chance.choices("ab.*", k=chance.randrange(1, 6))) + chance.choice(["", "#", ".#"])
        name = "".join(chance.choices("ab.", k=chance.randrange(1, 7)))
        wanted = WildcardMatch(pattern, WildcardConfiguration()).matches(name)
        assert (expression(pattern).fullmatch(name) is not None) == wanted, (pattern, name)
    assert expression("#").fullmatch("any.thing")
    with pytest.raises(OptionError, match="only stand at the end"):
        expression("a.#.b")
