"""The data folder: one process at a time, one id for ever, errors that name the place."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from queue import SimpleQueue

import pytest

from atalanta.runtime.disk import folder_lock
from atalanta.runtime.disk.data_folder import open_data_folder
from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.folder_lock import (
    DataFolderDamaged,
    DataFolderError,
    FolderInUse,
    lock_folder,
)
from atalanta.runtime.ids import SystemIds
from tests.runtime.disk.journal_writer import Writer
from tests.waiting import DEADLINE_S

OPEN = """
import sys
from pathlib import Path
from atalanta.runtime.disk.data_folder import open_data_folder
from atalanta.runtime.ids import SystemIds
opened = open_data_folder(Path(sys.argv[1]), SystemIds().uuid)
print(opened.node_id, flush=True)
sys.stdin.read()
"""


def new_id() -> bytes:
    return SystemIds().uuid()


def test_a_new_folder_gets_an_id_that_stays(tmp_path: Path) -> None:
    folder = tmp_path / "instance" / "data"
    first = open_data_folder(folder, new_id)
    assert first.journal == folder / "journal" and first.journal.is_dir()
    assert (folder / "node-id").read_text() == f"{first.node_id}\n"
    assert first.node_id.version == 1
    first.close()
    second = open_data_folder(folder, new_id)
    assert second.node_id == first.node_id
    second.close()
    second.close()


@pytest.mark.process
def test_a_second_process_is_refused(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", OPEN, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        node_id = holder.stdout.readline().decode().strip()
        with pytest.raises(DataFolderError) as caught:
            open_data_folder(tmp_path, new_id)
        assert str(tmp_path) in str(caught.value)
        assert f"process {holder.pid}:" in str(caught.value)
        # A killed holder leaves its lock file, but no lock.
        holder.kill()
        holder.wait()
        after = open_data_folder(tmp_path, new_id)
        assert str(after.node_id) == node_id
        assert (tmp_path / "node.lock").read_text() == f"{os.getpid()}\n"
        after.close()
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


@pytest.mark.process
@pytest.mark.parametrize("moved", [False, True])
def test_a_deleted_lock_file_lets_no_second_process_in(tmp_path: Path, moved: bool) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", OPEN, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        holder.stdout.readline()
        if moved:
            (tmp_path / "node.lock").rename(tmp_path / "aside")
        else:
            (tmp_path / "node.lock").unlink()
        with pytest.raises(DataFolderError, match=f"{tmp_path} is in use"):
            open_data_folder(tmp_path, new_id)
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


@pytest.mark.parametrize("folders_lock", [True, False])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_node_that_lost_its_lock_makes_no_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders_lock: bool, replaced: bool
) -> None:
    """A folder that was replaced, or whose lock file was deleted where folders cannot be locked."""
    if not folders_lock:
        monkeypatch.setattr(folder_lock, "_lock_folder_itself", lambda folder: -1)
    data = tmp_path / "data"
    opened = open_data_folder(data, new_id, data)
    said: SimpleQueue[int | str] = SimpleQueue()
    disk = FileDisk(data, lambda call, item: call(item), said.put, said.put, None, opened.check_locks)
    disk.create("one", 100, b"")
    disk.commit("one", 0, b"x", 1)
    assert said.get(timeout=20) == 1
    if replaced:
        data.rename(tmp_path / "old")
        data.mkdir()
    else:
        (data / "node.lock").unlink()
        if folders_lock:
            disk.create("two", 100, b"")
            disk.commit("two", 0, b"x", 2)
            assert said.get(timeout=20) == 2  # no other process can have it
            disk.close()
            opened.close()
            return
        other = open_data_folder(data, new_id, data)
        other.close()
    disk.create("two", 100, b"")
    disk.commit("two", 0, b"x", 2)
    why = said.get(timeout=20)
    assert isinstance(why, str) and str(data) in why and "lock" in why and "start" in why
    assert not (data / "two").exists()
    disk.close()
    opened.close()


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    first = open_data_folder(tmp_path, new_id)
    with pytest.raises(DataFolderError, match=f"in use by process {os.getpid()}"):
        open_data_folder(tmp_path, new_id)
    first.close()


def test_a_journal_elsewhere_is_locked_as_well(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    first = open_data_folder(tmp_path / "one", new_id, shared)
    with pytest.raises(DataFolderError, match=f"{shared} is in use"):
        open_data_folder(tmp_path / "two", new_id, shared)
    first.close()
    # The refused one holds nothing any more.
    open_data_folder(tmp_path / "two", new_id).close()


def test_everything_in_one_folder(tmp_path: Path) -> None:
    for _ in range(2):
        opened = open_data_folder(tmp_path, new_id, tmp_path)
        writer = Writer(opened.journal)
        writer.journal.recover(writer.records)
        writer.append(3)
        while not writer.journal.idle():
            writer.calls.get(timeout=20)()
        writer.disk.close()
        opened.close()
    assert writer.journal.last == 6 and writer.records.count == 3
    (tmp_path / "node-id").unlink()
    with pytest.raises(DataFolderDamaged, match="node-id is missing"):
        open_data_folder(tmp_path, new_id, tmp_path)


def test_a_bad_id_is_named(tmp_path: Path) -> None:
    (tmp_path / "node-id").write_text("not an id\n")
    with pytest.raises(DataFolderDamaged, match=r"node-id: 'not an id' is no UUID: .* paging files"):
        open_data_folder(tmp_path, new_id)


def test_a_journal_without_its_id_is_not_adopted(tmp_path: Path) -> None:
    first = open_data_folder(tmp_path, new_id)
    (first.journal / "journal-00000000000000000001.log").write_bytes(b"")
    first.close()
    (tmp_path / "node-id").unlink()
    with pytest.raises(DataFolderDamaged, match="node-id is missing"):
        open_data_folder(tmp_path, new_id)
    (tmp_path / "node-id").write_text(str(uuid.UUID(bytes=new_id())))
    open_data_folder(tmp_path, new_id).close()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(DataFolderError, match="this is a file"):
        open_data_folder(tmp_path / "data", new_id)


def test_a_lock_that_is_released_soon_is_waited_for(tmp_path: Path) -> None:
    former = lock_folder(tmp_path)
    with pytest.raises(FolderInUse, match="in use by process"):
        lock_folder(tmp_path)
    ends = threading.Timer(0.1, former.close)
    ends.start()
    lock_folder(tmp_path, wait_s=DEADLINE_S).close()
    ends.join()
