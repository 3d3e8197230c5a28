"""activemq-client 5.18 and 6.1 against one node: flows of queues, topics, transactions, conversions; failover."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.activemq.classic_files import classic_file
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS, flow_command, flow_names, run_flows

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
# Flows with temporary destinations.
OF_TEMPORARIES = ("requestReply", "deletedTemporary", "temporaryTopic")
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


@pytest.mark.parametrize("client", CLIENTS)
def test_temporary_destinations_of_users_with_few_rights(brokers: Lineup, client: str) -> None:
    """Every connection watches the advisories of temporary destinations; no entry here gives anybody that."""
    node = brokers.openwire()
    users = '<authenticationUser username="anna" password="anna" groups="users"/>'
    classic_file(
        node.folder,
        f"<plugins><simpleAuthenticationPlugin><users>{users}</users></simpleAuthenticationPlugin>"
        "<authorizationPlugin><map><authorizationMap><authorizationEntries>"
        '<authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>'
        + "".join(
            f'<authorizationEntry queue="{each}.>" read="users" write="users" admin="users"/>'
            for each in OF_TEMPORARIES
        )
        + "</authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>"
        "<transportConnectors><transportConnector name='openwire' "
        f"uri='tcp://127.0.0.1:{node.port}'/></transportConnectors>",
    )
    node.start()
    url = f"tcp://127.0.0.1:{node.port}?jms.userName=anna&jms.password=anna"
    found, output = run_flows(client, url, list(OF_TEMPORARIES))
    assert found == dict.fromkeys(OF_TEMPORARIES, ""), output + node.tail()
    node.stop()
