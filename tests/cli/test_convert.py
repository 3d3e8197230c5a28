"""`atalanta convert`: text to the terminal or a file, what is left out to stderr."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from atalanta.cli.application import application

BROKER_XML = """<configuration><core><name>n</name>
<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor></acceptors>
<max-disk-usage>80</max-disk-usage>
<resolve-protocols>true</resolve-protocols>
</core></configuration>"""


def test_there_and_back(tmp_path: Path) -> None:
    source, target = tmp_path / "broker.xml", tmp_path / "standalone.xml"
    source.write_text(BROKER_XML)
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0
    assert f"left out: {source}:4: resolve-protocols" in done.stderr
    assert 'global-max-disk-usage="80"' in target.read_text()
    back = CliRunner().invoke(application, ["convert", str(target)])
    assert back.exit_code == 0
    assert "<max-disk-usage>80</max-disk-usage>" in back.stdout


def test_nothing_is_overwritten_unasked_and_mistakes_have_lines(tmp_path: Path) -> None:
    source, target = tmp_path / "broker.xml", tmp_path / "standalone.xml"
    source.write_text(BROKER_XML)
    target.write_text("mine")
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code != 0 and target.read_text() == "mine"
    source.write_text("<configuration>\n<core>")
    done = CliRunner().invoke(application, ["convert", str(source)])
    assert done.exit_code != 0 and f"{source}:2:" in done.stderr
