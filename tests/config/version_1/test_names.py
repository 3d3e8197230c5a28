"""Names of version 1 in a broker.xml are named with their line, and with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from tests.config.version_1.files import JMS, version_1_file

CONNECTOR = '<connectors><connector name="c">tcp://127.0.0.1:61616</connector></connectors>'
CLUSTER = """<cluster-connections><cluster-connection name="all">
<address>{address}</address>
<connector-ref>c</connector-ref></cluster-connection></cluster-connections>"""
PREFIXES = "anycastPrefix=jms.queue.;multicastPrefix=jms.topic."
PREFIXED = f"tcp://127.0.0.1:61616?{PREFIXES}"


def told(folder: Path, core: str, jms: str = JMS, acceptor: str = PREFIXED) -> list[str]:
    """What a start says of names, each without its file."""
    path = folder / "broker.xml"
    path.write_text(version_1_file(core, jms, acceptor))
    found = read_broker_xml(path).warnings
    return [each.removeprefix(f"{path}:") for each in found if "version 1" in each]


@pytest.mark.parametrize("jms", [JMS, ""])
@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ('<address-settings><address-setting match="jms.#"/></address-settings>', 'write match="#"'),
        ('<address-settings><address-setting match="jms.queue.#"/></address-settings>', 'write match="#"'),
        ('<security-settings><security-setting match="jms.topic.a.*"/></security-settings>', 'write match="a.*"'),
        (
            '<address-settings><address-setting match="#"><expiry-address>jms.queue.old</expiry-address>'
            "</address-setting></address-settings>",
            "write <expiry-address>old</expiry-address>",
        ),
        (
            '<diverts><divert name="d"><address>jms.topic.news</address><forwarding-address>audit</forwarding-address>'
            "</divert></diverts>",
            "write <address>news</address>",
        ),
        (
            '<diverts><divert name="d"><address>news</address><forwarding-address>jms.queue.audit</forwarding-address>'
            "</divert></diverts>",
            "write <forwarding-address>audit</forwarding-address>",
        ),
        ("<management-address>jms.queue.m</management-address>", "write <management-address>m</management-address>"),
    ],
)
def test_a_line_that_means_something_else_today(tmp_path: Path, line: str, remedy: str, jms: str) -> None:
    (found,) = told(tmp_path, line, jms)
    at = 6 + jms.count("\n")
    assert found.startswith(f"{at}: ") and remedy in found


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("jms", "leave <address> out"),
        ("jms.", "leave <address> out"),
        ("jms.queue", "leave <address> out"),
        ("jms.queue.eu", "write <address>eu</address>"),
        ("jms,!jms.queue.local", "write <address>!local</address>"),
        ("jms.queue.a,jms.topic.b", "write <address>a,b</address>"),
    ],
)
def test_the_address_of_a_cluster_connection(tmp_path: Path, address: str, remedy: str) -> None:
    (found,) = told(tmp_path, CONNECTOR + CLUSTER.format(address=address))
    assert found.startswith("8: ") and remedy in found


def test_an_acceptor_without_the_prefixes(tmp_path: Path) -> None:
    (found,) = told(tmp_path, "", acceptor="tcp://127.0.0.1:61616")
    assert found.startswith("6: acceptor 'netty'") and f"write {PREFIXES} in its URL" in found
    assert told(tmp_path, "", acceptor="tcp://127.0.0.1:61616?protocols=STOMP") == []
    assert told(tmp_path, "", jms="", acceptor="tcp://127.0.0.1:61616") == []


def test_declared_addresses_of_that_name_are_taken_as_they_are(tmp_path: Path) -> None:
    own = '<addresses><address name="jms.queue.a"><anycast><queue name="jms.queue.a"/></anycast></address></addresses>'
    settings = '<address-settings><address-setting match="jms.queue.#"/></address-settings>'
    assert told(tmp_path, own + settings, jms="", acceptor="tcp://127.0.0.1:61616") == []
