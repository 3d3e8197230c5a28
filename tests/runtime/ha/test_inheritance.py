"""What an epoch inherits: every confirmed record, no file that two processes write, and nothing that is of no use."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path

import pytest

from atalanta.runtime.disk.data_folder import NODE_ID_NAME, open_data_folder
from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import segment_name
from tests.runtime.ha.epoch_writer import EpochWriter
from tests.runtime.ha.store_rig import epoch_folder, new_id, store, taken
from tests.store.journal_rig import Rig
from tests.store.version_7 import version_7


def inode(path: Path) -> int:
    return path.stat().st_ino


def test_sealed_segments_are_linked_and_the_last_ones_copied(tmp_path: Path) -> None:
    first = taken(store(tmp_path))
    writer = EpochWriter(first.journal, store(tmp_path).node_id.bytes)
    writer.begin()
    writer.fill(5)
    writer.close()
    second = taken(store(tmp_path))
    names = sorted(name for name in os.listdir(second.journal) if name.startswith("journal-"))
    assert names == sorted(name for name in os.listdir(first.journal) if name.startswith("journal-"))
    shared = [name for name in names if inode(first.journal / name) == inode(second.journal / name)]
    current = writer.journal.segments[-1].number
    assert shared == [segment_name(number) for number in range(1, current)]
    heir = EpochWriter(second.journal, store(tmp_path).node_id.bytes)
    heir.begin()
    assert heir.records.count == writer.journal.durable
    heir.close()
    first.abandon()
    second.stop("released")


def test_a_journal_of_format_version_7_is_inherited_in_the_same_way(tmp_path: Path) -> None:
    rig, payloads = version_7()
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / NODE_ID_NAME).write_text(f"{uuid.UUID(bytes=rig.config.journal_id)}\n")
    first = taken(store(tmp_path))
    for name, content in rig.disk.files.items():
        (first.journal / name).write_bytes(bytes(content))
    second = taken(store(tmp_path))
    names = [segment_name(number) for number in (1, 2, 3)]
    assert [inode(first.journal / name) == inode(second.journal / name) for name in names] == [True, False, False]
    heir = Rig(rig.config)
    heir.disk.files = {name: bytearray((second.journal / name).read_bytes()) for name in names}
    assert heir.start().payloads() == payloads
    first.abandon()
    second.stop("released")


def test_a_late_write_of_the_earlier_holder_is_not_seen(tmp_path: Path) -> None:
    node_id = store(tmp_path).node_id.bytes
    first = taken(store(tmp_path))
    writer = EpochWriter(first.journal, node_id)
    writer.begin()
    writer.fill(2)
    confirmed = writer.journal.durable
    second = taken(store(tmp_path))
    writer.fill(3)  # it knows of nothing: these are confirmed to nobody, see the check in FileDisk
    heir = EpochWriter(second.journal, node_id)
    heir.begin()
    assert heir.records.count == confirmed
    heir.fill(3)
    again = EpochWriter(second.journal, node_id)
    writer.close()
    heir.close()
    again.begin()
    assert again.records.count == heir.journal.durable
    again.close()
    first.abandon()
    second.stop("released")


def test_files_are_copied_where_links_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node_id = store(tmp_path).node_id.bytes
    first = taken(store(tmp_path))
    writer = EpochWriter(first.journal, node_id)
    writer.begin()
    writer.fill(4)
    writer.close()

    def refused(source: object, target: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    second = taken(store(tmp_path))
    heir = EpochWriter(second.journal, node_id)
    heir.begin()
    assert heir.records.count == writer.journal.durable
    heir.close()
    first.abandon()
    second.stop("released")


def test_a_segment_that_the_earlier_holder_drops_meanwhile_ends_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drops them in order, the oldest first: those before a missing one are not needed, and leave no gap."""
    node_id = store(tmp_path).node_id.bytes
    first = taken(store(tmp_path))
    writer = EpochWriter(first.journal, node_id)
    writer.begin()
    writer.fill(5)
    writer.close()
    link = os.link

    def dropping(source: Path, target: Path) -> None:
        if source.name == segment_name(2):
            for number in (1, 2):
                (first.journal / segment_name(number)).unlink()
        link(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", dropping)
        second = taken(store(tmp_path))
    assert not (second.journal / segment_name(1)).exists()
    assert (second.journal / segment_name(3)).exists()
    first.abandon()
    second.stop("released")


def test_a_journal_with_a_gap_is_not_made_whole(tmp_path: Path) -> None:
    node_id = store(tmp_path).node_id.bytes
    first = taken(store(tmp_path))
    writer = EpochWriter(first.journal, node_id)
    writer.begin()
    writer.fill(5)
    writer.close()
    (first.journal / segment_name(2)).unlink()  # by an operator
    second = taken(store(tmp_path))
    with pytest.raises(JournalDamaged, match="the file is missing"):
        EpochWriter(second.journal, node_id).begin()
    first.abandon()
    second.stop("released")


def test_pages_and_large_messages_and_settings_are_linked_and_the_rest_is_left(tmp_path: Path) -> None:
    first = taken(store(tmp_path))
    (first.pages / "page-00000000000000000001.page").write_bytes(b"page")
    (first.large / "77.msg").write_bytes(b"body")
    (first.journal / "management-settings.xml").write_text("settings")
    (first.journal / "reserve-1").write_bytes(b"room")
    (first.journal / "management-settings.xml.new").write_text("half")
    second = taken(store(tmp_path))
    assert inode(first.pages / "page-00000000000000000001.page") == inode(
        second.pages / "page-00000000000000000001.page"
    )
    assert (second.large / "77.msg").read_bytes() == b"body"
    assert sorted(os.listdir(second.journal)) == ["complete", "holder.lock", "lease", "management-settings.xml"]
    assert not (first.journal / "reserve-1").exists()  # its room may be needed for the copies
    second._empty_earlier()
    assert list(first.journal.iterdir()) == [] and not first.pages.exists() and not first.large.exists()
    assert (second.large / "77.msg").read_bytes() == b"body"
    first.abandon()
    second.stop("released")


def test_the_folder_of_a_node_becomes_that_of_a_pair(tmp_path: Path) -> None:
    plain = open_data_folder(tmp_path / "journal", new_id, tmp_path / "journal")
    writer = EpochWriter(plain.journal, plain.node_id.bytes)
    writer.begin()
    writer.fill(4)
    writer.close()
    pages, large = tmp_path / "paging" / str(plain.node_id), tmp_path / "large" / str(plain.node_id)
    for folder, name in ((pages, "page-00000000000000000001.page"), (large, "9.msg")):
        folder.mkdir(parents=True)
        (folder / name).write_bytes(b"kept")
    plain.close()
    first = taken(store(tmp_path))
    assert (first.epoch, first.source) == (1, 0)
    assert (first.pages / "page-00000000000000000001.page").read_bytes() == b"kept"
    assert (first.large / "9.msg").read_bytes() == b"kept"
    first._empty_earlier()
    assert sorted(os.listdir(tmp_path / "journal")) == ["epochs", "node-id", "node.lock"]
    assert os.listdir(pages) == ["epochs"] and os.listdir(large) == ["epochs"]
    heir = EpochWriter(first.journal, plain.node_id.bytes)
    heir.begin()
    assert heir.records.count == writer.journal.durable
    heir.close()
    first.stop("released")


def test_a_taker_without_room_leaves_the_epoch_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = store(tmp_path).node_id.bytes
    first = taken(store(tmp_path))
    writer = EpochWriter(first.journal, node_id)
    writer.begin()
    writer.fill(3)
    writer.close()
    first.stop("released")

    def full(source: object, target: object, length: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patched:
        patched.setattr("shutil.copyfileobj", full)
        second = store(tmp_path)
        second.look()
        with pytest.raises(OSError, match="full"):
            second.take()
    left = {path.name for path in epoch_folder(tmp_path, 2).iterdir()}
    assert left == {"lease", "holder.lock"}
    third = taken(store(tmp_path))
    assert (third.epoch, third.source) == (3, 1)
    heir = EpochWriter(third.journal, node_id)
    heir.begin()
    assert heir.records.count == writer.journal.durable
    heir.close()
    third.stop("released")


