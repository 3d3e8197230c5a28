"""`atalanta user` on files, and the node that reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
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
    call("add", "carl", "--password", "x", *etc, status=2)
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
    call("rm", "nobody", *etc, status=66)
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    assert security.authenticate("anna", "sécret") is None
    assert security.authenticate("anna", "other") is not None
    call("rm", "anna", *etc)
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    assert security.authenticate("anna", "other") is None


def test_no_password_no_user(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text("<configuration><core/></configuration>")
    call("add", "anna", "--role", "amq", "--etc", str(tmp_path), typed="", status=2)
    call("list", "--etc", str(tmp_path / "none"), status=66)
    assert [path.name for path in tmp_path.iterdir()] == ["broker.xml"]


def test_the_instance_folder_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    etc = tmp_path / "node" / "etc"
    etc.mkdir(parents=True)
    (etc / "broker.xml").write_text("<configuration><core/></configuration>")
    add = ("--role", "amq", "--password", "x")
    call("add", "anna", *add, "--etc", str(etc.parent))
    call("add", "bert", *add, "--instance", str(etc))
    monkeypatch.chdir(etc.parent)
    call("add", "carl", *add)
    security = read_security(read_broker_xml(etc / "broker.xml"))
    assert all(security.authenticate(name, "x") is not None for name in ("anna", "bert", "carl"))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "artemis-roles.properties", "artemis-users.properties", "broker.xml",
    ]  # fmt: skip


def test_nothing_is_written_where_no_broker_reads(tmp_path: Path) -> None:
    (tmp_path / "other.xml").write_text("<project/>")
    add = ("add", "anna", "--role", "amq", "--password", "x", "--etc", str(tmp_path))
    assert "broker.xml" in call(*add, status=66)
    assert [path.name for path in tmp_path.iterdir()] == ["other.xml"]


def test_the_files_of_a_login_config_are_written(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text("<configuration><core/></configuration>")
    login = tmp_path / "login.config"
    module = "org.apache.activemq.artemis.spi.core.security.jaas.{} required"
    names = "org.apache.activemq.jaas.properties.{}"
    options = f'{names.format("user")}="u.properties" {names.format("role")}="r.properties"'
    login.write_text(f"activemq {{ {module.format('PropertiesLoginModule')} {options}; }};")
    add = ("add", "anna", "--role", "amq", "--password", "x", "--etc", str(tmp_path))
    call(*add)
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    assert security.authenticate("anna", "x") is not None
    assert not (tmp_path / "artemis-users.properties").exists()
    login.write_text(f"activemq {{ {module.format('GuestLoginModule')}; }};")
    assert "no PropertiesLoginModule" in call("add", "bert", *add[2:], status=1)


def test_the_users_of_an_activemq_xml_are_in_that_file(tmp_path: Path) -> None:
    (tmp_path / "activemq.xml").write_text('<broker xmlns="http://activemq.apache.org/schema/core"/>')
    add = ("add", "anna", "--role", "amq", "--password", "x", "--etc", str(tmp_path))
    assert "no broker would read users there" in call(*add, status=66)
    assert not (tmp_path / "artemis-users.properties").exists()
