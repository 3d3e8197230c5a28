"""Users and roles of a real slapd, over CORE, OpenWire and STOMP: LDAPLoginModule in a login.config."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.app.directory_node import (
    ALLOWED,
    FORBIDDEN,
    PROPERTIES,
    REFUSED,
    everywhere,
    over_stomp,
    write_directory_node,
)
from tests.app.raw_clients import StompSocket
from tests.broker_process import BrokerProcess
from tests.certificates import PASSWORD, Authority
from tests.interop.harness.directory_server import (
    PASSWORDS,
    SERVICE,
    SERVICE_PASSWORD,
    SUFFIX,
    DirectoryServer,
)
from tests.interop.harness.tools import ToolMissing
from tests.ports import free_port
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ANNA, BERT, CARL, LOST = [password for _, password in PASSWORDS.values()]
NO_CACHE = "<security-invalidation-interval>0</security-invalidation-interval>"
USUAL = {
    "debug": "true",
    "initialContextFactory": "com.sun.jndi.ldap.LdapCtxFactory",
    "connectionUsername": SERVICE,
    "connectionPassword": SERVICE_PASSWORD,
    "connectionProtocol": "s",
    "authentication": "simple",
    "userBase": f"ou=people,{SUFFIX}",
    "userSearchMatching": "(uid={0})",
    "userSearchSubtree": "false",
    "roleBase": f"ou=groups,{SUFFIX}",
    "roleName": "cn",
    "roleSearchMatching": "(member={0})",
    "roleSearchSubtree": "false",
}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[DirectoryServer]:
    try:
        made = DirectoryServer(tmp_path_factory.mktemp("ldap") / "slapd", authority.holder("ldap", "localhost"))
    except ToolMissing as missing:
        pytest.skip(str(missing))
    made.start()
    yield made
    made.kill()


class Node(BrokerProcess):
    """A node that asks the directory with the usual options and these. Its role `writers` may use all."""

    def __init__(
        self, folder: Path, directory: DirectoryServer, changes: dict[str, str] | None = None, more: str = "",
        core: str = NO_CACHE,
    ) -> None:  # fmt: skip
        port = free_port()
        options = {**USUAL, "connectionURL": directory.url, **(changes or {})}
        super().__init__(write_directory_node(folder, port, options, more, core=core), port=port)

    def __enter__(self) -> Node:
        super().__enter__()
        return self

    def sees(self, user: str, password: str) -> str:
        """What somebody gets to see, over each protocol the same."""
        [seen] = set(everywhere(self.port, user, password))
        return seen


def test_users_and_roles_of_groups(tmp_path: Path, directory: DirectoryServer) -> None:
    with Node(tmp_path, directory) as node:
        assert node.sees("anna", ANNA) == ALLOWED
        assert node.sees("lost", LOST) == FORBIDDEN, "this user is in no group"
        assert node.sees("Carl (O, Brien)*", CARL) == FORBIDDEN, "found by a name that has to be escaped"
        for user, password in (
            ("anna", "wrong"), ("anna", ""), ("anna", BERT), ("nobody", ANNA), ("*", ANNA), ("an*", ANNA),
            ("anna)(uid=*", ANNA), ("bert", BERT),
        ):  # fmt: skip
            assert node.sees(user, password) == REFUSED
    for secret in (ANNA, BERT, LOST, SERVICE_PASSWORD):
        assert secret not in node.log()


def test_users_in_a_subtree_and_their_groups(tmp_path: Path, directory: DirectoryServer) -> None:
    changes = {"userSearchSubtree": "true", "roleSearchMatching": "(|(member={0})(cn={1}))"}
    with Node(tmp_path, directory, changes) as node:
        assert node.sees("bert", BERT) == FORBIDDEN
        assert node.sees("anna", ANNA) == ALLOWED


@pytest.mark.parametrize(
    ("changes", "role"),
    [
        ({"expandRoles": "true", "expandRolesMatching": "(member={0})"}, "everybody"),
        ({"roleSearchSubtree": "true"}, "deep"),
        ({"userRoleName": "seeAlso"}, "member"),
        ({"roleName": ""}, f"cn=writers,ou=groups,{SUFFIX}"),
    ],
)
def test_where_roles_come_from(
    tmp_path: Path, directory: DirectoryServer, changes: dict[str, str], role: str
) -> None:
    with Node(tmp_path / "without", directory) as node:
        renamed(node, role)
        assert node.end(signal.SIGTERM) == 0
        with node:
            assert node.sees("anna", ANNA) == FORBIDDEN
    with Node(tmp_path / "with", directory, changes) as node:
        renamed(node, role)
        assert node.end(signal.SIGTERM) == 0
        with node:
            assert node.sees("anna", ANNA) == ALLOWED


def renamed(node: Node, role: str) -> None:
    """Gives the permissions to another role, by a role-mapping, since a name of an entry has commas."""
    text = node.broker_xml.read_text()
    mapping = f'<security-settings><role-mapping from="{role}" to="mapped"/>'
    text = text.replace("<security-settings>", mapping).replace('roles="writers"', 'roles="mapped"')
    node.broker_xml.write_text(text)


def test_the_directory_goes_and_comes_back(tmp_path: Path, directory: DirectoryServer) -> None:
    with Node(tmp_path, directory, more=PROPERTIES) as node, closing(StompSocket(node.port)) as inside:
        inside.begin_login("anna", ANNA)
        assert b"CONNECTED" in inside.until(b"\0")
        directory.kill()
        assert node.sees("anna", ANNA) == REFUSED
        assert node.sees("admin", "admin") == ALLOWED, "the next module knows this user"
        inside.post("orders", b"who is in stays in")
        directory.start()
        until(lambda: over_stomp(node.port, "anna", ANNA) == ALLOWED)
        directory.kill()  # connections that were open are lost, too
        directory.start()
        assert node.sees("anna", ANNA) == ALLOWED
    log = node.log()
    assert log.count("directory_unavailable") == 1 and log.count("directory_available") == 1


def test_a_directory_that_stands_still(tmp_path: Path, directory: DirectoryServer) -> None:
    changes = {"readTimeout": "1000", "connectionTimeout": "1000"}
    with Node(tmp_path, directory, changes, PROPERTIES) as node:
        assert node.sees("anna", ANNA) == ALLOWED
        directory.send(signal.SIGSTOP)
        try:
            assert node.sees("admin", "admin") == ALLOWED
            assert node.sees("anna", ANNA) == REFUSED
        finally:
            directory.send(signal.SIGCONT)
        until(lambda: over_stomp(node.port, "anna", ANNA) == ALLOWED)
        node.until_logged("directory_unavailable")


@pytest.mark.parametrize("kind", ["pem", "pkcs12"])
def test_tls(tmp_path: Path, directory: DirectoryServer, authority: Authority, kind: str) -> None:
    changes = {"connectionURL": directory.secure_url}
    with Node(tmp_path / "unknown", directory, changes) as node:
        assert node.sees("anna", ANNA) == REFUSED, "nobody vouches for its certificate"
        node.until_logged("CERTIFICATE_VERIFY_FAILED")
        assert "atalanta.ldap.trustStorePath" in node.log()
    store = authority.trust_pem(tmp_path) if kind == "pem" else authority.trust_store(tmp_path)
    changes["atalanta.ldap.trustStorePath"] = str(store)
    if kind == "pkcs12":
        changes["atalanta.ldap.trustStorePassword"] = PASSWORD
    with Node(tmp_path / "known", directory, changes) as node:
        assert node.sees("anna", ANNA) == ALLOWED
        assert node.sees("anna", "wrong") == REFUSED
    changes["connectionURL"] = f"ldap://127.0.0.1:{directory.secure_port}"
    changes["connectionProtocol"] = "ssl"
    with Node(tmp_path / "other", directory, changes) as node:
        assert node.sees("anna", ANNA) == REFUSED, "the certificate is for another host"
        node.until_logged("is not valid for")


def test_answers_are_remembered_for_a_time(tmp_path: Path, directory: DirectoryServer) -> None:
    core = "<security-invalidation-interval>600000</security-invalidation-interval>"
    with Node(tmp_path, directory, core=core) as node:
        assert node.sees("anna", ANNA) == ALLOWED
        assert node.sees("anna", "wrong") == REFUSED
        directory.kill()
        try:
            assert node.sees("anna", ANNA) == ALLOWED
            assert node.sees("anna", "wrong") == REFUSED
            assert node.sees("lost", LOST) == REFUSED, "this one was not there before"
        finally:
            directory.start()


def test_an_activemq_xml_with_the_module_of_classic(tmp_path: Path, directory: DirectoryServer) -> None:
    port, stomp = free_port(), free_port()
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "activemq.xml").write_text(f"""<beans xmlns="http://www.springframework.org/schema/beans">
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="ldap" dataDirectory="{tmp_path}/data">
 <plugins><jaasAuthenticationPlugin configuration="directory"/>
  <authorizationPlugin><map><authorizationMap><authorizationEntries>
   <authorizationEntry queue=">" read="writers" write="writers" admin="writers"/>
   <authorizationEntry topic="ActiveMQ.Advisory.>" read="writers" write="writers" admin="writers"/>
  </authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>
 <transportConnectors><transportConnector name="all" uri="tcp://127.0.0.1:{port}"/>
  <transportConnector name="stomp" uri="stomp://127.0.0.1:{stomp}"/></transportConnectors>
</broker></beans>""")
    options = {**USUAL, "connectionURL": directory.url}
    lines = "".join(f'\n    {name}="{value}"' for name, value in options.items())
    module = f"org.apache.activemq.jaas.LDAPLoginModule required{lines}"
    (conf / "login.config").write_text(f"directory {{\n  {module};\n}};")
    with BrokerProcess(conf / "activemq.xml", port=port):
        assert over_stomp(stomp, "anna", ANNA) == ALLOWED
        assert over_stomp(stomp, "lost", LOST) == FORBIDDEN
        assert over_stomp(stomp, "anna", "wrong") == REFUSED
        assert over_stomp(stomp, "anna", "") == REFUSED
