"""Parquet files that no commit names are removed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.flights.tidy import TornLog, remove_uncommitted


def add_file(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1")
    path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    return path


def commit(folder: Path, name: str, *files: Path) -> None:
    log = folder / "_spark_metadata"
    log.mkdir(exist_ok=True)
    entries = [json.dumps({"path": path.as_uri(), "size": 4, "isDir": False, "action": "add"}) for path in files]
    (log / name).write_text("\n".join(["v1", *entries]))


def test_files_without_a_commit_go(tmp_path: Path) -> None:
    kept = [add_file(tmp_path, f"month={month}/part-{month}.c000.parquet") for month in (1, 2)]
    orphan = add_file(tmp_path, "month=2/part-9.c000.parquet")
    commit(tmp_path, "0", kept[0])
    commit(tmp_path, "1", kept[1])
    assert remove_uncommitted(tmp_path) == [orphan]
    assert sorted(tmp_path.rglob("*.parquet")) == kept
    assert not orphan.with_name(f".{orphan.name}.crc").exists()
    assert kept[0].with_name(f".{kept[0].name}.crc").exists()
    assert remove_uncommitted(tmp_path) == []


def test_a_compacted_log_counts_for_all_before_it(tmp_path: Path) -> None:
    files = [add_file(tmp_path, f"part-{number}.parquet") for number in range(12)]
    for number in range(9):
        commit(tmp_path, str(number), files[number])
    commit(tmp_path, "9.compact", *files[:10])
    commit(tmp_path, "10", files[10])
    (tmp_path / "_spark_metadata" / "3").unlink()
    assert remove_uncommitted(tmp_path) == [files[11]]


def test_names_are_unquoted(tmp_path: Path) -> None:
    file = add_file(tmp_path, "name=a b/part-0.parquet")
    commit(tmp_path, "0", file)
    assert "%20" in (tmp_path / "_spark_metadata" / "0").read_text()
    assert remove_uncommitted(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("1", "v2\n", "v1"),
        ("1", "v1\n{torn", ":2: no entry of a file"),
        ("2", "v1\n", r"batches \[1\] are missing"),
    ],
)
def test_a_log_that_cannot_be_read_removes_nothing(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    file, orphan = add_file(tmp_path, "part-0.parquet"), add_file(tmp_path, "part-1.parquet")
    commit(tmp_path, "0", file)
    (tmp_path / "_spark_metadata" / name).write_text(text)
    with pytest.raises(TornLog, match=complaint):
        remove_uncommitted(tmp_path)
    assert orphan.exists()


def test_a_committed_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    file = add_file(tmp_path, "part-0.parquet")
    commit(tmp_path, "0", file)
    file.unlink()
    with pytest.raises(TornLog, match="1 committed files are not there"):
        remove_uncommitted(tmp_path)
