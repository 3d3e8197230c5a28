"""WildFly's standalone.xml: our node serves the real JMS client behind HTTP, a real Artemis takes what is converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.xml.convert import convert_file
from tests.interop.harness.jms import run_scenarios
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ROLE = " ".join(
    f'{name}="true"'
    for name in (
        "send", "consume", "manage", "create-durable-queue", "delete-durable-queue",
        "create-non-durable-queue", "delete-non-durable-queue",
    )
)  # fmt: skip
STANDALONE = """<server xmlns="urn:jboss:domain:20.0"><profile>
  <subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="wildfly">
    <cluster user="peer" password="secret"/>
    <journal type="NIO"/>
    <security-setting name="#"><role name="amq" {role}/></security-setting>
    <address-setting name="#" dead-letter-address="jms.queue.DLQ" auto-create-queues="true"/>
    <http-connector name="http-connector" socket-binding="http" endpoint="http-acceptor"/>
    <remote-connector name="netty" socket-binding="messaging"/>
    <http-acceptor name="http-acceptor" http-listener="default"/>
    <remote-acceptor name="netty" socket-binding="messaging"/>
    <jms-queue name="DLQ" entries="java:/jms/queue/DLQ"/>
  </server></subsystem>
  <subsystem xmlns="urn:jboss:domain:undertow:14.0"><server name="default-server">
    <http-listener name="default" socket-binding="http"/></server></subsystem>
  </profile>
  <interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface></interfaces>
  <socket-binding-group name="s" default-interface="public">
    <socket-binding name="http" port="{http}"/><socket-binding name="messaging" port="{messaging}"/>
  </socket-binding-group></server>
"""
SOME = "bodies.*,transactions.*,largemessages.*"


def standalone(node: BrokerProcess) -> int:
    """Writes the file in the place of the node's broker.xml; the port behind HTTP."""
    http = free_port()
    text = STANDALONE.format(role=ROLE, http=http, messaging=node.port)
    (node.folder / "etc" / "broker.xml").write_text(text)
    return http


def test_the_real_client_behind_http(brokers: Lineup) -> None:
    node = brokers.single("atalanta")
    http = standalone(node)
    node.start()
    options = "httpUpgradeEnabled=true;httpUpgradeEndpoint=http-acceptor"
    url = f"tcp://127.0.0.1:{http}?{options};useTopologyForLoadBalancing=false"
    results, output = run_scenarios(url, "--only", SOME)
    assert len(results) > 10 and not any(results.values()), output
    node.stop()


def test_a_real_artemis_starts_with_what_is_converted(brokers: Lineup, tmp_path: Path) -> None:
    node = brokers.single("artemis")
    standalone(node)
    broker_xml = node.folder / "etc" / "broker.xml"
    broker_xml.write_text(convert_file(broker_xml, {}).text)
    node.start()
    results, output = run_scenarios(node.url, "--only", "bodies.text")
    assert len(results) == 1 and not any(results.values()), output
    node.stop()
