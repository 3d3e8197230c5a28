"""The cluster user of nodes without a cluster connection: nobody knows its password, at no door."""

from __future__ import annotations

import asyncio
import os
import socket
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from atalanta.client import ClientError, NotAuthorized, connect
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.users.users import read_security
from atalanta.kernel.security.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.wire.openwire.commands.connections import ConnectionInfo
from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.commands.responses import ExceptionResponse
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml, write_users
from tests.cli.calls import Cli
from tests.config.activemq.classic_files import classic_file
from tests.ports import free_port
from tests.wire.stomp.stomp_rig import frame

CONNECTOR: Final = "<connectors><connector name='own'>tcp://127.0.0.1:{port}</connector></connectors>"
CLUSTER: Final = """<cluster-connections><cluster-connection name='c'><connector-ref>own</connector-ref>
    <static-connectors/></cluster-connection></cluster-connections>"""
STANDALONE: Final = """<server xmlns="urn:jboss:domain:20.0"><profile>
  <subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="n">{inside}
  <security-setting name="#"><role name="amq" send="true"/></security-setting>
  <remote-acceptor name="a" socket-binding="messaging"/></server></subsystem></profile>
  <interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface></interfaces>
  <socket-binding-group name="g" default-interface="public">
  <socket-binding name="messaging" port="{port}"/></socket-binding-group></server>"""


def single(folder: Path, port: int, more: str = "") -> Path:
    """A broker.xml with security and one user, admin."""
    path = write_broker_xml(folder, port, more=more, security=True)
    write_users(path, {"admin": "admin"}, {"amq": "admin"})
    return path


def classic(folder: Path, port: int) -> Path:
    """An activemq.xml with users and permissions."""
    return classic_file(
        folder,
        """<plugins><simpleAuthenticationPlugin><users>
        <authenticationUser username="admin" password="admin" groups="admins"/></users></simpleAuthenticationPlugin>
        <authorizationPlugin><map><authorizationMap><authorizationEntries>
        <authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>
        </authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>
        """
        f'<transportConnectors><transportConnector name="all" uri="auto://127.0.0.1:{port}"/></transportConnectors>',
        'brokerName="classic" dataDirectory="data"',
    )


def created(folder: Path, port: int, *words: str) -> Path:
    """What `atalanta create` writes."""
    Cli()("create", str(folder), "--port", str(port), "--password", "admin", *words)
    return folder / "etc" / "broker.xml"


def wildfly(folder: Path, port: int, inside: str = "") -> Path:
    """A standalone.xml."""
    path = folder / "standalone.xml"
    folder.mkdir(exist_ok=True)
    path.write_text(STANDALONE.format(port=port, inside=inside))
    return path


def with_table(folder: Path, port: int) -> Path:
    """A broker.xml with an atalanta.toml beside it."""
    path = single(folder, port)
    (path.parent / "atalanta.toml").write_text("cluster-plain-password = true\n")
    return path


def of_a_store(folder: Path, port: int) -> Path:
    """The primary of a shared store, without a cluster connection."""
    policy = "<ha-policy><shared-store><primary/></shared-store></ha-policy>"
    return single(folder, port, policy)


def written_out(folder: Path, port: int) -> Path:
    """The default password in the file itself, as old manuals have it: it is as public there."""
    return single(folder, port, f"<cluster-password>{DEFAULT_CLUSTER_PASSWORD}</cluster-password>")


def empty(folder: Path, port: int) -> Path:
    """An empty password."""
    return single(folder, port, "<cluster-user>c</cluster-user><cluster-password></cluster-password>")


def wildfly_default(folder: Path, port: int) -> Path:
    """The credentials that WildFly's own files have."""
    return wildfly(folder, port, f'<cluster user="c" password="{DEFAULT_CLUSTER_PASSWORD}"/>')


FILES: Final = [single, classic, created, wildfly, with_table, of_a_store, written_out, empty, wildfly_default]


@pytest.mark.parametrize("made", FILES, ids=lambda made: made.__name__)
def test_nobody_is_the_cluster_user_of_a_node_without_a_cluster_connection(tmp_path: Path, made: object) -> None:
    assert callable(made)
    security = read_security(read_broker_xml(made(tmp_path / "node", 61616)))
    for user in (DEFAULT_CLUSTER_USER, security.cluster_user):
        for password in (DEFAULT_CLUSTER_PASSWORD, "", None):
            assert security.authenticate(user, password) is None
            assert not security.authenticate_cluster(user, password or "")


def test_a_password_of_its_own_or_a_cluster_connection_lets_the_cluster_user_in(tmp_path: Path) -> None:
    own = read_security(read_broker_xml(single(tmp_path / "own", 1, "<cluster-password>mine</cluster-password>")))
    joined = read_security(
        read_broker_xml(single(tmp_path / "joined", 1, CONNECTOR.format(port=1) + CLUSTER))
    )
    for security, password in ((own, "mine"), (joined, DEFAULT_CLUSTER_PASSWORD)):
        identity = security.authenticate(DEFAULT_CLUSTER_USER, password)
        assert identity is not None and identity.cluster
        assert security.authenticate_cluster(DEFAULT_CLUSTER_USER, password)
        assert security.authenticate(DEFAULT_CLUSTER_USER, "else") is None


# -- real nodes, each door -------------------------------------------------------------------------
def stomp(port: int, websocket: bool) -> bytes:
    """What a STOMP client that logs in as the cluster user is told, perhaps within a WebSocket."""
    hello = frame("CONNECT", {"accept-version": "1.2", "host": "h", "login": DEFAULT_CLUSTER_USER,
                              "passcode": DEFAULT_CLUSTER_PASSWORD})  # fmt: skip
    with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as door:
        if websocket:
            key = b64encode(os.urandom(16)).decode()
            door.sendall(
                "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
                f"\r\nSec-WebSocket-Protocol: v12.stomp\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
            )
            hello = b"\x81\xfe" + len(hello).to_bytes(2, "big") + bytes(4) + hello  # the mask is zero
        door.sendall(hello)
        answer = b""
        while b"\n\n" not in answer and (data := door.recv(4096)):
            answer += data
        return answer


def openwire(port: int) -> DataStructure:
    """The answer that an OpenWire client gets which logs in as the cluster user."""
    options = WireFormatOptions()
    decoder = FrameDecoder(options)
    decoder.open()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as door:
        door.sendall(WireFormat(HANDSHAKE).encode(info_of(options)))
        found: list[DataStructure] = []

        def answers(count: int) -> None:
            while len(found) < count:
                data = door.recv(4096)
                assert data, found
                decoder.feed(data)
                while (command := decoder.next()) is not None:
                    found.append(command)

        answers(2)
        login = ConnectionInfo(ConnectionId("ID:x"), "x", DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER)
        login.command_id, login.response_required = 1, True
        door.sendall(decoder.format.encode(login))
        answers(3)
        return found[2]


async def core(port: int) -> str:
    """Why the Python client does not get in."""
    try:
        async with connect(f"tcp://127.0.0.1:{port}", user=DEFAULT_CLUSTER_USER, password=DEFAULT_CLUSTER_PASSWORD):
            return "it is in"
    except (NotAuthorized, ClientError) as error:
        return str(error)


@pytest.mark.process
@pytest.mark.parametrize("made", [single, classic, created], ids=lambda made: made.__name__)
def test_every_door_refuses_the_cluster_user_and_says_what_a_bridge_needs(tmp_path: Path, made: object) -> None:
    assert callable(made)
    port = free_port()
    with BrokerProcess(made(tmp_path / "node", port)) as broker:
        told = asyncio.run(core(port))
        assert "AMQ229031" in told and "a core bridge needs a <user>" in told
        refused = openwire(port)
        assert isinstance(refused, ExceptionResponse), refused
        assert stomp(port, websocket=False).startswith(b"ERROR")
        assert b"ERROR\n" in stomp(port, websocket=True)
        cli = Cli(f"tcp://127.0.0.1:{port}")
        cli.environment |= {"ATALANTA_USER": DEFAULT_CLUSTER_USER, "ATALANTA_PASSWORD": DEFAULT_CLUSTER_PASSWORD}
        cli("produce", "secret", "--text", "x", status=77)
        cli("queue", "stat", status=77)
        logged = [line for line in broker.log().splitlines() if "login_refused" in line]
        assert len(logged) >= 6 and all("give the bridge a <user>" in line for line in logged), broker.log()


@pytest.mark.process
def test_a_bridge_without_a_user_is_refused_until_it_has_one(tmp_path: Path) -> None:
    """Its messages stay where they are; nothing is lost meanwhile."""
    there, here = free_port(), free_port()
    inbox = "<addresses><address name='inbox'><anycast><queue name='inbox'/></anycast></address></addresses>"
    names = ("send", "consume", "browse", "createAddress", "createDurableQueue", "manage")
    rights = "".join(f"<permission type='{name}' roles='amq'/>" for name in names)
    rules = f"<security-settings><security-setting match='#'>{rights}</security-setting></security-settings>"
    target_xml = single(tmp_path / "target", there, inbox + rules)
    bridge = """<bridges><bridge name="away"><queue-name>orders</queue-name>
      <forwarding-address>inbox</forwarding-address><retry-interval>200</retry-interval>{user}
      <static-connectors><connector-ref>own</connector-ref></static-connectors></bridge></bridges>"""
    source_xml = write_broker_xml(tmp_path / "source", here, more=CONNECTOR.format(port=there) + bridge.format(user=""))
    with BrokerProcess(target_xml) as target, BrokerProcess(source_xml) as source:
        Cli(f"tcp://127.0.0.1:{here}")("produce", "orders", "--text", "hello")
        target.until_logged("give the bridge a <user>")
        source.until_logged("a core bridge needs a <user>")
        user = "<user>admin</user><password>admin</password>"
        source_xml.write_text(source_xml.read_text().replace("</retry-interval>", f"</retry-interval>{user}"))
        source.process.send_signal(1)
        admin = Cli(f"tcp://127.0.0.1:{there}")
        admin.environment |= {"ATALANTA_USER": "admin", "ATALANTA_PASSWORD": "admin"}
        (message,) = admin.rows("consume", "inbox", "--count", "1", "--timeout", "30")
        assert message["text"] == "hello"
