"""The files of an instance that a test creates and changes."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from atalanta.cli.application import application

# Put in the place of </security-settings>: the users of the role `viewers` may look at everything, and change nothing.
RIGHTS = """<security-setting match="mops.#">
        <permission type="view" roles="amq,viewers"/><permission type="edit" roles="amq"/>
      </security-setting>
      <security-setting match="activemq.management.#">
        <permission type="manage" roles="amq,viewers"/><permission type="send" roles="amq,viewers"/>
      </security-setting>
      <security-setting match="atalanta.management.#">
        <permission type="consume" roles="amq,viewers"/>
        <permission type="createNonDurableQueue" roles="amq,viewers"/>
        <permission type="createAddress" roles="amq,viewers"/>
        <permission type="deleteNonDurableQueue" roles="amq,viewers"/>
      </security-setting>
    </security-settings>"""


def create(folder: Path, port: int, period_ms: int = -1) -> Path:
    """Creates an instance with the user admin; returns its broker.xml."""
    words = ["create", str(folder), "--port", str(port), "--password", "admin"]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == 0, result.output
    path = folder / "etc" / "broker.xml"
    period = f"<configuration-file-refresh-period>{period_ms}</configuration-file-refresh-period>"
    change(path, "<security-enabled>", f"{period}\n    <security-enabled>")
    return path


def change(path: Path, old: str, new: str) -> None:
    """Replaces a text of the file, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
