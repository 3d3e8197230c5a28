"""The folder of a member: its name stands for the journal in it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from atalanta.runtime.disk.data_folder import open_data_folder
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.group.member_folder import (
    MemberFolder,
    group_id,
    open_member_folder,
    read_member,
)

FIRST = uuid.UUID(int=1)


def opened(journal: Path, title: str = "west", fixed: uuid.UUID | None = None) -> MemberFolder:
    """Opens the folder, as a start does, and closes it."""
    folder = open_member_folder(journal, title, fixed, os.urandom)
    folder.close()
    return folder


def test_a_new_member_has_a_name_of_its_own_and_no_node_id(tmp_path: Path) -> None:
    one, two = opened(tmp_path / "one"), opened(tmp_path / "two")
    assert one.member.startswith("west-") and two.member.startswith("west-") and one.member != two.member
    assert one.node_id is None
    assert read_member(tmp_path / "one") == one.member
    assert read_member(tmp_path) == ""


def test_name_and_node_id_stay(tmp_path: Path) -> None:
    folder = open_member_folder(tmp_path, "a name / of a broker", None, os.urandom)
    folder.identify(FIRST)
    folder.close()
    assert folder.member.startswith("a-name---of-a-broker-")
    again = opened(tmp_path, "another")
    assert (again.member, again.node_id, again.lost) == (folder.member, FIRST, "")


def test_a_member_whose_journal_is_gone_is_another_one(tmp_path: Path) -> None:
    """The register may say of the old name that it has everything."""
    before = opened(tmp_path, fixed=FIRST)
    segment = tmp_path / "journal-00000001"
    segment.write_bytes(b"x")
    assert opened(tmp_path).member == before.member
    segment.unlink()
    after = opened(tmp_path)
    assert after.member != before.member and after.lost == before.member
    assert after.node_id == FIRST


def test_a_member_that_has_stored_nothing_yet_keeps_its_name(tmp_path: Path) -> None:
    """It may be in the register already: a primary that has founded its group, and crashed before its first record."""
    before = opened(tmp_path, fixed=FIRST)
    assert opened(tmp_path).member == before.member


def test_a_journal_of_a_run_is_noted_at_once(tmp_path: Path) -> None:
    folder = open_member_folder(tmp_path, "west", FIRST, os.urandom)
    folder.note_journal()
    assert (tmp_path / "member").read_text() == f"{folder.member}\n"
    (tmp_path / "journal-00000001").write_bytes(b"x")
    folder.note_journal()
    folder.close()
    assert (tmp_path / "member").read_text() == f"{folder.member}\nstored\n"


def test_the_folder_of_a_node_alone_becomes_that_of_a_member(tmp_path: Path) -> None:
    (tmp_path / "node-id").write_text(f"{FIRST}\n")
    (tmp_path / "journal-00000001").write_bytes(b"x")
    folder = opened(tmp_path)
    assert folder.node_id == FIRST
    assert (tmp_path / "member").read_text() == f"{folder.member}\nstored\n"


def test_coordination_ids(tmp_path: Path) -> None:
    assert group_id(str(FIRST)) == FIRST
    assert group_id("orders") == group_id("orders") != group_id("bills")
    assert opened(tmp_path, fixed=group_id("orders")).node_id == group_id("orders")
    with pytest.raises(DataFolderError, match="but coordination-id asks for"):
        opened(tmp_path, fixed=FIRST)
    assert opened(tmp_path).node_id == group_id("orders")


@pytest.mark.parametrize("content", ["", "a/b\n", "name\nother\n"])
def test_a_damaged_name_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "member").write_text(content)
    with pytest.raises(DataFolderError, match="this is no member's name"):
        opened(tmp_path)


def test_a_journal_without_its_node_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal-00000001").write_bytes(b"x")
    with pytest.raises(DataFolderError, match="node-id is missing"):
        opened(tmp_path)


def test_a_node_alone_refuses_the_folder_of_a_member(tmp_path: Path) -> None:
    """The group would not have what it adds."""
    opened(tmp_path, fixed=FIRST)
    with pytest.raises(DataFolderError, match="belongs to a member of a replicated group.*delete .*member"):
        open_data_folder(tmp_path, lambda: FIRST.bytes, tmp_path)
    (tmp_path / "member").unlink()
    open_data_folder(tmp_path, lambda: FIRST.bytes, tmp_path).close()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = open_member_folder(tmp_path, "west", None, os.urandom)
    with pytest.raises(DataFolderError):
        opened(tmp_path)
    folder.close()
    opened(tmp_path)


def test_the_length_of_the_lease_that_was_granted_stays(tmp_path: Path) -> None:
    folder = open_member_folder(tmp_path, "west", FIRST, os.urandom)
    assert folder.granted_ns == 0
    folder.keep_lease(20_000_000_000)
    folder.keep_lease(2_000_000_000)
    folder.close()
    assert opened(tmp_path).granted_ns == 2_000_000_000
    (tmp_path / "granted-lease").write_text("long")
    with pytest.raises(DataFolderError, match="delete it when the former active node of the group has ended"):
        opened(tmp_path)
