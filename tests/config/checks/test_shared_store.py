"""`atalanta check` of nodes with a shared store: who backs up whom, and what would not work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.instance.check_rig import call, told, write

PRIMARY = "<ha-policy><shared-store><primary/></shared-store></ha-policy>"
BACKUP = "<ha-policy><shared-store><backup/></shared-store></ha-policy>"
FOLDERS = """<journal-directory>{journal}</journal-directory><paging-directory>{pages}</paging-directory>
<large-messages-directory>{large}</large-messages-directory>"""


def node(
    folder: Path, name: str, policy: str = PRIMARY, store: str = "store", more: str = "", **values: str
) -> Path:
    """Writes a node whose data folders lie in `store`; `pages` and `large` may be elsewhere."""
    root = folder / store
    folders = FOLDERS.format(
        journal=root / "journal",
        pages=folder / values.pop("pages", store) / "paging",
        large=folder / values.pop("large", store) / "large",
    )
    return write(folder, name, more=policy + folders + more, **values)


def test_a_pair_is_named_and_nothing_is_wrong_with_it(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a"), node(tmp_path, "b", BACKUP)
    found = call(a, b, strict=True)
    said = told(found, "info")
    journal = tmp_path / "store" / "journal"
    assert f"it is a backup of {a}: both have the journal folder {journal}" in said
    assert any(f"{journal} is a single point" in each for each in said)
    (position,) = [(each["file"], each["line"]) for each in found if "it is a backup" in each["text"]]
    assert position == (str(b), 19)


def test_one_journal_without_the_policy_stays_an_error(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a", ""), node(tmp_path, "b", BACKUP)
    assert any("its journal folder" in each for each in told(call(a, b, status=1), "error"))


def test_two_primaries_with_one_folder(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a"), node(tmp_path, "b")
    (said,) = told(call(a, b, status=1), "error")
    assert said.startswith("two primaries have the journal folder") and str(a) in said


def test_a_backup_of_nobody(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a"), node(tmp_path, "b", BACKUP, "stor")
    found = call(a, b)
    (said,) = told(found, "warning")
    assert "a backup of nobody: no given primary has its journal folder" in said and "stor" in said
    assert any("no given backup has its journal folder" in each for each in told(found, "info"))


def test_one_file_alone_says_nothing_of_its_partner(tmp_path: Path) -> None:
    assert told(call(node(tmp_path, "b", BACKUP), strict=True), "warning") == []


@pytest.mark.parametrize(("which", "name"), [("pages", "paging-directory"), ("large", "large-messages-directory")])
def test_every_data_folder_is_shared(tmp_path: Path, which: str, name: str) -> None:
    a, b = node(tmp_path, "a"), node(tmp_path, "b", BACKUP, **{which: "own"})
    (said,) = told(call(a, b, status=1), "error")
    assert said.startswith(f"its {name} is") and "messages would be missing" in said


def test_leases_of_different_length(tmp_path: Path) -> None:
    a, b = node(tmp_path, "a"), node(tmp_path, "b", BACKUP)
    b.with_name("atalanta.toml").write_text("[ha]\nlease_ms = 500\n")
    (said,) = told(call(a, b), "warning")
    assert "lease_ms is 500, that of" in said and "is 2000" in said


def test_a_pair_on_one_host(tmp_path: Path) -> None:
    a = node(tmp_path, "a", host="host-a")
    b = node(tmp_path, "b", BACKUP, host="host-a", port="61617")
    (said,) = told(call(a, b), "warning")
    assert "announce the host host-a: they end with it" in said


def test_a_link_in_the_path_does_not_part_a_pair(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    a, b = node(tmp_path, "a"), node(tmp_path, "b", BACKUP, "link")
    assert any("it is a backup of" in each for each in told(call(a, b, strict=True), "info"))


def test_both_nodes_of_a_pair_have_the_local_grouping_handler(tmp_path: Path) -> None:
    handler = "<grouping-handler name='g'><type>LOCAL</type><address>jms</address></grouping-handler>"
    a, b = node(tmp_path, "a", more=handler), node(tmp_path, "b", BACKUP, more=handler)
    assert told(call(a, b), "error") == []
