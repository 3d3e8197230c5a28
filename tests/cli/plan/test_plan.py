"""`atalanta plan`: what files would form, found out by forming it in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.cli.plan.plan import name_others, reached_from
from tests.cli.cluster_files import broker_file, member_file, pair_file


def planned(*arguments: object) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(application, ["plan", "--json", *map(str, arguments)])
    return done.exit_code, json.loads(done.stdout)


def texts(plan: dict[str, Any], level: str) -> str:
    return "\n".join(each["text"] for each in plan["findings"] if each["level"] == level)


def test_a_symmetric_cluster_and_the_node_it_depends_on(tmp_path: Path) -> None:
    files = [broker_file(tmp_path, "a", "b"), broker_file(tmp_path, "b", "a"), broker_file(tmp_path, "c", "a")]
    status, plan = planned(*files)
    assert status == 0
    assert len(plan["links"]) == 6
    assert plan["members"] == {name: ["a", "b", "c"] for name in "abc"}
    found = {(link["source"], link["target"]): link["found"] for link in plan["links"]}
    assert found["c", "a"] == "connector to-a"
    assert found["c", "b"] == "the topology"
    assert "without a at their start the others are parted: b | c" in texts(plan, "warning")
    assert "without b" not in texts(plan, "warning")


def test_hops_in_a_chain_and_links_without_one_back(tmp_path: Path) -> None:
    files = [
        broker_file(tmp_path, "x", "y", 2, True),
        broker_file(tmp_path, "y", "z", 2, True),
        broker_file(tmp_path, "z", "", 2, True),
    ]
    _, plan = planned(*files)
    hops = {(reach["source"], reach["target"]): reach["hops"] for reach in plan["reach"]}
    assert hops == {("x", "y"): 1, ("x", "z"): 2, ("y", "z"): 1}
    assert "x sends to y, but y not to x" in texts(plan, "info")


def test_nodes_that_never_meet(tmp_path: Path) -> None:
    status, plan = planned(broker_file(tmp_path, "a", ""), broker_file(tmp_path, "b", ""))
    assert status == 1
    assert plan["islands"] == [["a"], ["b"]]
    assert "do not become one cluster: a | b" in texts(plan, "error")


@pytest.mark.parametrize("name", ["tcp://headless:61616", "srv://_core._tcp.headless"])
def test_nodes_behind_one_name_of_the_dns(tmp_path: Path, name: str) -> None:
    (tmp_path / "atalanta.toml").write_text(f'dns-discovery = "{name}"')
    status, plan = planned(broker_file(tmp_path, "a", ""), broker_file(tmp_path, "b", ""))
    assert status == 0
    assert plan["members"] == {"a": ["a", "b"], "b": ["a", "b"]}
    assert [link["found"] for link in plan["links"]] == ["the DNS"] * 2


@pytest.mark.parametrize(
    "stack",
    [
        '<TCP/><TCPPING initial_hosts="host-a[7800]"/>',
        '<TCP/><FILE_PING location="/shared"/>',
        "<UDP/><PING/>",
        "<TCP/><MPING/>",
    ],
)
def test_nodes_that_meet_at_a_jgroups_stack(tmp_path: Path, stack: str) -> None:
    (tmp_path / "stack.xml").write_text(f"<config>{stack}</config>")
    group = "<jgroups-file>stack.xml</jgroups-file><jgroups-channel>c</jgroups-channel>"
    groups = (
        f'<broadcast-groups><broadcast-group name="b">{group}<connector-ref>self</connector-ref>'
        f'</broadcast-group></broadcast-groups><discovery-groups><discovery-group name="d">{group}'
        "</discovery-group></discovery-groups><cluster-connections>"
    )
    files = [broker_file(tmp_path, name, "") for name in "abc"]
    for file in files:
        text = file.read_text().replace("<cluster-connections>", groups)
        reference = '<discovery-group-ref discovery-group-name="d"/>'
        file.write_text(text.replace("<static-connectors></static-connectors>", reference))
    status, plan = planned(*files)
    assert status == 0, plan["findings"]
    assert plan["members"] == {name: ["a", "b", "c"] for name in "abc"}


def test_another_password_keeps_a_node_out(tmp_path: Path) -> None:
    files = [broker_file(tmp_path, "a", "b"), broker_file(tmp_path, "b", "a", password="other")]
    status, plan = planned(*files)
    assert status == 1 and plan["links"] == []


def test_what_the_address_of_a_connection_leaves_out(tmp_path: Path) -> None:
    files = [broker_file(tmp_path, "a", "b"), broker_file(tmp_path, "b", "a", address="news")]
    _, plan = planned(*files)
    assert [(reach["source"], reach["target"]) for reach in plan["reach"]] == [("a", "b")]


def test_the_tables_and_the_drawing(tmp_path: Path) -> None:
    files = [broker_file(tmp_path, "a", "b"), broker_file(tmp_path, "b", "a")]
    svg = tmp_path / "plan.svg"
    done = CliRunner().invoke(application, ["plan", *map(str, files), "--svg", str(svg)])
    assert done.exit_code == 0
    assert "connector to-b" in done.stdout
    assert "nodes: 2, links: 2, clusters: 1" in done.stdout
    root = ElementTree.parse(svg).getroot()
    lines = [element for element in root if element.tag.endswith("}line")]
    assert len(lines) == 2
    words = [element.text for element in root if element.tag.endswith("}text")]
    assert {"a", "b", "connector to-a", "connector to-b"} <= set(words)


def test_the_drawing_of_many_nodes_says_once_what_holds_for_most_links(tmp_path: Path) -> None:
    files = [broker_file(tmp_path, name, "a" if name != "a" else "b") for name in "abcde"]
    svg = tmp_path / "plan.svg"
    assert CliRunner().invoke(application, ["plan", *map(str, files), "--svg", str(svg)]).exit_code == 0
    root = ElementTree.parse(svg).getroot()
    words = [str(element.text) for element in root if element.tag.endswith("}text")]
    assert "5 nodes, 20 links" in words[0] and "found by the topology" in words[0]
    assert words.count("connector to-a") == 4 and "the topology" not in words
    assert "the others need it" in words


def test_nine_nodes_fit_a_terminal_of_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    files = [broker_file(tmp_path, name, "a" if name != "a" else "b") for name in "abcdefghi"]
    done = CliRunner().invoke(application, ["plan", *map(str, files)])
    assert done.exit_code == 0
    tables = done.stdout.partition("warning")[0].splitlines()
    assert len(tables) < 35 and max(map(len, tables)) <= 80
    shown = " ".join(" ".join(line.strip("│").split()) for line in tables)
    assert "connector to-b" in shown and "b, c, d, e, f, g, h, i" not in shown
    assert "each → all others (1)" in shown


def test_who_is_missing_is_named_where_that_is_shorter() -> None:
    nodes = list("abcdef")
    assert name_others(nodes, "a", list("bcdef")) == "all others"
    assert name_others(nodes, "a", list("bcde")) == "all but f"
    assert name_others(nodes, "a", list("bc")) == "b, c"
    assert reached_from(nodes, {"a": {1: ["b"], 2: list("cdef")}}) == "a → b (1), all but b (2)"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.xml"
    path.write_text("<configuration>\n<core><nmae/></core></configuration>")
    done = CliRunner().invoke(application, ["plan", str(path)])
    assert done.exit_code == 1 and f"{path}:2: unknown element <nmae>" in done.stderr


# -- pairs with a shared store ------------------------------------------------------------------------------
def losses(plan: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["what"]: (each["then"], each["lost"]) for each in plan["losses"]}


def test_a_pair_is_one_node_of_the_cluster_and_its_losses_are_listed(tmp_path: Path) -> None:
    files = [
        pair_file(tmp_path, "a", "c", "primary"),
        pair_file(tmp_path, "b", "c", "backup"),
        broker_file(tmp_path, "c", "ab"),
    ]
    status, plan = planned(*files)
    assert status == 0
    store = f"{tmp_path}/store/journal"
    assert plan["pairs"] == {store: ["a", "b"]}
    assert plan["nodes"] == ["a", "c"] and plan["members"] == {"a": ["a", "c"], "c": ["a", "c"]}
    found = losses(plan)
    assert found["host host-a"] == ("b takes over after about 2 s", "those that are not durable")
    assert found["host host-b"] == ("a serves, with a backup less", "nothing")
    then, lost = found["host host-c"]
    assert then == "c stops" and lost.endswith("the rest waits for its return, and is lost with its disk")
    assert found[f"folder {store}"][0] == "a stops, and no other can take over"
    assert texts(plan, "error") == "" and "without" not in texts(plan, "warning")


def test_a_pair_on_one_host_ends_with_it(tmp_path: Path) -> None:
    files = [pair_file(tmp_path, name, "", role) for name, role in (("a", "primary"), ("b", "backup"))]
    for path in files:
        path.write_text(path.read_text().replace("host-b", "host-a"))
    found = losses(planned(*files)[1])
    then, lost = found["host host-a"]
    assert then == "the whole pair is gone" and lost.endswith(f"the rest waits in {tmp_path}/store/journal")


def test_a_node_whose_backup_is_found_too_is_not_one_that_the_others_need(tmp_path: Path) -> None:
    def critical(second: str) -> str:
        files = [
            pair_file(tmp_path, "a", "cd", "primary"),
            pair_file(tmp_path, "b", second, "backup"),
            broker_file(tmp_path, "c", "a"),
            broker_file(tmp_path, "d", "a"),
        ]
        return texts(planned(*files)[1], "warning")

    assert "without a at their start the others are parted" not in critical("cd")
    assert "without a at their start the others are parted" in critical("c")


def test_the_table_of_losses_and_the_pair_are_printed(tmp_path: Path) -> None:
    files = [pair_file(tmp_path, name, "", role) for name, role in (("a", "primary"), ("b", "backup"))]
    done = CliRunner().invoke(application, ["plan", *map(str, files)], env={"COLUMNS": "200"})
    assert "what is lost" in done.output and "b takes over after about 2 s" in done.output
    assert "who backs up whom" in done.output and "shared store" in done.output
    single = CliRunner().invoke(application, ["plan", str(broker_file(tmp_path, "c", ""))])
    assert "what is lost" not in single.output


def test_two_primaries_with_one_folder_never_run_together(tmp_path: Path) -> None:
    files = [pair_file(tmp_path, name, "", "primary") for name in "ab"]
    status, plan = planned(*files)
    assert status == 1 and plan["nodes"] == ["a"]
    assert "two primaries have the journal folder" in texts(plan, "error")


# -- replicated groups --------------------------------------------------------------------------------------
def test_a_group_is_one_node_of_the_cluster_and_its_losses_are_listed(tmp_path: Path) -> None:
    voters = "host-a:5790,host-b:5790,w:5790"
    files = [
        member_file(tmp_path, "b", "ac", "backup", voters),
        member_file(tmp_path, "a", "bc", "primary", voters),
        broker_file(tmp_path, "c", "ab"),
    ]
    status, plan = planned(*files)
    assert status == 0
    assert plan["nodes"] == ["a", "c"] and plan["members"] == {"a": ["a", "c"], "c": ["a", "c"]}
    (backing,) = plan["backups"]
    assert (backing["serves"], backing["waiting"], backing["form"]) == ("a", ["b"], "replication")
    assert backing["decided_by"] == f"a majority of the voters {voters.replace(',', ', ')}"
    rows = {each["what"]: each for each in plan["losses"]}
    majority = "2 of 3 voters left: a majority"
    assert {what: (row["gone"], row["then"], row["manager"]) for what, row in rows.items()} == {
        "host host-a": (["a", "voter host-a:5790"], "b takes over after about 2 s", majority),
        "host host-b": (["b", "voter host-b:5790"], "a goes on, without a replica", majority),
        "host host-c": (["c"], "c stops", ""),
        "host w": (["voter w:5790"], "a goes on", majority),
    }
    assert rows["host host-a"]["lost"] == "those that are not durable" and rows["host host-b"]["lost"] == "nothing"
    assert [what for what, row in rows.items() if row["stops"]] == ["host host-c"]


def test_losses_that_stop_a_group(tmp_path: Path) -> None:
    def lost(voters: str, folder: str) -> dict[str, tuple[str, str, str]]:
        (tmp_path / folder).mkdir()
        files = [
            member_file(tmp_path / folder, name, other, role, voters)
            for name, other, role in (("a", "b", "primary"), ("b", "a", "backup"))
        ]
        rows = planned(*files)[1]["losses"]
        return {row["what"]: (row["then"], row["lost"], row["manager"]) for row in rows if row["stops"]}

    then, what, manager = lost("host-a:5790", "one")["host host-a"]
    assert then == "the group stops: b cannot take over without the manager"
    assert what == "those that are not durable; the rest waits until a or the manager is back" and manager == "gone"
    then, what, manager = lost("host-b:1,host-b:2,host-a:1", "two")["host host-b"]
    assert then == "the group stops: a confirms nothing, because it cannot remove b without the manager"
    assert what == "nothing" and manager == "1 of 3 voters left: no majority"


def test_an_asynchronous_member_is_not_needed_and_does_not_take_over(tmp_path: Path) -> None:
    files = [
        member_file(tmp_path, "a", "bc", "primary", "w:1"),
        member_file(tmp_path, "b", "ac", "backup", "w:1"),
        member_file(tmp_path, "c", "ab", "backup", "w:1"),
    ]
    own = tmp_path / "b.atalanta.toml"
    own.write_text("[ha]\nasynchronous = true\n" + own.read_text())
    status, plan = planned(*files)
    assert status == 0
    (backing,) = plan["backups"]
    assert backing["waiting"] == ["c", "b"] and backing["asynchronous"] == ["b"]
    found = losses(plan)
    assert found["host host-a"][0] == "c takes over after about 2 s"
    assert found["host host-b"] == ("a goes on, without the copy of b", "nothing")
    assert found["host host-c"] == ("a goes on, without a replica", "nothing")
    status, plan = planned(files[0], files[1])
    then, lost = losses(plan)["host host-a"]
    assert then == "the group stops: only b is left, which serves at an operator's order"
    assert lost == "those that are not durable; of the rest what b did not have yet, if the others are lost"


def test_the_tables_of_groups_are_printed_and_drawn(tmp_path: Path) -> None:
    files = [
        member_file(tmp_path, "a", "bc", "primary", "w:5790"),
        member_file(tmp_path, "b", "ac", "backup", "w:5790"),
        member_file(tmp_path, "c", "ab", "backup", "w:5790"),
    ]
    drawing = tmp_path / "plan.svg"
    words = ["plan", "--svg", str(drawing), *map(str, files)]
    done = CliRunner().invoke(application, words, env={"COLUMNS": "200"})
    table = [" ".join(line.replace("│", " ").split()) for line in done.output.splitlines()]
    assert "a b, c replication the voter w:5790" in table
    assert "host host-b b a goes on, with 1 of 2 replicas nothing" in table
    no_takeover = "a goes on; without the manager no member can take over, and none can be removed"
    assert f"host w voter w:5790 {no_takeover} nothing gone" in table
    text = drawing.read_text()
    ElementTree.fromstring(text)
    assert "waits: b, c" in text
