"""`atalanta topology`: rates and backlog of views made by hand, the drawing, the picture, real nodes."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
from rich.console import Console

from atalanta.cli.cluster.picture import drawn
from atalanta.cli.cluster.svg import svg_of
from atalanta.cli.cluster.topology import Surveys
from atalanta.cli.output.tables import show_table
from atalanta.client.blocking import connect
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.flow import flow_of
from atalanta.survey.model.cluster import LiveCluster, NodeView, Unreachable
from atalanta.survey.model.links import BridgeView, ClusterConnectionView, LinkView, NetworkView
from atalanta.survey.model.queues import QueueView
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.cli.calls import Cli
from tests.cli.cluster_nodes import Node, cluster
from tests.ports import free_port
from tests.survey.views import flowing


def test_the_drawing() -> None:
    console = Console(width=160, record=True, highlight=False)
    shown = flowing()
    shown.unreachable.append(Unreachable("h3:1", "wrong user", "id-c"))
    with console.capture() as captured:
        console.print(drawn(flow_of(shown)))
    text = captured.get()
    lines = text.splitlines()
    assert lines[0] == (
        "3 nodes · 30 messages wait · 25/s in, 35/s out · 20/s between nodes · 7 messages parked"
    )
    assert any("a ════▶" in line and "20/s" in line and "◀──── b<&>" in line for line in lines)
    assert any(
        "h3:1 is away for 3 min, 7 messages parked (2 may have arrived)" in line for line in lines
    )
    assert "atalanta 0.1.0" in text and "artemis 2.44.0" in text and "not reached" in text
    assert lines[-1].strip() == "h3:1: wrong user"


def leading_out() -> LiveCluster:
    """The cluster with a core bridge, a network that comes back, one without connection, and a backup."""
    found = flowing()
    b, a = found.nodes
    a.bridges.append(BridgeView("out", "orders", to="h9:61616", connected=True, acknowledged=10, later_acknowledged=30))
    a.networks.append(NetworkView("NC", "tcp://h8:61616", "classic", True, True, "", 0, 0, 8, 6))
    b.networks.append(NetworkView("NC", "tcp://h7:61616", "", False, why="connection refused"))
    b.waiting, b.shared_store = ["h5:1"], True
    return found


def test_the_drawing_of_what_leads_out() -> None:
    console = Console(width=160, record=True, highlight=False)
    with console.capture() as captured:
        console.print(drawn(flow_of(leading_out())))
    lines = [" ".join(line.split()) for line in captured.get().splitlines()]
    assert "b<&> ⇠ h5:1 waits" in lines
    assert lines[-3:] == [
        "a ════▶ 10/s bridge out to h9:61616",
        "a ════▶ 4.0/s network NC to classic (h8:61616), 3.0/s back",
        "b<&> ╳╳╳╳▶ network NC to h7:61616 has no connection; connection refused",
    ]


def test_the_picture_of_what_leads_out() -> None:
    root = ElementTree.fromstring(svg_of(flow_of(leading_out())))
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"classic", "h9:61616", "h7:61616", "out · 10/s", "NC · 4.0/s"} <= texts
    left, top, width, height = map(float, str(root.get("viewBox")).split())
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert left <= float(str(box.get("x"))) and float(str(box.get("y"))) >= top
        assert float(str(box.get("x"))) + float(str(box.get("width"))) <= left + width


def nine_nodes(ending: str = ".eu-central-1.example") -> LiveCluster:
    """All linked; only node0 forwards something, to node1."""
    members = {f"id-{n}": f"10.0.0.{n}:61616" for n in range(9)}
    nodes = []
    for n in range(9):
        node = NodeView(members[f"id-{n}"], f"id-{n}", f"node{n}{ending}", "0.1.0", ours=True, members=dict(members))
        links = {f"id-{m}": LinkView(f"id-{m}") for m in range(9) if m != n}
        node.connections.append(ClusterConnectionView("test", links=links))
        node.queues["orders"] = QueueView("orders", "orders", messages=1_234_567, added=5)
        nodes.append(node)
    nodes[0].connections[0].links["id-1"] = LinkView("id-1", confirmed=0, later_confirmed=80)
    return LiveCluster(nodes, seconds=2.0)


def test_nine_nodes_fit_a_terminal_of_80_columns() -> None:
    found = nine_nodes()
    found.shorten()
    console = Console(width=80, highlight=False)
    with console.capture() as captured:
        console.print(drawn(flow_of(found), console.width))
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) < 20
    assert any("│ node8 │ 10.0.0.8:61616 │" in line and "1,234,567 │" in line for line in lines)
    assert any("node0 ════▶" in line and "40/s" in line and "node1" in line for line in lines)
    assert lines[-1] == "  the other 35 pairs: linked both ways, nothing flows between them"


def test_names_of_nodes() -> None:
    """Without the ending that all share; by their place where they share the whole name."""
    found = nine_nodes()
    found.tell_apart()
    found.shorten()
    assert [node.label for node in found.nodes][:2] == ["node0", "node1"]
    found = nine_nodes("")
    found.shorten()
    assert found.nodes[8].label == "node8"
    for node in found.nodes:
        node.name = "0.0.0.0"  # as `artemis create` names every node
    found.tell_apart()
    found.shorten()
    assert found.nodes[8].label == found.label("id-8") == "10.0.0.8:61616"
    found.nodes[0].shown = "a-very-long-name-of-a-node-in-the-north"
    assert "a-very-long-name-of-a-n…" in svg_of(flow_of(found))


def test_the_picture_is_well_formed_and_says_the_same() -> None:
    root = ElementTree.fromstring(svg_of(flow_of(flowing())))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "DejaVu Sans" in svg_of(flow_of(flowing()))  # renderers without Arial have none for "sans-serif"
    assert {"a", "b<&>", "h3:1", "20/s", "7 parked", "not reached"} <= set(texts)
    arrows = list(root.iter("{http://www.w3.org/2000/svg}line"))
    assert len(arrows) == 3
    assert sum(arrow.get("stroke-dasharray") is not None for arrow in arrows) == 1


def test_labels_need_no_style_of_a_browser() -> None:
    """Renderers without paint-order drew the white outline over the label; some know no inherited font."""
    text = svg_of(flow_of(flowing()))
    assert not any(word in text for word in ("paint-order", "dominant-baseline", "class=", "foreignObject"))
    last = {each.text: each for each in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")}
    for each in last.values():
        assert each.get("fill") not in (None, "#ffffff") and each.get("stroke") is None
        assert each.get("font-family") and each.get("font-size")


def test_a_member_that_was_killed_keeps_its_name() -> None:
    watch = Surveys([], BrokerLogin("", None, None), 0, None)
    watch.remember(flow_of(LiveCluster([NodeView("h3:1", "id-c", "c")])))
    flow = flow_of(flowing())
    watch.remember(flow)
    assert [(node.label, node.at) for node in flow.nodes if not node.reached] == [("c", "h3:1")]


@pytest.mark.process
def test_a_node_without_cluster(tmp_path: Path) -> None:
    """A single node is an Atalanta node; the queues of others who look at it are not its load."""
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path, port)):
        url = f"tcp://127.0.0.1:{port}"
        with connect(url) as other:
            other.management().get("broker", "Name")
            (node,) = json.loads(Cli(url)("topology", url, "--json", "--wait", "0"))["nodes"]
        assert node["atalanta"]
        assert (node["queues"], node["messages"], node["consumers"]) == (0, 0, 0)


def test_one_node_alone() -> None:
    found = LiveCluster([NodeView("h:1", "id", "alone")])
    assert "alone" in svg_of(flow_of(found))
    assert flow_of(found).as_json()["links"] == []


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


def picture(node: Node, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(node.cli("topology", node.at, "--json", *words))
    return found


@pytest.mark.process
def test_a_live_cluster(nodes: list[Node], tmp_path: Path) -> None:
    a, b = nodes
    deadline = time.monotonic() + 30
    while True:
        found = picture(a, "--wait", "0")
        if sum(link["linked"] for link in found["links"]) == 2:
            break
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    a.cli("produce", "orders", "--text", "x", "--count", "3")
    found = picture(b, "--wait", "0.2")
    assert [(node["label"], node["messages"], node["atalanta"]) for node in found["nodes"]] == [
        ("a", 3, True),
        ("b", 0, True),
    ]
    assert [link["per_second"] for link in found["links"]] == [0.0, 0.0]
    (orders,) = json.loads(a.cli("queue", "stat", "orders", "--cluster", "--json"))
    assert (orders["messages"], orders["nodes"]["a"]["messages"], orders["nodes"]["b"]["messages"]) == (3, 3, 0)
    assert "a 3, b 0" in a.cli("queue", "stat", "--cluster")
    svg = tmp_path / "cluster.svg"
    shown = b.cli("topology", b.at, "--wait", "0", "--svg", str(svg))
    assert "2 nodes · 3 messages wait" in shown
    ElementTree.parse(svg)


@pytest.mark.process
def test_watching_goes_on_when_the_named_node_is_away(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as (a, b):
        command = [sys.executable, "-m", "atalanta", "topology", a.at, "--watch", "--json"]
        command += ["--wait", "0.1"]
        # Whoever runs the tests in the background may have SIGINT ignored, which a process inherits.
        listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=listens
        ) as watching:
            assert watching.stdout is not None
            try:
                await_line(watching.stdout, lambda found: len(found["nodes"]) == 2)
                a.broker.end(signal.SIGKILL)
                found = await_line(
                    watching.stdout,
                    lambda found: [node["reached"] for node in found["nodes"]] == [True, False],
                )
                assert [node["at"] for node in found["nodes"]] == [b.at, a.at]
            finally:
                watching.send_signal(signal.SIGINT)
                watching.stdout.read()
            assert watching.wait(30) == 130


def await_line(lines: IO[str], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first line that is as wanted; the test's time limit ends it otherwise."""
    deadline = time.monotonic() + 60
    for line in lines:
        found: dict[str, Any] = json.loads(line)
        if wanted(found):
            return found
        assert time.monotonic() < deadline, line
    raise AssertionError("it ended")


@pytest.mark.process
def test_errors_are_one_line(nodes: list[Node]) -> None:
    nodes[0].cli("topology", "127.0.0.1:1", status=69)
    assert "connection refused" in nodes[0].cli.errors
    assert len(nodes[0].cli.errors.splitlines()) == 1


def test_names_steer_no_terminal_and_break_no_picture() -> None:
    """A node may be called anything, a queue by any client."""
    name = "a\x1b]0;evil\x07\ud800"
    node = NodeView("h1:1", "id-a", name, "0.1.0\x1b[2J", ours=True, members={"id-a": "h1:1", "id-b": "h2\x1b:1"})
    flow = flow_of(LiveCluster([node]))
    console = Console(width=200, record=True, color_system=None, file=io.StringIO())
    console.print(drawn(flow))
    text = console.export_text()
    assert "\x1b" not in text and "\ud800" not in text
    assert r"a\x1b]0;evil\x07\ud800" in text
    ElementTree.fromstring(svg_of(flow).encode("utf-8"))


def test_cells_of_tables_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["queue"], [["a\x1b]0;evil\x07\ud800"]])
    assert r"a\x1b]0;evil\x07\ud800" in capsys.readouterr().out
