"""Drivers of the write-ahead source that end at every step: each message is in one batch, once."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from atalanta.spark.errors import (
    DataLost,
    GatewayError,
    LeaseTaken,
    NodeUnavailable,
    OptionError,
    SparkSourceError,
)
from atalanta.spark.options import read_options
from atalanta.spark.wal import location
from atalanta.spark.wal.wal_stream_reader import WalStreamReader
from tests.spark.wal.fake_broker import FakeBroker, FakeServers, FakeWalNode, Killed
from tests.spark.wal.query_rig import SCHEMA, Kill, Query, expected


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[FakeServers]:
    """Servers whose drivers also end around the steps of files."""
    servers: list[FakeServers] = []
    publish, close = location.LocalDraft.publish, location.LocalDraft.close

    def killed(draft: location.LocalDraft, name: str) -> None:
        servers[0].kill(f"before {name}")
        publish(draft, name)
        servers[0].kill(f"after {name}")

    def torn(draft: location.LocalDraft) -> None:
        servers[0].kill("before close")
        close(draft)

    monkeypatch.setattr(location.LocalDraft, "publish", killed)
    monkeypatch.setattr(location.LocalDraft, "close", torn)
    return servers


@pytest.mark.parametrize("nodes", [1, 2])
def test_each_message_is_in_one_batch_wherever_a_driver_ends(
    tmp_path: Path, files: list[FakeServers], nodes: int
) -> None:
    for at in range(1, 200):
        brokers = {f"b{n}": FakeBroker(f"node-{n}") for n in range(nodes)}
        servers = FakeServers(**brokers)
        files[:] = [servers]
        for broker in brokers.values():
            broker.add(6)
        spark = Query(str(tmp_path / str(at)), servers)
        kill = servers.kill = Kill(at, Killed())
        try:
            spark.run()
            return  # the run has fewer steps
        except (
            Killed,
            SparkSourceError,
        ):  # the latter: the other node's thread found the folder failed
            where = kill.where
            assert where
        servers.kill = lambda step: None
        for broker in brokers.values():
            broker.add(1)
        spark.run()
        assert Counter(spark.rows) == expected(*brokers.values()), f"killed {where}"
        assert not any(broker.prepared for broker in brokers.values()), where
    raise AssertionError("the run never ended")


def broker_steps(kill: Kill, step: str) -> None:
    """Calls `kill` for steps at the broker only."""
    if "offset" not in step and "batch" not in step:
        kill(step)


def test_a_node_that_is_lost_at_any_step_is_asked_again(
    tmp_path: Path, files: list[FakeServers]
) -> None:
    for at in range(1, 60):
        broker = FakeBroker()
        servers = FakeServers(b=broker)
        files[:] = [FakeServers()]  # the files themselves do not fail
        broker.add(6)
        spark = Query(str(tmp_path / str(at)), servers)
        lost = Kill(at, NodeUnavailable("lost"))
        servers.kill = partial(broker_steps, lost)
        spark.run()
        assert Counter(spark.rows) == expected(broker), lost.where
        if not lost.where:
            return
    raise AssertionError("the run never ended")


@pytest.mark.parametrize("lost", [False, True], ids=["unknown at its node", "its node is lost"])
def test_a_branch_that_a_scale_down_moves_before_its_commit_is_committed_at_the_target(
    tmp_path: Path, lost: bool
) -> None:
    leaving, target = FakeBroker("node-1"), FakeBroker("node-2")
    servers = FakeServers(a=leaving, b=target)
    moved: list[str] = []

    def scale_down(step: str) -> None:
        if step == "before commit" and not moved:
            target.prepared |= leaving.prepared
            moved.extend(branch for _, branch in leaving.prepared)
            leaving.prepared.clear()
            if lost:
                raise NodeUnavailable("the node leaves")
        if step == "after batch commit" and spark.committed == 2:
            target.add(1)  # the query goes on without the first file

    servers.kill = scale_down
    leaving.add(7)
    spark = Query(str(tmp_path), servers)
    spark.run()
    assert moved
    assert Counter(spark.rows) == expected(leaving, target)
    assert not target.prepared and not target.queues["orders"]


def test_a_later_driver_fences_the_earlier_one(tmp_path: Path) -> None:
    broker = FakeBroker()
    spark = Query(str(tmp_path), FakeServers(b=broker))
    first = spark.reader()
    start = first.initialOffset()
    broker.add(3)
    spark.planned.append(start)
    second = spark.reader()
    assert second.initialOffset() == start
    with pytest.raises(LeaseTaken, match="another query took over walLocation"):
        first.latestOffset(start, ReadMaxRows(4))
    spark.run()
    assert Counter(spark.rows) == expected(broker)


def test_an_old_checkpoint_is_told(tmp_path: Path) -> None:
    broker = FakeBroker()
    spark = Query(str(tmp_path), FakeServers(b=broker))
    broker.add(12)
    spark.run()
    reader = spark.reader()
    with pytest.raises(DataLost, match="is it an old copy"):
        reader.latestOffset(spark.planned[0], ReadMaxRows(4))


def test_a_damaged_or_missing_file_is_told(tmp_path: Path) -> None:
    broker = FakeBroker()
    spark = Query(str(tmp_path), FakeServers(b=broker))
    broker.add(3)
    reader = spark.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    (part,) = reader.partitions(start, end)
    (path,) = tmp_path.glob("*.wal")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + b"x" + whole[-19:])
    with pytest.raises(DataLost, match="damaged"):
        list(reader.read(part))
    path.write_bytes(whole[:-30])
    with pytest.raises(DataLost, match="it ends after"):
        list(reader.read(part))
    os.remove(path)
    with pytest.raises(DataLost, match="gone"):
        list(reader.read(part))
    with pytest.raises(DataLost, match="gone"):
        spark.reader().partitions(start, end)


def test_a_folder_of_another_queue_or_checkpoint_is_refused(tmp_path: Path) -> None:
    broker = FakeBroker()
    servers = FakeServers(b=broker)
    spark = Query(str(tmp_path / "one"), servers)
    start = spark.reader().initialOffset()
    with pytest.raises(SparkSourceError, match="belong together"):
        Query(str(tmp_path / "two"), servers).reader().latestOffset(start, ReadMaxRows(1))
    with pytest.raises(SparkSourceError, match="messages of queue orders"):
        other = start | {"queue": "others"}
        spark.reader(queue="others").partitions(other, other)


def test_what_a_node_without_log_view_cannot_do_is_refused() -> None:
    base = {"servers": "a:1", "queue": "q", "sourceMode": "wal"}
    cases = [({}, "walLocation is missing"), ({"startingOffsets": "latest"}, "log view")]
    cases.append(({"startingTimestamp": "1"}, "startingTimestamp"))
    for added, text in cases:
        location_option = {} if "missing" in text else {"walLocation": "folder"}
        with pytest.raises(OptionError, match=text):
            WalStreamReader(read_options(base | location_option | added), SCHEMA, FakeServers())


def test_the_error_of_a_branch_is_seen_although_its_end_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = FakeBroker("node-1")
    broker.add(3)

    def refused(node: FakeWalNode) -> None:
        raise GatewayError("the prepare was refused")

    def ends(node: FakeWalNode) -> None:
        raise GatewayError("transaction is not suspended")

    spark = Query(str(tmp_path / "wal"), FakeServers(b=broker))
    with monkeypatch.context() as patch:
        patch.setattr(FakeWalNode, "prepare", refused)
        patch.setattr(FakeWalNode, "end", ends)
        with pytest.raises(SparkSourceError, match="the prepare was refused"):
            spark.run()
