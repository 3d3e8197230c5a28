"""Files of the write-ahead folder that are torn, foreign or gone: exactly once, or an error that says what to do."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from atalanta.spark.errors import DataLost, SparkSourceError
from tests.spark.wal.fake_broker import FakeBroker, FakeServers, Killed
from tests.spark.wal.query_rig import Kill, Query, expected

Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda whole: b"",
    "half": lambda whole: whole[: len(whole) // 2],
    "no end": lambda whole: whole[:-1],
    "part of the magic": lambda whole: whole[:4],
    "one bit": lambda whole: whole[:-30] + bytes([whole[-30] ^ 1]) + whole[-29:],
    "another program's": lambda whole: b"PAR1" + bytes(500),
}
damages = pytest.mark.parametrize("damage", list(DAMAGES.values()), ids=list(DAMAGES))


def killed_at(step: str, folder: Path, nodes: int = 1) -> tuple[Query, list[FakeBroker]]:
    """Returns a query whose first driver ended at this step, with messages left for others."""
    brokers = [FakeBroker(f"node-{number}") for number in range(nodes)]
    for broker in brokers:
        broker.add(6)
    query = Query(str(folder), FakeServers(**{f"b{n}": one for n, one in enumerate(brokers)}))
    kill = Kill(1, Killed())

    def at_step(now: str) -> None:
        if now == step:
            kill(now)

    query.servers.kill = at_step
    with pytest.raises(Killed):
        query.run()
    query.servers.kill = lambda step: None
    return query, brokers


@damages
def test_a_damaged_file_keeps_its_branch_prepared(tmp_path: Path, damage: Damage) -> None:
    query, (broker,) = killed_at("before commit", tmp_path)
    (path,) = tmp_path.glob("*.wal")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    for _ in range(2):
        with pytest.raises(SparkSourceError, match=r"Nothing is lost: its messages are still at node node-0 \(b0:1\)"):
            query.run()
    path.unlink()  # as the error says
    query.run()
    assert Counter(query.rows) == expected(broker)
    assert not broker.prepared


@damages
def test_a_damaged_file_that_is_restored_goes_on(tmp_path: Path, damage: Damage) -> None:
    query, (broker,) = killed_at("before commit", tmp_path)
    (path,) = tmp_path.glob("*.wal")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    with pytest.raises(SparkSourceError, match="Restore the file from a backup"):
        query.run()
    path.write_bytes(whole)
    query.run()
    assert Counter(query.rows) == expected(broker)


def test_a_damaged_file_before_whole_ones_is_removed_with_fail_on_data_loss_false(tmp_path: Path) -> None:
    query, brokers = killed_at("before offset log", tmp_path, 2)
    first = min(tmp_path.glob("*.wal"))
    (broker,) = [one for one in brokers if one.node_id.encode() in first.read_bytes()]
    left = sorted({*range(1, 7)} - set(broker.queues["orders"]))
    epoch, token = first.stem.split("_")[1:]
    seal = next(tmp_path.glob("seal-*")).read_text()
    (folder_id,) = [part for part in seal.split('"') if part.count("-") == 4]
    broker.prepared[folder_id, f"{epoch}/{token}"] = ("orders", left)  # the crash was before its commit
    first.write_bytes(first.read_bytes()[:-3])
    with pytest.raises(SparkSourceError, match="once with failOnDataLoss=false"):
        query.run()
    first.unlink()
    query.run(failOnDataLoss="false")
    assert Counter(query.rows) == expected(*brokers)


@damages
def test_a_file_that_is_damaged_after_its_commit_is_an_error(tmp_path: Path, damage: Damage) -> None:
    query, _ = killed_at("before batch commit", tmp_path)
    (path,) = tmp_path.glob("*.wal")
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        with pytest.raises(DataLost, match="Restore it from a backup: its messages are not at the broker"):
            query.run()


@pytest.mark.parametrize("torn", [b"", b"ATLWAL1\n\0\0\1", bytes(100)])
def test_a_half_written_draft_is_nothing(tmp_path: Path, torn: bytes) -> None:
    query, (broker,) = killed_at("before prepare", tmp_path)
    for path in tmp_path.glob("draft-*"):
        path.write_bytes(torn)  # the driver ended while it wrote
    query.run()
    assert Counter(query.rows) == expected(broker)
    assert not list(tmp_path.glob("draft-*"))


def test_a_file_of_another_folder_is_refused(tmp_path: Path) -> None:
    query, (broker,) = killed_at("before batch commit", tmp_path / "one")
    other, _ = killed_at("before batch commit", tmp_path / "two")
    (path,) = (tmp_path / "two").glob("*.wal")
    number, epoch, token = path.stem.split("_")
    foreign = tmp_path / "one" / f"{int(number) + 1:020d}_{epoch}_{token}.wal"
    shutil.copy(path, foreign)
    foreign = foreign.rename(foreign.with_name(foreign.name.replace(epoch, "0000000001-ffffffff")))
    with pytest.raises(DataLost, match="that of another walLocation"):
        query.run()
    foreign.unlink()
    query.run()
    assert Counter(query.rows) == expected(broker)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "part-0.parquet").write_text("x")
    query, (broker,) = killed_at("before batch commit", tmp_path)
    query.run()
    assert Counter(query.rows) == expected(broker)
    assert (tmp_path / "_SUCCESS").exists() and (tmp_path / "part-0.parquet").exists()


@pytest.mark.parametrize("torn", ["", '{"id": "x', "[]", '{"id": "x"}'])
def test_a_torn_seal_is_an_error(tmp_path: Path, torn: str) -> None:
    query, _ = killed_at("before batch commit", tmp_path)
    next(tmp_path.glob("seal-*")).write_text(torn)
    with pytest.raises(SparkSourceError, match=r"seal-.* in walLocation is damaged"):
        query.run()


def test_a_folder_that_is_emptied_is_an_error(tmp_path: Path) -> None:
    query, _ = killed_at("before batch commit", tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(SparkSourceError, match="a checkpoint and its folder belong together"):
        query.reader().latestOffset(query.planned[-1], ReadMaxRows(4))
