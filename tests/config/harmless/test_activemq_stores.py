"""Locks and stores, bridges, and where all findings come from: options of activemq.xml that are harmless."""

from __future__ import annotations

import ast
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Message, blocking
from atalanta.config.activemq import tables
from tests.app.classic_pair import ClassicBrokers
from tests.config.activemq.classic_files import classic_file, findings, read
from tests.config.harmless.cases import case
from tests.config.harmless.classic_node import ClassicFile, attributes, warned
from tests.source_tree import SOURCE

FOLDER = SOURCE / "config" / "activemq"


@pytest.mark.process
@case("LOCK_SILENT", *tables.LOCK_SILENT)
@case("LOCKER_SILENT", *tables.LOCKER_SILENT)
@case("KAHADB_CHILDREN_SILENT", *tables.KAHADB_CHILDREN_SILENT)
def test_a_slave_takes_over_at_once_whatever_its_lock_waits_for(tmp_path: Path) -> None:
    locker = "<shared-file-locker lockAcquireSleepInterval='600000' directory='elsewhere' name='mine'/>"
    more = attributes(tables.LOCK_SILENT, "600000")
    with ClassicBrokers(tmp_path, 2, locker=f"{locker}</locker><sharedFileLocker/><locker>", more=more) as brokers:
        brokers.start()
        first, second = brokers.processes
        with blocking.connect(f"tcp://127.0.0.1:{first.port}") as connection:
            connection.producer("orders", routing="anycast").send(Message("1"))
        first.end(signal.SIGKILL)
        second.until_role("active")
        with blocking.connect(f"tcp://127.0.0.1:{second.port}") as connection:
            received = connection.consumer("orders").receive(5)
            assert received is not None and received.text == "1"


@case("NETWORK_SILENT", *tables.NETWORK_SILENT)
def test_a_bridge_has_the_name_of_its_own_broker(tmp_path: Path) -> None:
    """Classic overwrites both before it starts a connector."""

    def connectors(more: str) -> list[str]:
        inside = f"<networkConnectors><networkConnector uri='static:(tcp://b:1)' {more}/></networkConnectors>"
        configuration = read(classic_file(tmp_path, inside, 'brokerName="shop"'))
        assert configuration.broker.name == "shop"
        return [repr(vars(each)).replace(repr(each.way), "") for each in configuration.networks.connectors]

    assert connectors("") == connectors("brokerName='other' brokerURL='vm://other'")


def test_a_store_of_classic_with_messages_in_it_is_told(tmp_path: Path) -> None:
    file = ClassicFile(inside="<persistenceAdapter><kahaDB directory='kahadb'/></persistenceAdapter>")
    assert not warned(tmp_path, file, "kahaDB")
    (tmp_path / "kahadb").mkdir()
    (tmp_path / "kahadb" / "db-1.log").write_text("")
    assert warned(tmp_path, file, "kahaDB")


def test_what_is_built_of_single_attributes(tmp_path: Path) -> None:
    """The period of the disk, the count of deliveries in the journal, the folder, connections that are never closed."""
    folder = tmp_path / "elsewhere"
    file = ClassicFile(
        f'schedulePeriodForDiskUsageCheck="700" dataDirectoryFile="{folder}"',
        policy='persistJMSRedelivered="true"',
        options="?transport.useInactivityMonitor=false",
    )
    configuration = file.read(tmp_path)
    assert configuration.broker.disk_scan_period_ms == 700
    assert configuration.broker.persist_delivery_count_before_delivery
    assert configuration.journal_folder.is_relative_to(folder)
    client = file.node(tmp_path).openwire_client()
    client.server.now += 10**13
    client.server.check_alive()
    assert client.closed is None


def test_children_of_a_network_connector_and_cursors_that_make_senders_wait_are_told(tmp_path: Path) -> None:
    connector = "<networkConnector uri='static:(tcp://b:1)'><bridgeFactory/></networkConnector>"
    network = ClassicFile(inside=f"<networkConnectors>{connector}</networkConnectors>")
    assert warned(tmp_path, network, "networkConnector bridgeFactory")
    cursor = "<pendingSubscriberPolicy><vmCursor/></pendingSubscriberPolicy>"
    assert warned(tmp_path, ClassicFile(of_topic=cursor), "vmCursor")
    assert not warned(tmp_path, ClassicFile(topic="producerFlowControl='false'", of_topic=cursor), "vmCursor")


# -- beside the broker ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("beside", "is_lost"),
    [
        ("<camelContext/>", True),
        ("<bean id='x' class='example.Anything'/>", True),
        ("<import resource='jetty.xml'/>", True),
        ("<import resource='more.xml'/>", True),
        ("<bean class='io.fabric8.insight.log.log4j.Log4jLogQuery'/>", False),
    ],
)
def test_what_is_not_started_is_a_warning(tmp_path: Path, beside: str, is_lost: bool) -> None:
    path = classic_file(tmp_path, f"</broker>{beside}<broker id='gone'>")
    path.write_text(path.read_text().replace("<broker id='gone'>\n</broker>", ""))
    assert [each.startswith("!") for each in findings(read(path))] == [is_lost]


# -- findings come from tables ---------------------------------------------------------------------------
def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Yields the calls of a method in the readers of an activemq.xml, with their place."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                yield f"{path.name}:{node.lineno}", node


def is_silent_table(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr.endswith("_SILENT")


@pytest.mark.parametrize(("method", "why", "lost"), [("finding", 2, 3), ("without_effect", 3, 4)])
def test_what_is_harmless_has_its_reason_in_a_table(method: str, why: int, lost: int) -> None:
    """So the cases cover it. properties.py tells of a value that it has chosen, elements.py has the tables given."""
    inline = []
    for place, call in calls(method):
        told = call.args[lost] if len(call.args) > lost else None
        told = next((each.value for each in call.keywords if each.arg == "lost"), told)
        if (isinstance(told, ast.Constant) and told.value is True) or place.startswith(("elements.", "properties.")):
            continue
        reason = call.args[why]
        if not (isinstance(reason, ast.Subscript) and is_silent_table(reason.value)):
            inline.append(place)
    assert inline == []


@pytest.mark.parametrize("method", ["values", "children"])
def test_names_that_are_harmless_are_in_a_table(method: str) -> None:
    inline = []
    for place, call in calls(method):
        silent = call.args[2] if len(call.args) > 2 else None
        empty = silent is None or (isinstance(silent, ast.Dict) and not silent.keys)
        if not empty and not (is_silent_table(silent) or isinstance(silent, ast.Name)):
            inline.append(place)
    assert inline == []
