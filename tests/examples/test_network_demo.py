"""The network demo without its processes: what it tells, draws and demands."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from examples.network import clients
from examples.network.clients import ToolMissing, java_command
from examples.network.picture import draw
from examples.network.places import PLACES, ZONES
from examples.network.summary import is_fine, print_summary, write_report
from examples.network.timeline import Outage, Phase, Timeline


def run_with(lost: int = 0, last: str = "north-1") -> Timeline:
    """Two clients; the one in the north loses its broker, and is at `last` in the end."""
    timeline = Timeline({"north-client-1": "north", "south-client-1": "south"})
    start, killed = Phase("start", 0.0), Phase("north is killed", 2.0, away=("north-1", "north-2"))
    start.messages = {"sent": 20, "received": 20, "north-1>south-1": 12}
    killed.messages = {"sent": 10, "received": 10 - lost, "lost": lost, "again": 1}
    for at, north in ((0.0, "north-1"), (1.0, "north-1"), (2.0, ""), (2.1, "south-1"), (4.0, "south-1"), (4.1, last)):
        timeline.add(at, {"north-client-1": north, "south-client-1": "south-1"})
    start.places, killed.places = timeline.samples[1][1], timeline.samples[3][1]
    timeline.phases += [start, killed]
    timeline.outages.append(Outage("north-1", 2.0, True, 3.5))
    return timeline


def printed(timeline: Timeline) -> str:
    out = io.StringIO()
    print_summary(Console(file=out, width=120), timeline, Path("out"))
    return out.getvalue()


def test_the_stays_of_a_client_are_joined_and_times_without_a_broker_left_out() -> None:
    stays = run_with().stays("north-client-1")
    assert stays == [(0.0, 2.0, "north-1"), (2.1, 4.1, "south-1"), (4.1, 4.1, "north-1")]


def test_the_table_has_a_line_for_each_phase() -> None:
    lines = [line.split() for line in printed(run_with()).replace("│", " ").splitlines()]
    assert ["start", "1n", "0", "1s", "20", "20", "0", "0", "0", "✓"] in lines
    assert ["north", "is", "killed", "✕", "✕", "1n", "1s", "10", "10", "0", "0", "1", "✓"] in lines
    assert ["together", "30", "30", "0", "0", "1", "✓"] in lines
    assert is_fine(run_with())


@pytest.mark.parametrize(("lost", "last"), [(1, "north-1"), (0, "south-1"), (0, "")])
def test_a_lost_message_or_a_client_astray_is_a_failure(lost: int, last: str, tmp_path: Path) -> None:
    timeline = run_with(lost, last)
    assert not is_fine(timeline)
    assert "✗" in printed(timeline)
    assert ("not in their zones: north-client-1" in printed(timeline)) == (last != "north-1")
    write_report(timeline, tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["fine"], report["totals"]["lost"]) == (False, lost)


def test_the_picture_is_drawn_with_its_names_as_text(tmp_path: Path) -> None:
    draw(run_with(), tmp_path / "network.svg")
    draw(run_with(), tmp_path / "network.png")
    text = (tmp_path / "network.svg").read_text(encoding="utf-8")
    for word in ("north-1", "south-1", "north is killed", "north-client-1", "30 persistent messages sent"):
        assert word in text
    assert (tmp_path / "network.png").stat().st_size > 10_000


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="needs java .* and mvn .* on PATH"):
        java_command()
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)
    with pytest.raises(ToolMissing, match="needs mvn"):
        java_command()
    (tmp_path / "mvn").write_text("#!/bin/sh\necho 'no compiler is provided'; exit 1\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setattr(clients, "BUILT", tmp_path / "built")
    with pytest.raises(ToolMissing, match="no compiler is provided"):
        java_command()


def test_the_files_agree_with_the_places() -> None:
    """Names, ports, bridges to all others, and the users of the clients."""
    core = "{http://activemq.apache.org/schema/core}"
    for place in PLACES:
        broker = ElementTree.parse(place.conf / "activemq.xml").getroot().find(f"{core}broker")
        assert broker is not None and broker.get("brokerName") == place.name
        uris = [each.get("uri", "") for each in broker.iter(f"{core}transportConnector")]
        assert uris == [f"tcp://{place.address}"]
        (bridges,) = [each.get("uri", "") for each in broker.iter(f"{core}networkConnector")]
        assert all((f"tcp://{other.address}" in bridges) == (other != place) for other in PLACES)
        users = {each.get("username"): each.get("password") for each in broker.iter(f"{core}authenticationUser")}
        assert all(users[zone.name] == zone.password for zone in ZONES)
