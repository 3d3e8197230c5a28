"""`atalanta convert`: text to the terminal or a file, what is left out to stderr."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.config.broker_xml import read_broker_xml

STANDALONE = """<server xmlns="urn:jboss:domain:20.0"><profile>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="n">
<journal global-max-disk-usage="80"/>
<remote-acceptor name="a" socket-binding="messaging"/>
<connection-factory name="f" entries="java:/f" connectors="c"/>
</server></subsystem></profile>
<interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface></interfaces>
<socket-binding-group name="g" default-interface="public"><socket-binding name="messaging" port="61616"/>
</socket-binding-group></server>"""
PASSWORD = re.compile("<cluster-password>.*</cluster-password>")


def test_a_file_or_the_terminal(tmp_path: Path) -> None:
    source, target = tmp_path / "standalone.xml", tmp_path / "broker.xml"
    source.write_text(STANDALONE)
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0
    assert f"left out: {source}:5: connection-factory" in done.stderr
    assert "<max-disk-usage>80</max-disk-usage>" in target.read_text()
    shown = CliRunner().invoke(application, ["convert", str(source)])
    assert shown.exit_code == 0
    assert PASSWORD.sub("", shown.stdout) == PASSWORD.sub("", target.read_text())


@pytest.mark.parametrize("given", ["", "CHANGE ME!!", "p"])
def test_a_node_that_is_alone_gets_a_cluster_password_of_its_own(tmp_path: Path, given: str) -> None:
    source, target = tmp_path / "standalone.xml", tmp_path / "broker.xml"
    cluster = f'<cluster user="me" password="{given}"/>' if given else ""
    source.write_text(STANDALONE.replace("<journal", f"{cluster}<journal"))
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0 and target.stat().st_mode & 0o077 == 0
    broker = read_broker_xml(target).broker
    assert broker.cluster_user == ("me" if given else "cluster")
    if given != "p":
        assert len(broker.cluster_password) >= 20
        again = CliRunner().invoke(application, ["convert", str(source)])
        assert broker.cluster_password not in again.stdout
    else:
        assert broker.cluster_password == "p"


def test_a_member_of_a_cluster_keeps_what_it_has(tmp_path: Path) -> None:
    """All members need the same password: one that is generated for each would keep them apart."""
    source, target = tmp_path / "standalone.xml", tmp_path / "broker.xml"
    cluster = """<remote-connector name="c" socket-binding="messaging"/>
        <cluster-connection name="x" address="jms" connector-name="c" static-connectors="c"/>"""
    source.write_text(STANDALONE.replace("<connection-factory", f"{cluster}<connection-factory"))
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert read_broker_xml(target).broker.cluster_password == "CHANGE ME!!"
    checked = CliRunner().invoke(application, ["check", str(target)], env={"COLUMNS": "300"})
    assert "everybody knows" in checked.output


def test_nothing_is_overwritten_unasked_and_mistakes_have_lines(tmp_path: Path) -> None:
    source, target = tmp_path / "standalone.xml", tmp_path / "broker.xml"
    source.write_text(STANDALONE)
    target.write_text("mine")
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code != 0 and target.read_text() == "mine"
    source.write_text("<server>\n<profile>")
    done = CliRunner().invoke(application, ["convert", str(source)])
    assert done.exit_code != 0 and f"{source}:2:" in done.stderr


def test_a_broker_xml_is_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "broker.xml", tmp_path / "standalone.xml"
    source.write_text("<configuration><core><name>n</name></core></configuration>")
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code != 0 and not target.exists()
    assert f"{source}:1: <configuration> is not a standalone.xml of WildFly" in done.stderr
