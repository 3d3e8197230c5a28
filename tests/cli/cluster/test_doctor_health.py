"""`atalanta doctor` at real nodes: green where all is well, and not green where a node knows better."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.survey import Survey
from tests.app.group import Group
from tests.app.pair import Pair
from tests.broker_process import BrokerProcess
from tests.broker_xml import ORDERS, permissions, write_broker_xml, write_users
from tests.cli.calls import Cli
from tests.config.activemq.classic_files import classic_file
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process

BRIDGE = """<connectors><connector name="dead">tcp://127.0.0.1:1</connector></connectors>
<bridges><bridge name="out"><queue-name>orders</queue-name><forwarding-address>inbox</forwarding-address>
  <static-connectors><connector-ref>dead</connector-ref></static-connectors><user>u</user><password>p</password>
</bridge></bridges>"""
DROPS = """<address-settings><address-setting match="small">
  <max-size-messages>1</max-size-messages><address-full-policy>DROP</address-full-policy>
</address-setting></address-settings>"""


def codes(port: int) -> list[str]:
    """The codes of what is found; the nodes of these tests have no users."""
    found = asyncio.run(Survey(BrokerLogin("", None, None), 0).run([f"127.0.0.1:{port}"]))
    return [each.code for each in diagnosed(found, None, None) if each.code != "security_off"]


def test_a_node_in_good_health_and_a_sick_one(tmp_path: Path) -> None:
    port = free_port()
    form = permissions("amq") + DROPS + ORDERS + BRIDGE
    path = write_broker_xml(tmp_path, port, "north", form.replace(BRIDGE, ""), security=True)
    write_users(path, {"operator": "Tr7-quiet-lake"}, {"amq": "operator"})
    cli = Cli(f"tcp://127.0.0.1:{port}")
    cli.environment |= {"ATALANTA_USER": "operator", "ATALANTA_PASSWORD": "Tr7-quiet-lake"}
    with BrokerProcess(path):
        shown = cli("doctor", f"127.0.0.1:{port}", "--wait", "0.1", status=0)
        assert shown.strip() == "1 node asked: all is well"
    write_broker_xml(tmp_path, port, "north", form, security=True)
    with BrokerProcess(path):
        cli("queue", "pause", "orders")
        cli("queue", "stat", "--user", "eve", "--password", "guess", status=77)
        cli("produce", "small", "--text", "x", "--count", "3", status=1)
        shown = cli("doctor", f"127.0.0.1:{port}", "--wait", "0.1", status=1)
    for text in (
        "core bridge out from queue orders to 127.0.0.1:1 has no connection",
        "address small has the policy DROP and has discarded 2 messages",
        "queue orders is paused",
        "refused logins: 1, the last one of user eve from 127.0.0.1:",
    ):
        assert text in " ".join(shown.replace("│", " ").split()), shown
    assert "│ north " in shown


def test_a_pair_and_its_stopped_backup(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        pair.start()
        until(lambda: codes(pair.primary.port) == [], "green")
        pair.backup.end(signal.SIGTERM)
        until(lambda: codes(pair.primary.port) == ["backup_missing"], "the backup is missed")


def test_a_group_of_three_and_a_stopped_member(tmp_path: Path) -> None:
    with Group(tmp_path, backups=2) as group:
        group.start()
        first, second, third = group.members
        for other in (second, third):
            first.until_followed(other)
        until(lambda: codes(first.port) == [], "green")
        third.end(signal.SIGTERM)
        until(lambda: codes(first.port) == ["replica_away"], "the third member is missed")


def test_a_lone_classic_broker_and_its_networks(tmp_path: Path) -> None:
    """It misses no backup, and names the network that leads nowhere; topology draws both."""
    north, south = free_port(), free_port()
    networks = (
        f'<networkConnectors><networkConnector name="NC" uri="static:(tcp://127.0.0.1:{south})" duplex="true"/>'
        '<networkConnector name="lost" uri="static:(tcp://127.0.0.1:1)"/></networkConnectors>'
    )
    acceptor = '<transportConnectors><transportConnector name="o" uri="tcp://127.0.0.1:{}"/></transportConnectors>'
    there = classic_file(tmp_path / "s", acceptor.format(south), 'brokerName="south"')
    here = classic_file(tmp_path / "n", networks + acceptor.format(north), 'brokerName="north"')
    with BrokerProcess(there), BrokerProcess(here):
        until(lambda: codes(north) == ["network_not_connected"], "one network leads nowhere")
        cli = Cli()
        until(lambda: "network NC to south" in cli("topology", f"127.0.0.1:{north}", "--wait", "0"), "drawn")
        shown = cli("topology", f"127.0.0.1:{north}", "--wait", "0")
        assert "network lost to 127.0.0.1:1   has no connection" in shown
