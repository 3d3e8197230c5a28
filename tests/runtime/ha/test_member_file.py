"""The files of a pair's processes: what one writes is what another reads, and strange files are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.runtime.ha.member_file import MemberRecord, read_members, remove_member, write_member

MEMBER = MemberRecord("one", "backup", {"my-cluster": {"host": "a", "port": 61616}}, "failback", 7)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "members"
    assert read_members(folder) == []
    write_member(folder, MEMBER)
    other = MemberRecord("another", "primary", {}, "", 0)
    write_member(folder, other)
    assert read_members(folder) == [other, MEMBER]
    remove_member(folder, "one")
    remove_member(folder, "one")
    assert read_members(folder) == [other]


def test_files_of_others_are_left_out(tmp_path: Path) -> None:
    write_member(tmp_path, MEMBER)
    for name, text in {
        "cut": '{"name": "cut", "ro',
        "list": "[]",
        "beat": '{"name": "beat", "role": "backup", "connectors": {}, "wants": "", "beat": true}',
        "renamed": '{"name": "other", "role": "backup", "connectors": {}, "wants": "", "beat": 1}',
        "flat": '{"name": "flat", "role": "backup", "connectors": {"a": 1}, "wants": "", "beat": 1}',
    }.items():
        (tmp_path / f"{name}.json").write_text(text)
    assert read_members(tmp_path) == [MEMBER]


def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="is not a file name"):
        write_member(tmp_path, MemberRecord("../one", "backup", {}, "", 0))
