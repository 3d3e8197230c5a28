"""LDAPLoginModule in a login.config: its options are honoured, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.users import ldap_options
from atalanta.config.users.users import read_security
from atalanta.config.users.users_file import open_user_files
from atalanta.kernel.security.directory import DirectoryConfig
from tests.config.activemq.classic_files import classic_file

ARTEMIS = "org.apache.activemq.artemis.spi.core.security.jaas.LDAPLoginModule"
CLASSIC = "org.apache.activemq.jaas.LDAPLoginModule"
USUAL = {
    "debug": "true",
    "initialContextFactory": "com.sun.jndi.ldap.LdapCtxFactory",
    "connectionURL": "ldaps://directory.example.org",
    "connectionUsername": "uid=broker,ou=services,dc=example,dc=org",
    "connectionPassword": "secret",
    "connectionProtocol": "s",
    "authentication": "simple",
    "userBase": "ou=people,dc=example,dc=org",
    "userSearchMatching": "(uid={0})",
    "userSearchSubtree": "true",
    "roleBase": "ou=groups,dc=example,dc=org",
    "roleName": "cn",
    "roleSearchMatching": "(member={0})",
    "roleSearchSubtree": "false",
}


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read here needs no library."""
    monkeypatch.setattr(ldap_options, "find_spec", lambda name: name)


def written(folder: Path, changes: Mapping[str, str | None], name: str = ARTEMIS, flag: str = "required") -> Path:
    """A broker.xml beside a login.config with the usual options and these; None: without one."""
    found = {**USUAL, **changes}
    options = "".join(f'\n      {key}="{value}"' for key, value in found.items() if value is not None)
    (folder / "broker.xml").write_text("<configuration><core/></configuration>")
    (folder / "login.config").write_text(f"activemq {{\n   {name} {flag}{options};\n}};\n")
    return folder / "broker.xml"


def directory(
    folder: Path, name: str = ARTEMIS, values: Mapping[str, str] | None = None, **changes: str | None
) -> tuple[DirectoryConfig, Configuration]:
    """What the module asks."""
    return directory_of(folder, changes, name, values)


def directory_of(
    folder: Path, changes: Mapping[str, str | None], name: str = ARTEMIS, values: Mapping[str, str] | None = None
) -> tuple[DirectoryConfig, Configuration]:
    configuration = read_broker_xml(written(folder, changes, name), values)
    security = read_security(configuration)
    assert security.chain is not None
    [found] = security.chain.directories
    return found, configuration


def problems(folder: Path, name: str = ARTEMIS, **changes: str | None) -> str:
    """The text of the problems, which are all at the module's line."""
    return problems_of(folder, changes, name)


def problems_of(folder: Path, changes: Mapping[str, str | None], name: str = ARTEMIS) -> str:
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(written(folder, changes, name)))
    assert all(problem.line == 2 for problem in caught.value.problems)
    return str(caught.value)


def test_the_usual_options(tmp_path: Path) -> None:
    found, configuration = directory(tmp_path)
    assert found == DirectoryConfig(
        ("ldaps://directory.example.org:636",),
        "uid=broker,ou=services,dc=example,dc=org",
        "secret",
        "ou=people,dc=example,dc=org",
        "(uid={0})",
        True,
        "",
        "ou=groups,dc=example,dc=org",
        "(member={0})",
        False,
        "cn",
    )
    assert not [text for text in configuration.warnings if "LDAP" in text]


def test_no_password_is_in_a_text(tmp_path: Path) -> None:
    found, configuration = directory(tmp_path)
    assert "secret" not in repr(found) and "secret" not in repr(configuration)
    text = problems(tmp_path, connectionPassword="open sesame", authentication="strong", userBase="")
    assert "sesame" not in text


@pytest.mark.parametrize(
    ("changes", "urls"),
    [
        ({"connectionURL": "ldap://localhost:1389"}, ("ldap://localhost:1389",)),
        ({"connectionURL": "ldap://127.0.0.1"}, ("ldap://127.0.0.1:389",)),
        ({"connectionURL": "ldap://a:636", "connectionProtocol": "ssl"}, ("ldaps://a:636",)),
        ({"connectionURL": "ldap://a", "connectionProtocol": "SSL"}, ("ldaps://a:636",)),
        ({"connectionURL": "ldaps://a ldaps://b:1636"}, ("ldaps://a:636", "ldaps://b:1636")),
        ({"connectionURL": "ldaps://[::1]:636"}, ("ldaps://[::1]:636",)),
    ],
)
def test_addresses(tmp_path: Path, changes: dict[str, str], urls: tuple[str, ...]) -> None:
    assert directory_of(tmp_path, changes)[0].urls == urls


def test_names_are_below_that_of_the_url(tmp_path: Path) -> None:
    found, _ = directory(
        tmp_path, connectionURL="ldaps://a/dc=example,dc=org", userBase="ou=people", roleBase=""
    )
    assert (found.user_base, found.role_base) == ("ou=people,dc=example,dc=org", "dc=example,dc=org")


def test_more_options(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    found, configuration = directory(
        tmp_path,
        values={"DIRECTORY_PASSWORD": "of the environment"},
        connectionPassword="${DIRECTORY_PASSWORD}",
        userSearchMatching="uid={0}",
        userRoleName="memberOf",
        roleSearchMatching="(|(member={0})(memberUid={1}))",
        expandRoles="true",
        expandRolesMatching="(member={0})",
        authenticateUser="false",
        connectionTimeout="2000",
        readTimeout="3000",
        ignorePartialResultException="true",
        noCacheExceptions="java.net.ConnectException",
        connectionPool="false",
        **{"atalanta.ldap.trustStorePath": "ca.pem"},
    )
    assert found.bind_password == "of the environment"
    assert (found.user_filter, found.user_role_attribute) == ("(uid={0})", "memberOf")
    assert found.expand_filter == "(member={0})" and not found.authenticates
    assert (found.connect_timeout_ms, found.read_timeout_ms) == (2_000, 3_000)
    assert found.trust_store == str(tmp_path / "ca.pem") and tmp_path / "ca.pem" in configuration.files
    assert not [text for text in configuration.warnings if "LDAP" in text]


def test_times_without_an_end_get_one(tmp_path: Path) -> None:
    found, _ = directory(tmp_path, connectionTimeout="0", readTimeout="-1")
    assert (found.connect_timeout_ms, found.read_timeout_ms) == (5_000, 10_000)


def test_an_anonymous_node(tmp_path: Path) -> None:
    found, _ = directory(tmp_path, authentication="none")
    assert (found.bind_name, found.bind_password) == ("", "")
    found, _ = directory(tmp_path, authentication=None, connectionUsername=None, connectionPassword=None)
    assert found.bind_name == ""


def test_a_masked_password(tmp_path: Path) -> None:
    found, _ = directory(tmp_path, connectionPassword="ENC(-41e444c3ed07d6dd)")
    assert found.bind_password not in ("", "ENC(-41e444c3ed07d6dd)")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"connectionURL": None}, "connectionURL is needed"),
        ({"connectionURL": "http://a"}, "'http://a' is not like ldap://host:389"),
        ({"connectionURL": "ldap://a:port"}, "is not like ldap://host:389"),
        ({"connectionUsername": None}, "connectionUsername is needed"),
        ({"connectionPassword": ""}, "connectionPassword is needed"),
        ({"connectionPassword": "ENC(zz)"}, "connectionPassword: not a masked password"),
        ({"connectionPassword": "${NOBODY_KNOWS}"}, "'${NOBODY_KNOWS}' has no value"),
        ({"connectionProtocol": "starttls"}, "connectionProtocol 'starttls' is not supported"),
        ({"authentication": "GSSAPI"}, "authentication 'gssapi' is not supported"),
        ({"saslLoginConfigScope": "broker-sasl-gssapi"}, "saslLoginConfigScope: Kerberos"),
        ({"initialContextFactory": "com.example.Factory"}, "initialContextFactory 'com.example.Factory' is Java"),
        ({"passwordCodec": "com.example.Codec"}, "passwordCodec 'com.example.Codec' is Java"),
        ({"referral": "sometimes"}, "referral 'sometimes' is none of"),
        ({"userBase": None}, "userBase is needed"),
        ({"roleBase": None}, "roleBase is needed"),
        ({"userSearchMatching": "(uid={1})"}, "userSearchMatching: '(uid={1})' has a parameter other than {0}"),
        ({"userSearchMatching": "(uid={0}"}, "is not a filter like (uid={0})"),
        ({"userSearchMatching": "(uid={0}))(a=b"}, "is not a filter"),
        ({"roleSearchMatching": "(member={2})"}, "has a parameter other than {0} and {1}"),
        ({"expandRoles": "true"}, "expandRoles needs expandRolesMatching"),
        ({"readTimeout": "soon"}, "readTimeout 'soon' is not a number"),
        ({"atalanta.ldap.trustStorePath": "nowhere.pem"}, "there is no file"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, str | None], words: str) -> None:
    assert words in problems_of(tmp_path, changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"connectionURL": "ldap://directory.example.org"}, "in clear text: write ldaps://"),
        ({"referral": "follow"}, "users and groups that other servers have are not found"),
        ({"userSearchSubtre": "true"}, "userSearchSubtre is not known and has no effect (did you mean 'userSearchSubt"),
    ],
)  # fmt: skip
def test_what_is_warned_of(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    _, configuration = directory_of(tmp_path, changes)
    [warning] = [text for text in configuration.warnings if "LDAP" in text]
    assert words in warning and warning.startswith(f"{tmp_path / 'login.config'}:2: ")


def test_without_the_library_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ldap_options, "find_spec", lambda name: None)
    assert "needs the package ldap3: pip install 'atalanta[ldap]'" in problems(tmp_path)


def test_the_module_of_classic(tmp_path: Path) -> None:
    found, _ = directory(tmp_path, CLASSIC)
    assert found.classic and found.authenticates
    assert "without it ActiveMQ lets in everybody" in problems(tmp_path, CLASSIC, userSearchMatching=None)


def test_a_flag_that_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, {}, flag="sometimes")
    with pytest.raises(ConfigError, match="LDAPLoginModule: 'sometimes' is none of required"):
        read_security(read_broker_xml(path))


def test_users_of_an_activemq_xml_have_its_role(tmp_path: Path) -> None:
    path = classic_file(tmp_path, "<plugins><jaasAuthenticationPlugin configuration='activemq'/></plugins>")
    written(tmp_path, {}, CLASSIC)
    (path.parent / "login.config").write_text((tmp_path / "login.config").read_text())
    chain = read_security(read_broker_xml(path)).chain
    assert chain is not None and chain.directories[0].more_roles == ("ActiveMQ.everyone",)


@pytest.mark.parametrize("scram", ["SCRAMLoginModule", "SCRAMPropertiesLoginModule", "Krb5LoginModule"])
def test_other_modules_are_refused_by_name(tmp_path: Path, scram: str) -> None:
    text = problems(tmp_path, f"org.apache.activemq.artemis.spi.core.security.jaas.{scram}")
    assert f"login module {scram} is not supported" in text and "LDAPLoginModule are" in text


def test_users_of_files_can_be_changed_beside_a_directory(tmp_path: Path) -> None:
    written(tmp_path, {"connectionPassword": "${NOBODY_KNOWS}"}, flag="sufficient")
    login = tmp_path / "login.config"
    properties = f"   {ARTEMIS.replace('LDAP', 'Properties')} sufficient;\n"
    login.write_text(login.read_text().replace("};", f"{properties}}};"))
    open_user_files(tmp_path).add("anna", "secret", ("users",))
    assert "anna = secret" in (tmp_path / "artemis-users.properties").read_text()


def test_permissions_of_a_directory_are_not_taken_in_silence(tmp_path: Path) -> None:
    plugin = "org.apache.activemq.artemis.core.server.impl.LegacyLDAPSecuritySettingPlugin"
    inside = f'<security-settings><security-setting-plugin class-name="{plugin}"/></security-settings>'
    (tmp_path / "broker.xml").write_text(f"<configuration><core>{inside}</core></configuration>")
    [named] = [each for each in read_broker_xml(tmp_path / "broker.xml").unsupported if "plugin" in each.name]
    assert named.lost and "nobody gets the permissions" in named.why
