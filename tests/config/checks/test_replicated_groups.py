"""`atalanta check` of the members of replicated groups: who backs up whom, what does not fit, and single points."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.instance.check_rig import DISCOVERY, call, static, told, write

VOTERS = "w1:5790,w2:5790,w3:5790"


def member(
    folder: Path,
    name: str,
    others: str,
    role: str = "backup",
    voters: str = VOTERS,
    options: str = "",
    toml: str = "",
    **values: str,
) -> Path:
    """Writes a member of a group that names `others`, one letter each. `toml` is put before the manager."""
    connectors = "".join(f'<connector name="{each}">tcp://host-{each}:61616</connector>' for each in others)
    path = write(
        folder, name, connectors=connectors,
        **{
            "members": static(*others),
            "more": f"<ha-policy><replication><{role}>{options}</{role}></replication></ha-policy>",
            **values,
        },
    )  # fmt: skip
    manager = f'[ha.manager]\nkind = "quorum"\nvoters = "{voters}"\n' if voters else ""
    path.with_name("atalanta.toml").write_text(toml + manager)
    return path


def pair(folder: Path, voters: str = VOTERS) -> tuple[Path, Path]:
    return member(folder, "a", "b", "primary", voters), member(folder, "b", "a", voters=voters)


def hint_of(found: list[dict[str, str]], text: str) -> str:
    (hint,) = [each["hint"] for each in found if text in each["text"]]
    return hint


def test_a_pair_is_named_and_nothing_is_wrong_with_it(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    found = call(a, b, strict=True)
    text = f"it is a backup of {a} by replication; the manager is a majority of the voters w1:5790, w2:5790, w3:5790"
    (position,) = [(each["file"], each["line"]) for each in found if each["text"] == text]
    assert position == (str(b), 19)


def test_one_file_alone_says_nothing_of_its_others(tmp_path: Path) -> None:
    assert told(call(member(tmp_path, "b", "a"), strict=True), "warning") == []


def test_a_backup_of_nobody(tmp_path: Path) -> None:
    (said,) = told(call(member(tmp_path, "b", "a"), write(tmp_path, "x", port="61617")), "warning")
    assert said.startswith("a backup of nobody: no given primary with its group-name names it")


def test_members_of_two_groups_refuse_each_other(tmp_path: Path) -> None:
    a = member(tmp_path, "a", "b", "primary", options="<group-name>one</group-name>")
    b = member(tmp_path, "b", "a", options="<group-name>two</group-name>")
    said = told(call(a, b), "warning")
    assert any("its group-name is 'two', and that one's is 'one': they refuse each other" in each for each in said)


def test_pairs_with_group_names_are_groups_of_their_own(tmp_path: Path) -> None:
    nodes = (("a", "primary", 1), ("b", "backup", 1), ("c", "primary", 2), ("d", "backup", 2))
    files = [
        member(tmp_path, name, "abcd".replace(name, ""), role, options=f"<group-name>{group}</group-name>")
        for name, role, group in nodes
    ]
    found = call(*files, strict=True)
    said = [each["text"].partition(" by ")[0] for each in found if "a backup of" in each["text"]]
    assert said == [f"it is a backup of {files[0]}", f"it is a backup of {files[2]}"]


def test_primaries_that_find_each_other(tmp_path: Path) -> None:
    a, b = member(tmp_path, "a", "b", "primary"), member(tmp_path, "b", "a", "primary")
    found = call(a, b)
    (said,) = told(found, "warning")
    assert "the one that starts later follows the other one" in said
    assert "a group-name for each pair" in hint_of(found, "starts later")
    fixed = "<coordination-id>orders</coordination-id>"
    folder = tmp_path / "fixed"
    a = member(folder, "a", "b", "primary", options=fixed)
    b = member(folder, "b", "a", "primary", options=fixed)
    assert told(call(a, b, strict=True), "warning") == []


def test_a_member_that_does_not_name_another_one(tmp_path: Path) -> None:
    files = [member(tmp_path, "a", "bc", "primary"), member(tmp_path, "b", "ac"), member(tmp_path, "c", "a")]
    found = call(*files)
    (said,) = told(found, "warning")
    assert said == f"it neither names nor hears {files[1]} of its group: while that one is active, it cannot follow it"
    assert "<static-connectors>" in hint_of(found, "neither names nor hears")


def test_members_that_find_each_other_by_discovery(tmp_path: Path) -> None:
    a = member(tmp_path, "a", "", "primary", members=DISCOVERY)
    b = member(tmp_path, "b", "", members=DISCOVERY)
    said = [each["text"] for each in call(a, b, strict=True)]
    assert any(each.startswith(f"it is a backup of {a} by replication") for each in said)
    c = member(tmp_path, "c", "", members=DISCOVERY, group="231.7.7.8", listens="231.7.7.7")
    found = call(a, b, c, status=1)
    assert f"it neither names nor hears {c} of its group: while that one is active, it cannot follow it" in told(
        found, "warning"
    )


def test_what_members_must_have_in_common(tmp_path: Path) -> None:
    a = member(tmp_path, "a", "b", "primary")
    b = member(tmp_path, "b", "a", toml="[ha]\nlease_ms = 500\nmin_in_sync = 2\n")
    found = call(a, b)
    said = [each for each in told(found, "warning") if each.startswith("lease_ms is 500, that of")]
    assert said and "waits for the longer one" in said[0]
    assert any(each.startswith("min_in_sync is 2, that of") for each in told(found, "warning"))
    places = [(each["file"], each["line"]) for each in found if each["text"].startswith(("lease_ms", "min_in_sync"))]
    assert sorted(places) == [(str(b.with_name("atalanta.toml")), 2), (str(b.with_name("atalanta.toml")), 3)]


def test_another_cluster_password(tmp_path: Path) -> None:
    a, b = member(tmp_path, "a", "b", "primary"), member(tmp_path, "b", "a", password="other")
    assert told(call(a, b, status=1), "error") == [f"its cluster-password is not that of {a}"]


def test_members_with_the_same_folders(tmp_path: Path) -> None:
    folders = "".join(
        f"<{kind}-directory>{tmp_path}/{kind}</{kind}-directory>" for kind in ("journal", "paging", "large-messages")
    )
    policy = "<ha-policy><replication><{}/></replication></ha-policy>"
    a = member(tmp_path, "a", "b", more=policy.format("primary") + folders)
    b = member(tmp_path, "b", "a", more=policy.format("backup") + folders)
    said = told(call(a, b, status=1), "error")
    assert [each.partition("-directory")[0] for each in said[1:]] == ["its paging", "its large-messages"]
    assert said[0].startswith("its journal folder")


def test_folders_of_different_nodes(tmp_path: Path) -> None:
    ids = ["0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"]
    a, b = pair(tmp_path)
    for path, node_id in zip((a, b), ids, strict=True):
        journal = path.parent.parent / "data" / "journal"
        journal.mkdir(parents=True)
        (journal / "node-id").write_text(node_id)
    (said,) = told(call(a, b, status=1), "error")
    assert said.startswith(f"its data folder is that of node {ids[1]}") and "they refuse each other" in said
    (b.parent.parent / "data" / "journal" / "node-id").write_text(ids[0])
    assert told(call(a, b), "error") == []  # the node id of a group is that of all its members


# -- the manager ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ('kind = "quorum"\nvoters = "w1:1,w2:1,w3:1"', 'kind = "quorum"\nvoters = "w1:1,w2:1,w4:1"'),
        ('kind = "quorum"\nvoters = "w1:1,w2:1,w3:1"', 'kind = "etcd"\nendpoints = "http://w1:1"'),
        ('kind = "etcd"\nendpoints = "http://e1:1"', 'kind = "etcd"\nendpoints = "http://e2:1"'),
        ('kind = "file"\nlocks-folder = "locks"', 'kind = "file"\nlocks-folder = "locks"'),
        ('kind = "zookeeper"\nconnect-string = "z:1"', 'kind = "zookeeper"\nconnect-string = "z:1"\nnamespace = "n"'),
    ],
)
def test_members_with_two_managers_could_both_serve(tmp_path: Path, mine: str, theirs: str) -> None:
    a = member(tmp_path, "a", "b", "primary", voters="", toml=f"[ha.manager]\n{mine}\n")
    b = member(tmp_path, "b", "a", voters="", toml=f"[ha.manager]\n{theirs}\n")
    found = call(a, b, status=1)
    (said,) = told(found, "error")
    assert said.startswith("its manager is ")
    assert "with two managers two nodes could both serve" in hint_of(found, "its manager is")
    assert [each["line"] for each in found if each["text"] == said] == [1]


def test_one_etcd_is_named_by_any_of_its_servers(tmp_path: Path) -> None:
    manager = '[ha.manager]\nkind = "etcd"\nendpoints = "http://e1:2379,http://{}:2379"\n'
    a = member(tmp_path, "a", "b", "primary", voters="", toml=manager.format("e2"))
    b = member(tmp_path, "b", "a", voters="", toml=manager.format("e3"))
    assert told(call(a, b), "error") == []


def test_voters_at_a_loopback_address(tmp_path: Path) -> None:
    found = call(*pair(tmp_path, "127.0.0.1:5790"), status=1)
    (one, two) = told(found, "error")
    assert one == two and "each host has another one there, and two nodes could both serve" in one


def test_the_password_of_the_voters(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    for path, password in ((a, "one"), (b, "two")):
        (path.parent / "voters").write_text(f"{password}\n")
        toml = path.with_name("atalanta.toml")
        toml.write_text(toml.read_text() + 'password-file = "etc/voters"\n')
    (said,) = told(call(a, b, status=1), "error")
    assert said.startswith("the password-file of its manager has another password") and "one" not in said


def test_a_voter_in_the_guard_is_one_of_the_voters(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    toml = a.with_name("atalanta.toml")
    toml.write_text(toml.read_text() + 'voter = "0.0.0.0:5799"\n')
    (said,) = told(call(a, b, status=1), "error")
    assert said.startswith("the voter of its guard, 0.0.0.0:5799, is not among the voters")


# -- single points --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("voters", "said"),
    [
        ("w1:5790", "the voter w1:5790 is a single point"),
        ("w1:1,w2:1", "2 voters survive the loss of no more of them than 1 would"),
        ("w1:1,w1:2,w3:1", "the host w1 has 2 of 3 voters: without it the manager has no majority"),
        (
            "host-a:5790",
            "the host host-a is a single point: without it the group stops: b cannot take over without the manager",
        ),
        (
            "host-b:5790,host-b:5791,w:1",
            "the host host-b is a single point: without it the group stops: a confirms nothing, because it cannot"
            " remove b without the manager",
        ),
    ],
)
def test_single_points_of_the_manager(tmp_path: Path, voters: str, said: str) -> None:
    found = call(*pair(tmp_path, voters))
    (warning, *more) = [each for each in told(found, "warning") if "has no majority" not in each or "w1" in each]
    assert said in warning and (not more or "w2:1" in voters)
    assert "three voters on three hosts" in hint_of(found, said)


def test_two_members_on_one_host(tmp_path: Path) -> None:
    a = member(tmp_path, "a", "b", "primary", host="host-a")
    b = member(tmp_path, "b", "a", host="host-a", port="61617")
    (said, *_) = [each for each in told(call(a, b), "warning") if "single point" in each]
    assert said == "the host host-a is a single point: without it the group stops: all its members are gone"


def test_as_many_in_sync_as_there_are_members(tmp_path: Path) -> None:
    toml = "[ha]\nmin_in_sync = 2\n"
    a, b = member(tmp_path, "a", "b", "primary", toml=toml), member(tmp_path, "b", "a", toml=toml)
    found = call(a, b)
    said = told(found, "warning")
    assert len(said) == 2
    assert said[0].endswith("b takes over, and confirms nothing: min_in_sync is 2, and 1 is left")
    assert hint_of(found, "b takes over") == "more members than min_in_sync = 2"


def test_a_manager_s_folder_on_the_disk_of_a_member(tmp_path: Path) -> None:
    toml = f'[ha.manager]\nkind = "file"\nlocks-folder = "{tmp_path}/a/locks"\n'
    files = [member(tmp_path, "a", "b", "primary", "", toml=toml), member(tmp_path, "b", "a", voters="", toml=toml)]
    found = call(*files)
    assert hint_of(found, "b cannot take over without the manager") == "a folder that does not lie on a member's disk"
    elsewhere = toml.replace("/a/locks", "/locks")
    (tmp_path / "locks").mkdir()
    for path in files:
        path.with_name("atalanta.toml").write_text(elsewhere)
    found = call(*files, strict=True)
    assert any(f"the manager's folder {tmp_path}/locks is a single point" in each for each in told(found, "info"))


def test_a_pair_without_a_manager_depends_on_the_primary_s_host(tmp_path: Path) -> None:
    found = call(*pair(tmp_path, ""))
    said = told(found, "warning")
    voter = "no manager is configured: the voter host-a:62616, in the guard of this primary"
    assert any(voter in each for each in said)
    stop = "the group stops: b cannot take over without the manager"
    assert f"the host host-a is a single point: without it {stop}" in said
    (text,) = [each for each in told(found, "info") if "it is a backup of" in each]
    assert text.endswith("the manager is the voter host-a:62616")
