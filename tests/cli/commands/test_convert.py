"""`atalanta convert`: text to the terminal or a file, what is left out to stderr."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from atalanta.cli.application import application

STANDALONE = """<server xmlns="urn:jboss:domain:20.0"><profile>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="n">
<journal global-max-disk-usage="80"/>
<remote-acceptor name="a" socket-binding="messaging"/>
<connection-factory name="f" entries="java:/f" connectors="c"/>
</server></subsystem></profile>
<interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface></interfaces>
<socket-binding-group name="g" default-interface="public"><socket-binding name="messaging" port="61616"/>
</socket-binding-group></server>"""


def test_a_file_or_the_terminal(tmp_path: Path) -> None:
    source, target = tmp_path / "standalone.xml", tmp_path / "broker.xml"
    source.write_text(STANDALONE)
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0
    assert f"left out: {source}:5: connection-factory" in done.stderr
    assert "<max-disk-usage>80</max-disk-usage>" in target.read_text()
    shown = CliRunner().invoke(application, ["convert", str(source)])
    assert shown.exit_code == 0 and shown.stdout == target.read_text()


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
