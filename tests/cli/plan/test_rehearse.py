"""`atalanta rehearse`: exactly these files under load and misfortune, and what became of the messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from tests.cli.cluster_files import broker_file, member_file, pair_file


def rehearsed(*arguments: object) -> dict[str, Any]:
    done = CliRunner().invoke(application, ["rehearse", "--json", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def trio(folder: Path, delay: int = 0) -> list[Path]:
    return [broker_file(folder, name, peer, delay=delay) for name, peer in (("a", "b"), ("b", "a"), ("c", "a"))]


def test_consumers_share_and_survive_a_kill(tmp_path: Path) -> None:
    report = rehearsed(*trio(tmp_path), "--load", "orders a->b,c 20/s", "--kill", "b@10s", "--start", "b@20",
                       "--seconds", 30)  # fmt: skip
    (load,) = report["loads"]
    assert load["confirmed"] >= 590
    assert load["got"]["b"] + load["got"]["c"] == load["confirmed"]
    assert (load["lost"], load["waiting"]) == (0, 0)
    assert report["members"] == {"a": 3, "b": 3, "c": 3}


def test_what_gets_stuck_where_and_for_how_long(tmp_path: Path) -> None:
    files = trio(tmp_path, delay=-1)
    report = rehearsed(*files, "--load", "orders a->a 20/s", "--load", "orders b-> 10/s", "--seconds", 20)
    # What is sent at b goes to the consumer at a; only what came before b heard of it stays, for ever (delay -1).
    assert all(backlog["node"] == "b" and backlog["most"] <= 3 for backlog in report["backlogs"])
    assert report["loads"][1]["waiting"] == 0
    report = rehearsed(*files, "--load", "orders b-> 10/s", "--seconds", 20)
    (backlog,) = report["backlogs"]
    assert (backlog["node"], backlog["queue"], backlog["consumers"]) == ("b", "orders", False)
    assert backlog["until_s"] - backlog["since_s"] > 15
    assert report["left"] == [{"node": "b", "queue": "orders", "messages": 200}]


def test_a_cut_holds_messages_up_until_it_is_healed(tmp_path: Path) -> None:
    files = [broker_file(tmp_path, "a", "b"), broker_file(tmp_path, "b", "a")]
    report = rehearsed(*files, "--load", "orders a->b 20/s", "--cut", "a/b@5", "--heal", "@25", "--seconds", 40)
    (load,) = report["loads"]
    assert load["got"] == {"b": load["confirmed"]} and load["repeats"] == 0
    assert 15 < load["longest_s"] < 30


def test_a_node_that_joins_gets_its_share(tmp_path: Path) -> None:
    files = trio(tmp_path)
    report = rehearsed(files[0], files[1], "--join", f"{files[2]}@5", "--seconds", 20)
    assert report["members"] == {"a": 3, "b": 3, "c": 3}
    assert report["loads"][0]["got"] == {"b": 200}


def multicast(folder: Path, filtered: str = "") -> list[Path]:
    """Two nodes with the address `orders` and the queues `archive` and `alerts` on it."""
    files = [broker_file(folder, "a", "b"), broker_file(folder, "b", "a")]
    queues = f'<multicast><queue name="archive"/><queue name="alerts">{filtered}</queue></multicast>'
    for file in files:
        file.write_text(file.read_text().replace('<anycast><queue name="orders"/></anycast>', queues))
    return files


def test_queues_of_one_address_get_their_own_load_counted(tmp_path: Path) -> None:
    report = rehearsed(*multicast(tmp_path), "--seconds", 10)
    assert {load["queue"]: (load["sent"], load["got"]) for load in report["loads"]} == {
        "archive": (100, {"b": 100}),
        "alerts": (100, {"b": 100}),
    }


def test_messages_that_no_load_sent_are_nobody_s(tmp_path: Path) -> None:
    """The nodes' own notifications, say, which a file may keep in a queue."""
    files = [broker_file(tmp_path, "a", "b"), broker_file(tmp_path, "b", "a")]
    kept = '<address name="activemq.notifications"><multicast><queue name="told"/></multicast></address>'
    for file in files:
        file.write_text(file.read_text().replace("<addresses>", f"<addresses>{kept}"))
    report = rehearsed(*files, "--load", "activemq.notifications::told a->b", "--seconds", 10)
    (load,) = report["loads"]
    assert (load["sent"], load["lost"], load["repeats"]) == (100, 0, 0)


def test_no_load_for_queues_whose_filter_nothing_would_match(tmp_path: Path) -> None:
    files = multicast(tmp_path, "<filter string=\"delay > 60\"/>")
    report = rehearsed(*files, "--seconds", 10)
    assert [load["queue"] for load in report["loads"]] == ["archive"]
    asked = ["rehearse", *map(str, files), "--load", "orders::alerts a->b"]
    done = CliRunner().invoke(application, asked)
    assert done.exit_code == 2 and "queue alerts takes only what its filter delay > 60 matches" in done.stderr


def test_the_same_again_gives_the_same(tmp_path: Path) -> None:
    files = trio(tmp_path)
    arguments = (*files, "--kill", "c@3", "--start", "c@6", "--seconds", 10, "--seed", 4)
    assert rehearsed(*arguments)["digest"] == rehearsed(*arguments)["digest"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kill", "d@3"], "there is no such node: a, b, c"),
        (["--kill", "a@soon"], "'soon' is not a time"),
        (["--kill", "a@-5"], "'-5' is not a time"),
        (["--kill", "a@nan"], "'nan' is not a time"),
        (["--load", "orders a->b 1.2.3/s"], "'1.2.3' is not a rate"),
        (["--load", "orders a->z"], "there is no node z"),
        (["--load", "orders"], "written as 'orders a->b,c 20/s'"),
        (["--cut", "a@3"], "two nodes are cut off"),
        (["--kill", "a@300"], "300 s is after the end"),
    ],
)
def test_options_that_cannot_be_meant(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(application, ["rehearse", *map(str, trio(tmp_path)), *arguments])
    assert done.exit_code == 2 and says in done.stderr


def test_the_tables(tmp_path: Path) -> None:
    done = CliRunner().invoke(application, ["rehearse", *map(str, trio(tmp_path)), "--stop", "c@5", "--seconds", "10"])
    assert done.exit_code == 0, done.output
    assert "5 s: stop c" in done.stdout
    assert "down at the end, with what is on their disks: c" in done.stdout
    # Eighty columns are enough for the heads of its columns.
    assert "queue" in done.stdout and "confirmed" in done.stdout and "longest" in done.stdout


def test_of_a_pair_only_the_primary_runs_and_that_is_said(tmp_path: Path) -> None:
    files = [
        pair_file(tmp_path, "b", "c", "backup"),
        pair_file(tmp_path, "a", "c", "primary"),
        broker_file(tmp_path, "c", "a"),
    ]
    report = rehearsed(*files, "--load", "orders a->c 20/s", "--seconds", 10)
    assert report["members"] == {"a": 2, "c": 2}
    (said,) = report["not_simulated"]
    assert said.startswith("b waits for a (shared store); the simulator runs a alone, without takeovers")
    (load,) = report["loads"]
    assert load["lost"] == 0 and load["got"] == {"c": load["confirmed"]}
    killed = CliRunner().invoke(application, ["rehearse", *map(str, files), "--kill", "b@3"])
    assert killed.exit_code == 2 and "there is no such node: a, c" in killed.output
    joined = CliRunner().invoke(application, ["rehearse", *map(str, files[1:]), "--join", f"{files[0]}@3"])
    assert joined.exit_code == 2 and "it is of one shared store with a: give its file with the others" in joined.output


# -- replicated groups --------------------------------------------------------------------------------------
def group(folder: Path, others: str = "") -> list[Path]:
    return [
        member_file(folder, "a", "b" + others, "primary"),
        member_file(folder, "b", "a" + others, "backup"),
    ]


def test_each_active_member_of_a_group_is_killed_in_turn(tmp_path: Path) -> None:
    report = rehearsed(*group(tmp_path), "--load", "orders a->b 20/s")
    assert report["events"] == [
        "20 s: kill the active member of a",
        "45 s: start again all members of a",
        "70 s: kill the active member of a",
        "95 s: start again all members of a",
    ]
    first, second = report["takeovers"]
    assert (first["node"], first["epoch"], second["node"], second["epoch"]) == ("b", 2, "a", 3)
    assert 1.5 < first["after_s"] < 4 and 1.5 < second["after_s"] < 4
    (load,) = report["loads"]
    assert (load["lost"], load["waiting"]) == (0, 0) and load["confirmed"] > 2_000
    assert load["got"] == {"b": load["confirmed"]}
    assert first["after_s"] <= load["longest_pause_s"] < 6
    assert report["down"] == [] and report["not_simulated"] == []


def test_a_member_that_stops_hands_over_and_links_of_the_cluster_follow(tmp_path: Path) -> None:
    files = [*group(tmp_path, "c"), broker_file(tmp_path, "c", "ab")]
    report = rehearsed(*files, "--load", "orders c->a 20/s", "--stop", "a@10", "--seconds", 30)
    (takeover,) = report["takeovers"]
    assert takeover["node"] == "b" and takeover["after_s"] < 0.5
    (load,) = report["loads"]
    assert (load["lost"], load["waiting"]) == (0, 0) and load["got"] == {"a": load["confirmed"]}
    assert report["members"] == {"b": 2, "c": 2} and report["down"] == []


def test_a_group_is_told_in_the_table(tmp_path: Path) -> None:
    files = list(map(str, group(tmp_path)))
    done = CliRunner().invoke(application, ["rehearse", *files, "--cut", "a/b@5", "--heal", "9", "--seconds", "12"])
    assert done.exit_code == 0, done.output
    assert "b serves, epoch 2 of its group" in done.stdout and "without service" not in done.stdout
    assert "s at most nothing was confirmed" in done.stdout
    both = CliRunner().invoke(application, ["rehearse", *files, "--kill", "a@5", "--kill", "b@6", "--seconds", "9"])
    assert "down at the end, with what is on their disks: a, b" in both.stdout
    joined = CliRunner().invoke(application, ["rehearse", files[0], "--join", f"{files[1]}@3"])
    assert joined.exit_code == 2 and "it is of one replication with a: give its file with the others" in joined.output
