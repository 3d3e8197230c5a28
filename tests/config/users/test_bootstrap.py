"""The security manager of a bootstrap.xml beside the broker.xml, as `artemis create` writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.users.users import read_security
from atalanta.config.users.users_file import open_user_files
from atalanta.kernel.security.password import hash_password
from atalanta.kernel.security.security import Security

PACKAGE = "org.apache.activemq.artemis.spi.core.security"
FIRST = {"bootstrapUser": "admin", "bootstrapPassword": hash_password("secret", b"\x01" * 32), "bootstrapRole": "amq"}
GUEST = (
    "activemq { org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient"
    ' org.apache.activemq.jaas.guest.user="guest" org.apache.activemq.jaas.guest.role="amq"; };\n'
)
PROPERTIES = (
    "shop { org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule required"
    ' org.apache.activemq.jaas.properties.user="shop-users.properties"'
    ' org.apache.activemq.jaas.properties.role="shop-roles.properties"; };\n'
)


def configure(folder: Path, bootstrap: str, **files: str) -> Configuration:
    (folder / "broker.xml").write_text("<configuration><core/></configuration>")
    text = f'<broker xmlns="http://activemq.apache.org/schema">{bootstrap}<server configuration="x"/></broker>'
    (folder / "bootstrap.xml").write_text(text)
    for name, content in files.items():
        (folder / f"{name.replace('_', '-')}.properties").write_text(content)
    return read_broker_xml(folder / "broker.xml")


def manager(name: str, **properties: str) -> str:
    given = "".join(f'<property key="{key}" value="{value}"/>' for key, value in properties.items())
    return f'<security-manager class-name="{name}">{given}</security-manager>'


def roles(security: Security, user: str, password: str) -> tuple[str, ...] | None:
    found = security.authenticate(user, password)
    return None if found is None else found.roles


def test_the_first_user_of_the_basic_manager_logs_in_and_no_guest_of_login_config(tmp_path: Path) -> None:
    (tmp_path / "login.config").write_text(GUEST)
    configuration = configure(tmp_path, manager(f"{PACKAGE}.ActiveMQBasicSecurityManager", **FIRST))
    security = read_security(configuration)
    assert roles(security, "admin", "secret") == ("amq",)
    assert roles(security, "admin", "wrong") is None and roles(security, "", "") is None
    assert not [each for each in configuration.warnings if "properties" in each or "login.config" in each]
    assert tmp_path / "bootstrap.xml" in configuration.files


def test_the_basic_manager_has_the_users_of_its_files_and_those_that_were_added_here(tmp_path: Path) -> None:
    files = {"bootstrapUserFile": "some-users.properties", "bootstrapRoleFile": "some-roles.properties"}
    bootstrap = manager(f"{PACKAGE}.ActiveMQBasicSecurityManager", **FIRST, **files)
    configure(tmp_path, bootstrap, some_users="anna = a\nadmin = other", some_roles="ops = anna,admin")
    users = open_user_files(tmp_path)
    users.add("bert", "b", ("shop",))
    security = read_security(read_broker_xml(tmp_path / "broker.xml"))
    assert roles(security, "anna", "a") == ("ops",)
    assert roles(security, "bert", "b") == ("shop",)
    assert roles(security, "admin", "secret") == ("amq",) and roles(security, "admin", "other") is None


@pytest.mark.parametrize(
    "bootstrap",
    ['<jaas-security domain="shop"/>', manager(f"{PACKAGE}.ActiveMQJAASSecurityManager", domain="shop")],
)
def test_the_entry_of_login_config_that_it_names_counts(tmp_path: Path, bootstrap: str) -> None:
    (tmp_path / "login.config").write_text(GUEST + PROPERTIES)
    security = read_security(configure(tmp_path, bootstrap, shop_users="anna = a", shop_roles="amq = anna"))
    assert roles(security, "anna", "a") == ("amq",)
    assert security.chain is None or security.chain.guest is None
    assert open_user_files(tmp_path).users.path.name == "shop-users.properties"


def test_an_entry_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """As in Artemis, nobody gets in: the users of another entry are perhaps others."""
    (tmp_path / "login.config").write_text(PROPERTIES)
    with pytest.raises(ConfigError, match=r"has no entry 'shops'.*did you mean 'shop'"):
        read_security(configure(tmp_path, '<jaas-security domain="shops"/>'))


@pytest.mark.parametrize(
    ("bootstrap", "words"),
    [
        (manager("com.example.Ours"), r"bootstrap\.xml:1: security manager Ours is not supported .*BasicSecurity"),
        ("<jaas-security", r"bootstrap\.xml:1: "),
        (
            manager(f"{PACKAGE}.ActiveMQBasicSecurityManager", **(FIRST | {"bootstrapPassword": "ENC(1:2)"})),
            r"bootstrap\.xml:1: user 'admin': ",
        ),
    ],
)
def test_what_it_cannot_do_is_refused(tmp_path: Path, bootstrap: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_security(configure(tmp_path, bootstrap))
