"""stompjs over WebSocket, as browsers use it, against one node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.interop.harness.javascript import flow_command, flow_names, run_flows
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
RESTART = "restart"
FLOWS = [name for name in flow_names() if name != RESTART]


def stomp_node(brokers: Lineup) -> BrokerProcess:
    node = brokers.single("atalanta")
    path = node.folder / "etc" / "broker.xml"
    path.write_text(path.read_text().replace("protocols=CORE<", "protocols=CORE,STOMP<"))
    node.start()
    return node


@pytest.fixture(scope="module")
def results(brokers: Lineup) -> Iterator[dict[str, str]]:
    """The outcome of every flow, in one process."""
    node = stomp_node(brokers)
    found, output = run_flows(node.port, FLOWS)
    assert found, output + node.tail()
    yield found
    assert node.running, f"the node ended:\n{node.tail()}"
    node.stop()


@pytest.mark.parametrize("flow", FLOWS)
def test_flow(results: dict[str, str], flow: str) -> None:
    assert results.get(flow, "it did not run") == ""


def test_a_client_comes_back_after_a_restart_and_gets_what_it_has_not_acknowledged(brokers: Lineup) -> None:
    node = stomp_node(brokers)
    with subprocess.Popen(
        flow_command(node.port, [RESTART]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None and program.stdout is not None
        assert json.loads(program.stdout.readline()) == {"restart": True}
        node.kill()
        node.start()
        program.stdin.write("\n")
        program.stdin.flush()
        outcome = json.loads(program.stdout.readline())
        program.wait(60)
    assert outcome == {"flow": RESTART, "failure": ""}, node.tail()
    node.stop()
