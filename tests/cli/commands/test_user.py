"""`atalanta user` on files, and the node that reads them."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.users.users import read_security


def call(*words: str, typed: str | None = None, status: int = 0) -> str:
    result = CliRunner().invoke(application, ["user", *words], input=typed)
    assert result.exit_code == status, result.output
    return result.output


def test_the_whole_life_of_a_user(tmp_path: Path) -> None:
    etc = ["--etc", str(tmp_path)]
    (tmp_path / "broker.xml").write_text("<configuration><core/></configuration>")
    call("add", "anna", "--role", "amq", *etc, typed="sécret\n")
    call("add", "bert", "--role", "amq", "--role", "ops", "--password", "pw", "--plain", *etc)
    call("add", "anna", "--role", "amq", "--password", "x", *etc, status=1)
    call("add", "carl", "--password", "x", *etc, status=1)
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    anna = security.authenticate("anna", "sécret")
    assert anna is not None and anna.roles == ("amq",)
    bert = security.authenticate("bert", "pw")
    assert bert is not None and bert.roles == ("amq", "ops")
    listed = call("list", "--json", *etc)
    assert json.loads(listed) == [
        {"user": "anna", "roles": ["amq"], "hashed": True},
        {"user": "bert", "roles": ["amq", "ops"], "hashed": False},
    ]
    assert "anna" in call("list", *etc) and "pw" not in call("list", *etc).split("password")[1]
    call("reset", "anna", "--password", "other", *etc)
    call("reset", "bert", "--role", "amq", *etc)
    call("rm", "nobody", *etc, status=1)
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    assert security.authenticate("anna", "sécret") is None
    assert security.authenticate("anna", "other") is not None
    call("rm", "anna", *etc)
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    assert security.authenticate("anna", "other") is None


def test_no_password_no_user(tmp_path: Path) -> None:
    call("add", "anna", "--role", "amq", "--etc", str(tmp_path), typed="", status=1)
    call("list", "--etc", str(tmp_path / "none"), status=1)
    assert list(tmp_path.iterdir()) == []
