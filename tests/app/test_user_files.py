"""Operations on users, from the request to the files and to the users who may log in."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.app.user_files import operate_users
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.kernel.security.password import hash_password
from atalanta.kernel.security.user_operation import (
    ADD,
    LIST,
    REMOVE,
    RESET,
    UserAnswer,
    UserOperation,
)
from tests.config.activemq.classic_files import classic_file

MODULE = "org.apache.activemq.artemis.spi.core.security.jaas"


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    (tmp_path / "broker.xml").write_text("<configuration><core/></configuration>")
    (tmp_path / "artemis-users.properties").write_text("# ours\nadmin = secret\n")
    (tmp_path / "artemis-roles.properties").write_text("amq = admin\n")
    return read_broker_xml(tmp_path / "broker.xml")


def roles(answer: UserAnswer, user: str, password: str) -> tuple[str, ...] | None:
    """The roles that these credentials get after the operation; None: refused."""
    assert answer.why == "" and answer.security is not None
    identity = answer.security.authenticate(user, password)
    return None if identity is None else identity.roles


def test_the_whole_life_of_a_user(configuration: Configuration, tmp_path: Path) -> None:
    done = operate_users(configuration, UserOperation(ADD, "anna", "pw", ("amq", "ops")))
    assert roles(done, "anna", "pw") == ("amq", "ops") and roles(done, "admin", "secret") == ("amq",)
    text = (tmp_path / "artemis-users.properties").read_text()
    assert text.startswith("# ours\nadmin = secret\nanna = ENC(1024:") and "pw" not in text
    done = operate_users(configuration, UserOperation(RESET, "anna", None, ("ops",)))
    assert roles(done, "anna", "pw") == ("ops",)
    done = operate_users(configuration, UserOperation(RESET, "anna", "other", plain=True))
    assert roles(done, "anna", "other") == ("ops",) and roles(done, "anna", "pw") is None
    assert "anna = other\n" in (tmp_path / "artemis-users.properties").read_text()
    masked = UserOperation(RESET, "anna", hash_password("third", b"salt"), plain=True)
    assert roles(operate_users(configuration, masked), "anna", "third") == ("ops",)
    listed = operate_users(configuration, UserOperation(LIST, ""))
    assert listed.users == (("admin", ("amq",)), ("anna", ("ops",))) and listed.security is None
    done = operate_users(configuration, UserOperation(REMOVE, "anna"))
    assert roles(done, "anna", "other") is None
    assert operate_users(configuration, UserOperation(LIST, "anna")).users == (("anna", ()),)


def test_refusals_change_nothing(configuration: Configuration, tmp_path: Path) -> None:
    path = tmp_path / "artemis-users.properties"
    before = path.read_text()
    for operation, why in (
        (UserOperation(ADD, "admin", "x", ("amq",)), "AMQ229223: User admin already exists"),
        (UserOperation(REMOVE, "nobody"), "AMQ229224: User nobody does not exist"),
        (UserOperation(RESET, "nobody", "x"), "AMQ229224: User nobody does not exist"),
        (UserOperation(ADD, "anna", "", ("amq",)), "empty password"),
        (UserOperation(RESET, "admin", "", None), "empty password"),
        (UserOperation(ADD, "anna", "ENC(1:2)", ("amq",), True), "no hash"),
        (UserOperation(ADD, "a,b", "x", ("amq",)), "cannot be a user's name"),
        (UserOperation(ADD, "anna", "x" * (16 << 20), ("amq",), True), "larger than"),
    ):
        assert why in operate_users(configuration, operation).why
        assert path.read_text() == before
    for odd in ("\ud800", "\n\\u"):
        assert roles(operate_users(configuration, UserOperation(RESET, "admin", odd)), "admin", odd)


def test_without_security_the_files_change_all_the_same(tmp_path: Path) -> None:
    xml = "<configuration><core><security-enabled>false</security-enabled></core></configuration>"
    (tmp_path / "broker.xml").write_text(xml)
    configuration = read_broker_xml(tmp_path / "broker.xml")
    assert operate_users(configuration, UserOperation(ADD, "anna", "pw", ("amq",))) == UserAnswer()
    assert operate_users(configuration, UserOperation(LIST, "")).users == (("anna", ("amq",)),)


def test_a_login_config_without_users_with_passwords(
    configuration: Configuration, tmp_path: Path
) -> None:
    module = f"{MODULE}.GuestLoginModule sufficient"
    (tmp_path / "login.config").write_text(f"activemq {{ {module}; }};")
    for operation in (UserOperation(LIST, ""), UserOperation(ADD, "anna", "pw", ("amq",))):
        assert "no PropertiesLoginModule" in operate_users(configuration, operation).why


def test_files_with_problems_are_told(configuration: Configuration, tmp_path: Path) -> None:
    with (tmp_path / "artemis-users.properties").open("a") as users:
        users.write("bert = ENC(wrong)\n")
    why = operate_users(configuration, UserOperation(ADD, "anna", "pw", ("amq",))).why
    assert why.startswith("the change is written, but") and "bert" in why


def test_users_of_an_activemq_xml_are_not_changed_by_messages(tmp_path: Path) -> None:
    path = classic_file(tmp_path, "<plugins><simpleAuthenticationPlugin/></plugins>")
    answer = operate_users(read_broker_xml(path), UserOperation(ADD, "anna", "pw", ("amq",)))
    assert answer.why == "the users are in activemq.xml: change them there"
    assert sorted(each.name for each in path.parent.iterdir()) == ["activemq.xml"]
