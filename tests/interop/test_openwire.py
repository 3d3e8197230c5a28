"""activemq-client 5.18 and 6.1 against one node: flows of queues, topics, transactions, conversions; failover."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS, flow_command, flow_names, run_flows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
URLS = {"tcp": "tcp://127.0.0.1:{}", "failover": "failover:(tcp://127.0.0.1:{})?maxReconnectAttempts=20"}


@pytest.fixture(scope="module")
def server(brokers: Lineup) -> Iterator[BrokerProcess]:
    node = brokers.openwire()
    node.start()
    yield node
    node.stop()


@pytest.fixture(scope="module", params=CLIENTS)
def results(request: pytest.FixtureRequest, server: BrokerProcess) -> dict[str, str]:
    """The outcome of every flow, in one run of one JVM of a client's version."""
    url = URLS["tcp" if request.param == CLIENTS[0] else "failover"].format(server.port)
    found, output = run_flows(request.param, url, flow_names())
    Path(server.folder, f"openwire-{request.param}.log").write_text(output)
    assert found, output + server.tail()
    assert server.running, f"the node ended:\n{server.tail()}"
    return found


@pytest.mark.parametrize("flow", flow_names())
def test_flow(results: dict[str, str], flow: str) -> None:
    assert flow in results, "it did not run"
    assert results[flow] == ""


@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("flow", ["failover", "failoverTransacted"])
def test_a_failover_client_loses_nothing_over_a_restart(
    brokers: Lineup, flow: str, client: str, ending: str
) -> None:
    node = brokers.openwire()
    node.start()
    command = flow_command(client, f"failover:(tcp://127.0.0.1:{node.port})", [flow])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None and program.stdout is not None
        assert json.loads(program.stdout.readline()) == {"restart": True}
        getattr(node, ending)()
        node.start()
        program.stdin.write("\n")
        program.stdin.flush()
        outcome = json.loads(program.stdout.readline())
        program.wait(60)
    assert outcome == {"flow": flow, "failure": ""}, node.tail()
    node.stop()
