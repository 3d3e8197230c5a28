"""Changed files keep what was not changed, and say what was meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atalanta.config.users.users_file import UserFiles, UserLine, UsersError
from atalanta.config.xml.properties import parse_properties, property_line

USERS = """# the people
anna = secret

bert: ENC(1024:00:00)
# the end
"""
ROLES = "amq = anna,\\\n   bert\nops = bert\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "artemis-users.properties").write_text(USERS)
    (tmp_path / "artemis-roles.properties").write_text(ROLES)
    return tmp_path


def users_text(folder: Path) -> str:
    return (folder / "artemis-users.properties").read_text()


def roles_text(folder: Path) -> str:
    return (folder / "artemis-roles.properties").read_text()


def test_list(folder: Path) -> None:
    assert UserFiles(folder).listed() == [
        UserLine("anna", False, ("amq",)),
        UserLine("bert", True, ("amq", "ops")),
    ]


def test_adding_keeps_comments_and_order(folder: Path) -> None:
    UserFiles(folder).add("carl", "pw", ("ops", "new"))
    assert users_text(folder) == USERS + "carl = pw\n"
    assert roles_text(folder) == "amq = anna,\\\n   bert\nops = bert,carl\nnew = carl\n"
    with pytest.raises(UsersError, match="already"):
        UserFiles(folder).add("carl", "pw", ("ops",))


def test_removing_takes_the_user_out_of_every_role(folder: Path) -> None:
    UserFiles(folder).remove("bert")
    assert users_text(folder) == "# the people\nanna = secret\n\n# the end\n"
    assert roles_text(folder) == "amq = anna\n"
    with pytest.raises(UsersError, match="no user 'bert'"):
        UserFiles(folder).remove("bert")


def test_reset_changes_what_is_named(folder: Path) -> None:
    UserFiles(folder).reset("anna", "other", None)
    assert "anna = other\n" in users_text(folder) and roles_text(folder) == ROLES
    UserFiles(folder).reset("bert", None, ("amq",))
    assert "bert: ENC(1024:00:00)" in users_text(folder)
    assert UserFiles(folder).listed()[1].roles == ("amq",)


def test_a_new_file_is_its_owners(tmp_path: Path) -> None:
    UserFiles(tmp_path).add("anna", "pw", ("amq",))
    path = tmp_path / "artemis-users.properties"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(found.name for found in tmp_path.iterdir()) == [
        "artemis-roles.properties",
        "artemis-users.properties",
    ]
    path.chmod(0o640)
    UserFiles(tmp_path).reset("anna", "x", None)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["", " a", "a,b"])
def test_names_that_cannot_be_read_back_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsersError):
        UserFiles(tmp_path).add(name, "pw", ("amq",))
    with pytest.raises(UsersError):
        UserFiles(tmp_path).add("anna", "pw", (name,))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["a", "a b", "a=b", "#x", "ä€😀", "back\\slash", "a:b!"])
@pytest.mark.parametrize("value", ["x", " x ", "=x", "\\", "ä😀", "a\nb", ""])
def test_every_line_is_read_back(key: str, value: str) -> None:
    [entry] = parse_properties(property_line(key, value))
    assert (entry.key, entry.value) == (key, value)
    assert property_line(key, value).isascii()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of somebody else")
def test_a_changed_file_stays_its_owners(folder: Path) -> None:
    for path in folder.iterdir():
        os.chown(path, 1234, 5678)
        path.chmod(0o640)
    UserFiles(folder).add("clara", "secret", ("ops",))
    for path in folder.iterdir():
        found = path.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (1234, 5678, 0o640), path


def test_a_link_stays_and_what_it_leads_to_is_changed(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    users = folder / "artemis-users.properties"
    users.rename(kept / "users")
    users.symlink_to(kept / "users")
    UserFiles(folder).add("clara", "secret", ("ops",))
    assert users.is_symlink() and "clara" in (kept / "users").read_text()
    assert sorted(path.name for path in kept.iterdir()) == ["users"]


def test_a_user_that_is_there_twice_is_changed_and_removed_as_one(tmp_path: Path) -> None:
    """The last entry counts: a password that was set in the first one would be none."""
    users, roles = tmp_path / "artemis-users.properties", tmp_path / "artemis-roles.properties"
    users.write_text("# all\nanna = old\nbert = b\nanna = \\\n  newer\n")
    roles.write_text("amq = anna\namq = anna,bert\n")
    assert UserFiles(tmp_path).listed() == [UserLine("anna", False, ("amq",)), UserLine("bert", False, ("amq",))]
    UserFiles(tmp_path).reset("anna", "newest", None)
    assert users.read_text() == "# all\nbert = b\nanna = newest\n"
    UserFiles(tmp_path).remove("anna")
    assert (users.read_text(), roles.read_text()) == ("# all\nbert = b\n", "amq = bert\n")


def test_a_user_behind_an_entry_that_goes_on_is_none_of_its_lines(tmp_path: Path) -> None:
    (tmp_path / "artemis-users.properties").write_text("anna = old\\")
    (tmp_path / "artemis-roles.properties").write_text("# all\nops = anna\\\n")
    UserFiles(tmp_path).add("bert", "secret", ("amq",))
    assert UserFiles(tmp_path).listed() == [UserLine("anna", False, ("ops",)), UserLine("bert", False, ("amq",))]
    assert [entry.value for entry in UserFiles(tmp_path).users.entries()] == ["old", "secret"]
