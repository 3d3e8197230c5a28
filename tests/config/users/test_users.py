"""Users and roles beside the broker.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.users.users import read_security
from atalanta.kernel.security.password import hash_password


def configure(folder: Path, users: str | None, roles: str | None, core: str = "") -> Configuration:
    (folder / "broker.xml").write_text(f"<configuration><core>{core}</core></configuration>")
    if users is not None:
        (folder / "artemis-users.properties").write_text(users, encoding="utf-8")
    if roles is not None:
        (folder / "artemis-roles.properties").write_text(roles, encoding="utf-8")
    return read_broker_xml(folder / "broker.xml")


RULES = """<security-settings><security-setting match="#"><permission type="send" roles="amq"/>
</security-setting></security-settings>"""


def test_users_and_roles(tmp_path: Path) -> None:
    hashed = hash_password("gehäim", b"\x01" * 32)
    users = f"# users\nanna = secret\nbert={hashed}\n"
    security = read_security(configure(tmp_path, users, "amq = anna, bert\nops=bert\n", RULES))
    anna = security.authenticate("anna", "secret")
    assert anna is not None and anna.roles == ("amq",)
    bert = security.authenticate("bert", "gehäim")
    assert bert is not None and bert.roles == ("amq", "ops")
    assert security.authenticate("bert", hashed) is None
    assert security.authenticate("anna", "wrong") is None
    assert security.allowed(anna, "send", "any.address")
    assert not security.allowed(anna, "consume", "any.address")


def test_a_hash_that_artemis_made(tmp_path: Path) -> None:
    # Printed by Artemis 2.44 for the password "admin".
    hashed = (
        "ENC(1024:CA61945C0D578494C70C278C406EEBB889FB2ACAEC659C2BDF4E3E8B00C0643D:"
        "F0F068F3FC26D78FCC02D022E0D4BD23FC13BE8898082B3121E38EDA02FE41235A274AA8C500AFB9FF819C709A"
        "0CE0571809055353BABB19DD8C789F4DB8E4A2)"
    )
    security = read_security(configure(tmp_path, f"admin = {hashed}", "amq = admin"))
    assert security.authenticate("admin", "admin") is not None
    assert security.authenticate("admin", "Admin") is None


def test_missing_files_let_nobody_in(tmp_path: Path) -> None:
    configuration = configure(tmp_path, None, None)
    security = read_security(configuration)
    assert security.authenticate("anna", "secret") is None
    assert security.authenticate("", "") is None
    assert sum("is missing" in warning for warning in configuration.warnings) == 2


def test_without_security_no_files_are_needed(tmp_path: Path) -> None:
    core = "<security-enabled>false</security-enabled>"
    security = read_security(configure(tmp_path, None, None, core))
    identity = security.authenticate(None, None)
    assert identity is not None and security.allowed(identity, "send", "a")


def test_problems_are_reported_with_their_line(tmp_path: Path) -> None:
    users = "anna = a\nbert = ENC(12:zz:00)\nanna = b\ncarl = \\u00zz\n"
    with pytest.raises(ConfigError) as caught:
        read_security(configure(tmp_path, users.split("carl")[0], ""))
    assert [found.line for found in caught.value.problems] == [2]
    with pytest.raises(ConfigError) as caught:
        read_security(configure(tmp_path, users, ""))
    assert caught.value.problems[0].line == 4


def test_roles_of_unknown_users_are_warned_about(tmp_path: Path) -> None:
    configuration = configure(tmp_path, "anna = a", "amq = ana")
    read_security(configuration)
    [warning] = configuration.warnings[1:]
    assert "names 'ana', which is not a user (did you mean 'anna'?)" in warning


def test_of_a_role_that_is_there_twice_the_last_line_counts(tmp_path: Path) -> None:
    """Java's Properties, which Artemis reads the file with, have one value for a name."""
    path = tmp_path / "broker.xml"
    path.write_text("<configuration><core/></configuration>")
    (tmp_path / "artemis-users.properties").write_text("anna = a\nbert = b\n")
    (tmp_path / "artemis-roles.properties").write_text("amq = anna,bert\namq = bert\n")
    configuration = read_broker_xml(path)
    security = read_security(configuration)
    assert {name: user.roles for name, user in security.users.items()} == {"anna": (), "bert": ("amq",)}
    [warning] = [each for each in configuration.warnings if "twice" in each]
    assert warning == f"{tmp_path / 'artemis-roles.properties'}:2: role 'amq' is there twice: the last one counts"
