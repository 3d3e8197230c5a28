"""`atalanta convert` of an activemq.xml: the broker.xml and the files beside it mean the same."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.users.users import read_security
from tests.config.activemq.classic_files import classic_file, copied, read


def described(value: Any) -> dict[str, Any]:
    return {entry.name: getattr(value, entry.name) for entry in fields(value) if entry.metadata}


@pytest.fixture(autouse=True)
def shop_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "manager")


@pytest.mark.parametrize("name", ["default.xml", "security.xml", "destinations.xml"])
def test_the_converted_file_means_the_same(tmp_path: Path, name: str) -> None:
    source, target = copied(tmp_path, name), tmp_path / "etc" / "broker.xml"
    target.parent.mkdir()
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0, done.output
    before, after = read(source, SHOP_PASSWORD="manager"), read_broker_xml(target)
    own = ("cluster_user", "cluster_password")  # generated
    assert after.broker.cluster_password != before.broker.cluster_password
    alike = [{**described(each.broker), **dict.fromkeys(own)} for each in (before, after)]
    assert alike[0] == alike[1]
    assert after.broker.addresses == before.broker.addresses
    assert after.broker.address_settings == before.broker.address_settings
    assert after.broker.security_rules == before.broker.security_rules
    assert after.broker.diverts == before.broker.diverts
    assert after.broker.wildcard == before.broker.wildcard
    assert after.acceptors == before.acceptors
    assert after.journal_folder == before.journal_folder


def test_users_stand_in_files_that_only_their_owner_reads(tmp_path: Path) -> None:
    source, target = copied(tmp_path, "security.xml"), tmp_path / "broker.xml"
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert f"{tmp_path}/artemis-users.properties: users of the node" in done.stderr
    assert (tmp_path / "artemis-users.properties").stat().st_mode & 0o777 == 0o600
    before, after = read_security(read(source, SHOP_PASSWORD="manager")), read_security(read_broker_xml(target))
    assert {name: sorted(user.roles) for name, user in after.users.items()} == {
        name: sorted(user.roles) for name, user in before.users.items()
    }
    assert after.users["system"].password.verify("manager")
    assert after.chain is not None and before.chain is not None
    assert after.chain.guest is not None and after.chain.guest.same(before.chain.guest)


def test_users_of_the_files_beside_and_the_networks(tmp_path: Path) -> None:
    source = classic_file(
        tmp_path / "classic",
        "<plugins><jaasAuthenticationPlugin/></plugins>\n<networkConnectors>"
        "<networkConnector name='to-b' uri='static:(tcp://b:1)' networkTTL='2'/></networkConnectors>",
    )
    (source.parent / "login.config").write_text(
        'activemq-domain { org.apache.activemq.jaas.PropertiesLoginModule required\n'
        ' org.apache.activemq.jaas.properties.user="users.properties"\n'
        ' org.apache.activemq.jaas.properties.group="groups.properties"; };'
    )
    (source.parent / "users.properties").write_text("admin=secret\n")
    (source.parent / "groups.properties").write_text("admins=admin\n")
    target = tmp_path / "broker.xml"
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(target)])
    assert done.exit_code == 0, done.output
    after = read_broker_xml(target)
    assert sorted(read_security(after).users["admin"].roles) == ["ActiveMQ.everyone", "admins"]
    assert after.networks.connectors == read(source).networks.connectors


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    source = copied(tmp_path, "default.xml")
    done = CliRunner().invoke(application, ["convert", str(source), "-o", str(tmp_path / "no" / "broker.xml")])
    assert done.exit_code != 0 and "cannot be written" in done.stderr
