"""Users of a directory at a broker process: every protocol, a directory that goes away, and what the log says."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("ldap3", reason="the extra `ldap` is not installed")

from tests.app.directory_node import (
    ALLOWED,
    FORBIDDEN,
    PROPERTIES,
    REFUSED,
    everywhere,
    over_core,
    over_stomp,
    write_directory_node,
)
from tests.app.raw_clients import StompSocket
from tests.broker_process import BrokerProcess, refused
from tests.ports import free_port
from tests.runtime.ldap_server import SERVICE, SERVICE_PASSWORD, SUFFIX, LdapServer, group, person
from tests.waiting import until

pytestmark = pytest.mark.process

SECRET = "a secret of anna"
NO_CACHE = "<security-invalidation-interval>0</security-invalidation-interval>"


@pytest.fixture
def server() -> Iterator[LdapServer]:
    users = [person("anna", SECRET), person("bert", "a secret of bert")]
    with LdapServer([*users, group("writers", users[0].name), group("others", users[1].name)]) as running:
        yield running


def options(server: LdapServer, **more: str) -> dict[str, str]:
    return {
        "connectionURL": server.url,
        "connectionUsername": SERVICE,
        "connectionPassword": SERVICE_PASSWORD,
        "authentication": "simple",
        "userBase": f"ou=people,{SUFFIX}",
        "userSearchMatching": "(uid={0})",
        "roleBase": f"ou=groups,{SUFFIX}",
        "roleName": "cn",
        "roleSearchMatching": "(member={0})",
        "connectionTimeout": "2000",
        "readTimeout": "2000",
        **more,
    }


def node(folder: Path, server: LdapServer, more: str = "", core: str = NO_CACHE) -> BrokerProcess:
    port = free_port()
    return BrokerProcess(write_directory_node(folder, port, options(server), more, core=core), port=port)


def test_every_protocol_asks_the_directory(tmp_path: Path, server: LdapServer) -> None:
    with node(tmp_path, server) as broker:
        assert everywhere(broker.port, "anna", SECRET) == [ALLOWED] * 3
        assert everywhere(broker.port, "bert", "a secret of bert") == [FORBIDDEN] * 3
        for user, password in (("anna", "wrong"), ("anna", ""), ("nobody", SECRET), ("*", SECRET)):
            assert everywhere(broker.port, user, password) == [REFUSED] * 3
        assert everywhere(broker.port, "admin", "admin") == [REFUSED] * 3, "the files are no module here"
    assert server.empty_passwords == 0
    log = broker.log()
    assert SECRET not in log and SERVICE_PASSWORD not in log and "wrong" not in log


def test_a_directory_that_goes_away_and_comes_back(tmp_path: Path, server: LdapServer) -> None:
    with node(tmp_path, server, PROPERTIES) as broker, closing(StompSocket(broker.port)) as inside:
        inside.begin_login("anna", SECRET)
        assert b"CONNECTED" in inside.until(b"\0")
        server.stop()
        assert everywhere(broker.port, "anna", SECRET) == [REFUSED] * 3
        inside.post("orders", b"who is in stays in")
        assert everywhere(broker.port, "admin", "admin") == [ALLOWED] * 3, "the next module knows this user"
        server.start()
        until(lambda: over_stomp(broker.port, "anna", SECRET) == ALLOWED)
        broker.until_logged("directory_available")
    lines = [line for line in broker.log().splitlines() if "directory_unavailable" in line]
    assert len(lines) == 1 and "cannot be reached" in lines[0] and "connectionURL" in lines[0]


def test_nobody_waits_for_a_directory_that_says_nothing_but_who_asks_it(tmp_path: Path, server: LdapServer) -> None:
    port = free_port()
    path = write_directory_node(tmp_path, port, options(server, readTimeout="60000"), core=NO_CACHE)
    text = path.with_name("login.config").read_text().replace("activemq {\n", "activemq {\n" + PROPERTIES)
    path.with_name("login.config").write_text(text)
    server.silent = True
    with BrokerProcess(path, port=port) as broker:
        seen: list[str] = []
        waiting = threading.Thread(target=lambda: seen.append(over_core(port, "anna", SECRET)))
        waiting.start()
        until(server.connected)
        assert everywhere(port, "admin", "admin") == [ALLOWED] * 3
        assert seen == []
        server.silent = False
        server.cut()  # there was no answer: this login is refused
        waiting.join(60)
        assert seen == [REFUSED]
        until(lambda: over_stomp(port, "anna", SECRET) == ALLOWED)
        assert broker.running


def test_answers_are_remembered(tmp_path: Path, server: LdapServer) -> None:
    with node(tmp_path, server, core="") as broker:
        assert everywhere(broker.port, "anna", SECRET) == [ALLOWED] * 3
        assert everywhere(broker.port, "anna", "wrong") == [REFUSED] * 3
        assert server.binds.count(f"uid=anna,ou=people,{SUFFIX}") == 2


def test_a_node_that_stops_does_not_wait_for_the_directory(tmp_path: Path, server: LdapServer) -> None:
    port = free_port()
    server.silent = True
    path = write_directory_node(tmp_path, port, options(server, readTimeout="600000"))
    with BrokerProcess(path, port=port) as broker, closing(StompSocket(port)) as client:
        client.begin_login("anna", SECRET)
        until(lambda: server.connected())
        assert broker.end(signal.SIGTERM) == 0


def test_options_that_are_wrong_keep_the_node_from_starting(tmp_path: Path, server: LdapServer) -> None:
    wrong = options(server, authentication="GSSAPI", userSearchMatching="(uid={7})")
    path = write_directory_node(tmp_path, free_port(), wrong)
    with refused(path) as broker:
        broker.wait()
    assert "login.config:2: LDAPLoginModule: authentication 'gssapi' is not supported" in broker.log()
    assert "(uid={7})" in broker.log() and SERVICE_PASSWORD not in broker.log()
