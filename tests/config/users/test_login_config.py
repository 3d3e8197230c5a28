"""login.config beside the broker.xml: followed where it can be, refused where it cannot."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError
from atalanta.config.users.login_config import parse_login_config
from atalanta.config.users.users import read_security
from atalanta.config.users.users_file import UsersError, open_user_files

PACKAGE = "org.apache.activemq.artemis.spi.core.security.jaas"
AS_CREATED = f"""/*
 * a licence; with "quotes" and {{ braces }}
 */
activemq {{
   {PACKAGE}.PropertiesLoginModule required   // the usual
       debug=false
       reload=true
       org.apache.activemq.jaas.properties.user="people.properties"
       org.apache.activemq.jaas.properties.role="groups.properties";
}};
"""


def configure(folder: Path, login: str) -> Path:
    (folder / "broker.xml").write_text("<configuration><core/></configuration>")
    (folder / "login.config").write_text(login)
    (folder / "people.properties").write_text("anna = secret\n")
    (folder / "groups.properties").write_text("amq = anna\n")
    return folder / "broker.xml"


def test_the_files_it_names_are_read(tmp_path: Path) -> None:
    configuration = read_broker_xml(configure(tmp_path, AS_CREATED))
    anna = read_security(configuration).authenticate("anna", "secret")
    assert anna is not None and anna.roles == ("amq",)
    assert len(configuration.warnings) == 1  # there is no acceptor


def with_guests(options: str, flag: str = "sufficient") -> str:
    module = f"   {PACKAGE}.GuestLoginModule {flag} debug=false {options};\n}};"
    return AS_CREATED.replace("PropertiesLoginModule required", "PropertiesLoginModule sufficient").replace(
        "};", module
    )


@pytest.mark.parametrize(
    ("options", "strict", "user", "role"),
    [
        ("", False, "guest", "guests"),
        ('org.apache.activemq.jaas.guest.user="visitor"', False, "visitor", "guests"),
        ("org.apache.activemq.jaas.guest.role=readers credentialsInvalidate=TRUE", True, "guest", "readers"),
        ("credentialsInvalidate=yes", False, "guest", "guests"),  # as Java reads it
    ],
)
def test_guests(tmp_path: Path, options: str, strict: bool, user: str, role: str) -> None:
    configuration = read_broker_xml(configure(tmp_path, with_guests(options)))
    security = read_security(configuration)
    assert security.chain is not None and security.chain.guest is not None
    guest = security.chain.guest
    assert (guest.user, guest.role, guest.strict) == (user, role, strict)
    found = security.combined("", None, guest=True)
    assert found is not None and (found.user, found.roles) == (user, (role,))
    assert security.combined("", None, guest=False) is None
    anna = security.authenticate("anna", "secret")
    assert security.combined("", anna, guest=True) is anna
    told = [text for text in configuration.warnings if "wrong password" in text]
    assert len(told) == (0 if strict else 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (with_guests('org.apache.activemq.jaas.guest.user=""'), "guest.user is empty"),
        (with_guests("", "sometimes"), "'sometimes' is none of required, requisite"),
        (with_guests("org.apache.activemq.jaas.guest.user=ACTIVEMQ.CLUSTER.ADMIN.USER"), "is the cluster's user"),
        (with_guests("").replace("};", f"{PACKAGE}.GuestLoginModule sufficient;}};"), "is given twice"),
    ],
)
def test_guests_that_are_not_described_well(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(configure(tmp_path, text)))
    assert words in str(caught.value)


def test_only_guests_need_no_other_file(tmp_path: Path) -> None:
    path = configure(tmp_path, f"activemq {{ {PACKAGE}.GuestLoginModule required; }};")
    for name in ("people.properties", "groups.properties"):
        (tmp_path / name).unlink()
    configuration = read_broker_xml(path)
    found = read_security(configuration).combined("", None, guest=True)
    assert found is not None and found.user == "guest"
    assert not [text for text in configuration.warnings if "missing" in text]


def test_what_cannot_be_served_keeps_the_node_from_starting(tmp_path: Path) -> None:
    text = AS_CREATED.replace("PropertiesLoginModule", "Krb5LoginModule")
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(configure(tmp_path, text)))
    [problem] = caught.value.problems
    assert problem.line == 5 and "login module Krb5LoginModule is not supported" in problem.text
    assert "GuestLoginModule and LDAPLoginModule are" in str(problem)


WITH_CERTIFICATES = AS_CREATED.replace("required", "sufficient").replace(
    "};",
    f"""   {PACKAGE}.TextFileCertificateLoginModule Sufficient
       org.apache.activemq.jaas.textfiledn.user="subjects.properties"
       org.apache.activemq.jaas.textfiledn.role="subject-roles.properties";
}};""",
)


def test_users_by_certificate(tmp_path: Path) -> None:
    path = configure(tmp_path, WITH_CERTIFICATES)
    (tmp_path / "groups.properties").write_text("amq = anna\nextra = carl\n")
    (tmp_path / "subjects.properties").write_text("carl=CN=client, O=Example\nany=/CN=.*/\n")
    (tmp_path / "subject-roles.properties").write_text("reader = carl,any\nwriter = carl\n")
    configuration = read_broker_xml(path)
    security = read_security(configuration)
    anna = security.authenticate("anna", "secret")
    assert anna is not None and security.combined("", anna) is anna
    carl = security.combined("CN=client, O=Example", None)
    assert carl is not None and carl.user == "carl" and carl.roles == ("reader", "writer")
    other = security.combined("CN=somebody", None)
    assert other is not None and other.user == "any" and other.roles == ("reader",)
    assert security.combined("O=somebody", None) is None
    assert len(configuration.warnings) == 1  # there is no acceptor
    assert tmp_path / "subjects.properties" in configuration.files


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Sufficient", "maybe", "'maybe' is none of required, requisite"),
        ("textfiledn.role", "textfiledn.rule", "needs org.apache.activemq.jaas.textfiledn.role"),
        ("PropertiesLoginModule", "TextFileCertificateLoginModule", "is given twice"),
    ],
)
def test_certificates_that_are_not_described_well(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = configure(tmp_path, WITH_CERTIFICATES.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(path))
    assert words in str(caught.value)


def test_a_bad_pattern_names_its_line(tmp_path: Path) -> None:
    path = configure(tmp_path, WITH_CERTIFICATES)
    (tmp_path / "subjects.properties").write_text("a=CN=a\nb=/CN=(/\n")
    (tmp_path / "subject-roles.properties").write_text("")
    with pytest.raises(ConfigError, match=r"subjects\.properties:2: user 'b'"):
        read_security(read_broker_xml(path))


def test_comments_end_before_strings_and_strings_hold_what_they_like() -> None:
    text = r'''a { x.M required // "no" {
        url="ldap://host:389" /* "not
        this" */ name="a \"b\" \\c" filter="(&(a={0})(b=c));";
    };'''
    [module] = parse_login_config(text).entries["a"]
    assert module.options == {"url": "ldap://host:389", "name": 'a "b" \\c', "filter": "(&(a={0})(b=c));"}
    assert module.line == 1


@pytest.mark.parametrize("text", ["", '"', "/* open", "// activemq { };", "activemq GuestLoginModule required;"])
def test_a_file_without_entries_lets_in_nobody(tmp_path: Path, text: str) -> None:
    """In Artemis nobody could log in. The users of the properties files are perhaps others."""
    (tmp_path / "artemis-users.properties").write_text("anna = secret\n")
    with pytest.raises(ConfigError, match="no entry can be read"):
        read_security(read_broker_xml(configure(tmp_path, text)))


GUESTS_LET_IN = f"activemq {{ {PACKAGE}.GuestLoginModule sufficient; }};\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GUESTS_LET_IN.replace("activemq", "guests") + "activemq { };", "no login module can be read in the entry"),
        (AS_CREATED + GUESTS_LET_IN, "login.config:11: the entry 'activemq' is there twice"),
        (AS_CREATED.replace("};", f" {PACKAGE}.GuestLoginModule sufficient"), "the last entry does not end"),
        (AS_CREATED + "};", "'}' ends no entry"),
        (with_guests("credentialsInvalidate true"), "what follows GuestLoginModule|debug cannot be read"),
        (with_guests('credentialsInvalidate="true'), "what follows credentialsInvalidate cannot be read"),
    ],
)
def test_a_file_that_java_refuses_lets_in_nobody(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_security(read_broker_xml(configure(tmp_path, text)))


@pytest.mark.parametrize(
    "value", ["c2VjcmV0==", "c2VjcmV0=more", "two c2VjcmV0", "ab;c2VjcmV0", "'c2VjcmV0'", '"c2VjcmV0', "${c2VjcmV0}"]
)
def test_a_password_without_its_quotes_is_told_but_never_shown(tmp_path: Path, value: str) -> None:
    text = AS_CREATED.replace("PropertiesLoginModule required", f"LDAPLoginModule required connectionPassword={value}")
    with pytest.raises(ConfigError, match="quotes") as caught:
        read_security(read_broker_xml(configure(tmp_path, text)))
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize("text", ["activemq {", "}};;{{", "a = b; c {x"])
def test_a_file_that_ends_early_keeps_the_node_from_starting(tmp_path: Path, text: str) -> None:
    """Which users it means is unknown; those of the properties files are perhaps others."""
    (tmp_path / "artemis-users.properties").write_text("anna = secret\n")
    with pytest.raises(ConfigError, match="no login module can be read"):
        read_security(read_broker_xml(configure(tmp_path, text)))


def test_reading_a_long_file_takes_time_by_its_length_only() -> None:
    begin = time.thread_time()
    parse_login_config("a " * 300_000)
    parse_login_config("/* " * 300_000)
    assert time.thread_time() - begin < 5


def with_door(folder: Path, login: str, domain: str) -> Path:
    path = configure(folder, login)
    query = f"?securityDomain={domain}"
    doors = "".join(
        f'<acceptor name="{name}">tcp://127.0.0.1:{port}{query if port > 1 else ""}</acceptor>'
        for port, name in enumerate("abc", 1)
    )
    path.write_text(f"<configuration><core><acceptors>{doors}</acceptors></core></configuration>")
    return path


TWO = AS_CREATED + f"""
visitors {{
   {PACKAGE}.PropertiesLoginModule sufficient
       org.apache.activemq.jaas.properties.user="others.properties"
       org.apache.activemq.jaas.properties.role="groups.properties";
   {PACKAGE}.GuestLoginModule sufficient credentialsInvalidate=true;
}};
"""


def test_a_door_with_users_of_its_own(tmp_path: Path) -> None:
    path = with_door(tmp_path, TWO, "visitors")
    (tmp_path / "others.properties").write_text("anna = another\ncleo = c\n")
    security = read_security(read_broker_xml(path))
    there = security.domain("visitors")
    assert list(security.domains) == ["visitors"]
    assert security.authenticate("anna", "secret") is not None
    assert security.authenticate("cleo", "c") is None
    assert there.authenticate("anna", "secret") is None
    assert there.authenticate("cleo", "c") is not None
    assert security.chain is None and there.chain is not None and there.chain.guest is not None


def test_an_entry_without_modules_is_not_an_unknown_one(tmp_path: Path) -> None:
    path = with_door(tmp_path, AS_CREATED + "visitors { };", "visitors")
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(path))
    assert "no login module can be read in the entry 'visitors'" in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_a_module_without_its_end_is_not_left_out(tmp_path: Path) -> None:
    path = configure(tmp_path, with_guests("").replace("debug=false ;", "debug=false"))
    with pytest.raises(ConfigError, match="login.config:10: GuestLoginModule does not end with a semicolon"):
        read_security(read_broker_xml(path))


def test_a_door_whose_users_nobody_knows(tmp_path: Path) -> None:
    path = with_door(tmp_path, TWO, "visitor")
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(path))
    assert "has no entry 'visitor'" in str(caught.value) and "'visitors'" in str(caught.value)
    (tmp_path / "login.config").unlink()
    (tmp_path / "artemis-users.properties").write_text("anna = secret\n")
    with pytest.raises(ConfigError, match="is missing: securityDomain 'visitor'"):
        read_security(read_broker_xml(path))


def bootstrap(folder: Path, inside: str) -> None:
    server = '<!-- x --><server configuration="file:${x}"/>'
    text = f'<broker xmlns="http://activemq.apache.org/schema">{inside}{server}</broker>'
    (folder / "bootstrap.xml").write_text(text)


def test_bootstrap_xml_names_the_entry(tmp_path: Path) -> None:
    path = configure(tmp_path, TWO)
    (tmp_path / "others.properties").write_text("cleo = c\n")
    bootstrap(tmp_path, '<jaas-security domain="visitors" certificate-domain="activemq"/>')
    configuration = read_broker_xml(path)
    security = read_security(configuration)
    assert security.authenticate("anna", "secret") is None and security.authenticate("cleo", "c") is not None
    assert "bootstrap.xml:1: certificate-domain 'activemq' has no effect" in "".join(configuration.warnings)
    assert open_user_files(tmp_path).users.path.name == "others.properties"
    assert tmp_path / "bootstrap.xml" in configuration.files


@pytest.mark.parametrize("inside", ["", '<jaas-security domain="activemq"/>'])
def test_bootstrap_xml_as_it_is_created_changes_nothing(tmp_path: Path, inside: str) -> None:
    path = configure(tmp_path, AS_CREATED)
    bootstrap(tmp_path, inside)
    assert read_security(read_broker_xml(path)).authenticate("anna", "secret") is not None


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<jaas-security domain="absent"/>', "has no entry 'absent'"),
        ('<security-manager class-name="a.b.Ours"/>', "security manager Ours is not supported"),
        ("<a>", "bootstrap.xml"),
    ],
)
def test_a_bootstrap_xml_with_other_users_lets_in_nobody(tmp_path: Path, inside: str, words: str) -> None:
    path = configure(tmp_path, AS_CREATED)
    bootstrap(tmp_path, inside)
    with pytest.raises(ConfigError, match=words):
        read_security(read_broker_xml(path))
    with pytest.raises(UsersError):
        open_user_files(tmp_path)


LDAP = """%s {
   org.example.LDAPLoginModule required
       connectionURL="ldap://localhost:389"
       userBase="ou=users";
};
"""


def test_a_url_in_quotes_is_no_comment(tmp_path: Path) -> None:
    text = LDAP % "a" + AS_CREATED.replace("activemq {", "b {")
    [ldap, other] = parse_login_config(text).entries.values()
    assert ldap[0].options == {"connectionURL": "ldap://localhost:389", "userBase": "ou=users"}
    assert [(each.name.rpartition(".")[2], each.line) for each in other] == [("PropertiesLoginModule", 10)]


@pytest.mark.parametrize("domain", ["activemq", "with-roles"])
def test_an_entry_that_cannot_be_read_lets_in_nobody(tmp_path: Path, domain: str) -> None:
    """It neither has the users of the properties files instead, nor is it another entry of the same name."""
    acceptor = "" if domain == "activemq" else f"?securityDomain={domain}"
    path = configure(tmp_path, f"{domain} {{ }};\n")
    core = f'<acceptors><acceptor name="a">tcp://127.0.0.1:0{acceptor}</acceptor></acceptors>'
    path.write_text(f"<configuration><core>{core}</core></configuration>")
    with pytest.raises(ConfigError) as caught:
        read_security(read_broker_xml(path))
    for problem in caught.value.problems:
        assert problem.text == f"no login module can be read in the entry '{domain}'"
        assert problem.hint == "a module is its class, a flag and options, and ends with ';'"
