"""Parameters of acceptors and connectors without effect: clients and nodes see the same with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cluster.config import ClusterSettings
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.endpoint import parse_connector
from tests.cluster.cluster_rig import Rig, count
from tests.config.harmless.cases import case
from tests.config.harmless.conversations import (
    of_advisories_and_signs_of_life,
    of_all_protocols,
    of_large_stomp_messages,
)
from tests.config.harmless.file_server import FileServer, both, broker_file, quiet
from tests.wire.stomp.stomp_rig import frame, replies
from tests.wire.web_socket_bytes import REQUEST, sent

HTTP = "httpClientIdleTime httpClientIdleScanPeriod httpResponseTime httpServerScanPeriod httpRequiresSessionId".split()
SOCKS = "socksHost socksPort socksVersion socksUsername socksPassword socksRemoteDNS".split()


@case("UNUSED", "batchDelay")
def test_what_is_written_goes_at_the_end_of_the_turn(tmp_path: Path) -> None:
    both(tmp_path, of_all_protocols, parameters="batchDelay=5000")


@case("UNUSED", *HTTP, "servletPath")
def test_parts_of_http_that_is_off(tmp_path: Path) -> None:
    values = ";".join(f"{name}=1" for name in (*HTTP, "servletPath"))
    both(tmp_path, of_all_protocols, parameters=f"httpEnabled=false;useServlet=false;{values}")


@case("UNUSED", *SOCKS)
@pytest.mark.parametrize("parameters", ["", ";".join(f"{name}=1" for name in ("socksEnabled", *SOCKS))])
def test_parts_of_socks_that_is_off(tmp_path: Path, parameters: str) -> None:
    """Two nodes of a cluster reach each other by such a connector."""
    parameters = parameters.replace("socksEnabled=1", "socksEnabled=false")
    rig = Rig()

    def whole(settings: ClusterSettings) -> None:
        for name, connector in settings.connectors.items():
            text = f"tcp://{connector.host}:{connector.port}?{parameters}"
            settings.connectors[name] = parse_connector(name, text)
            assert settings.connectors[name].named == []

    hosts = rig.cluster(2, whole=whole)
    rig.consuming(hosts[1], known_at=hosts[0])
    rig.stored(hosts[0], "orders", [b"coffee"])
    rig.until(lambda: count(hosts[0], "orders") == 0)
    if not parameters:
        both(tmp_path, of_all_protocols, parameters="socksEnabled=false;socksHost=x")


@case("StompAcceptor", "stompMinLargeMessageSize", "stomp-min-large-message-size")
def test_large_messages_of_stomp_clients(tmp_path: Path) -> None:
    for name in ("stompMinLargeMessageSize", "stomp-min-large-message-size"):
        both(tmp_path / name, of_large_stomp_messages, parameters=f"{name}=1000")


def web_socket(server: FileServer, request: bytes) -> list[object]:
    """What a STOMP client in a WebSocket sees."""
    client = server.connect()
    client.feed(request)
    server.settle()
    answer = b"".join(server.wire.written.pop(client.conn))
    client.feed(sent(frame("CONNECT", {"login": "admin", "passcode": "admin", "accept-version": "1.2"})))
    client.feed(sent(frame("SUBSCRIBE", {"destination": "orders", "id": "1"})))
    client.feed(sent(frame("SEND", {"destination": "orders"}, b"coffee")))
    server.settle()
    output = b"".join(server.wire.written.pop(client.conn))
    seen: list[object] = [answer, output[0]]
    while output:  # unmasked frames of the broker
        size, head = output[1], 2
        if size == 126:
            size, head = int.from_bytes(output[2:4], "big"), 4
        seen += [(each.command, each.body) for each in replies(output[head : head + size])]
        output = output[head + size :]
    return seen


@case("StompAcceptor", "webSocketCompressionSupported", "webSocketEncoderType")
def test_clients_in_web_sockets(tmp_path: Path) -> None:
    """A client that offers compression is told that there is none, and understands every frame."""
    offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"

    def conversation(server: FileServer) -> list[object]:
        plain, offered = web_socket(server, REQUEST), web_socket(server, REQUEST[:-2] + offer)
        assert plain == offered and ("MESSAGE", b"coffee") in plain
        return plain

    for value in ("webSocketCompressionSupported=true", "webSocketEncoderType=binary"):
        both(tmp_path / value, conversation, parameters=value)


VALUES = (
    "supportAdvisory", "useKeepAlive", "openwireUseDuplicateDetectionOnFailover", "suppressInternalManagementObjects",
)  # fmt: skip


@case("OpenWireAcceptor", *VALUES)
def test_values_of_openwire_that_hold_here(tmp_path: Path) -> None:
    for name in VALUES:
        both(tmp_path / name, of_advisories_and_signs_of_life, parameters=f"{name}=true")


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: activemq-remoting\r\nConnection: Upgrade\r\nhttpUpgradeEndpoint: %s\r\n"
    b"Sec-ActiveMQRemoting-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
WILDFLY = """<server xmlns="urn:jboss:domain:20.0"><profile>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:16.0"><server name="s"><security enabled="false"/>
<http-acceptor name="one" http-listener="default"/>{second}</server></subsystem>
<subsystem xmlns="urn:jboss:domain:undertow:3.0"><server name="d"><http-listener name="default" socket-binding="http"/>
</server></subsystem></profile><interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface>
</interfaces><socket-binding-group name="g" default-interface="public"><socket-binding name="http" port="8080"/>
</socket-binding-group></server>"""


@case("WILDFLY_HTTP", "http-acceptor")
def test_two_http_acceptors_of_one_listener(tmp_path: Path) -> None:
    """A client may name either of them."""
    seen = []
    for second in ("", '<http-acceptor name="two" http-listener="default"/>'):
        path = tmp_path / "standalone.xml"
        path.write_text(WILDFLY.format(second=second))
        server = FileServer(quiet(path))
        for endpoint in (b"one", b"two"):
            client = server.connect()
            client.feed(UPGRADE % endpoint)
            server.settle()
            answer = b"".join(server.wire.written.pop(client.conn))
            client.feed(HANDSHAKE)
            client.open_session(10, None, None)
            client.create_queue(f"orders-{endpoint.decode()}")
            seen.append(answer)
    assert seen[0].startswith(b"HTTP/1.1 101") and len(set(seen)) == 1


@case("UNUSED", "sslAutoReload")
def test_key_stores_are_watched_with_the_other_files(tmp_path: Path) -> None:
    """tests/app/test_key_stores.py has the client that sees the new certificate."""
    from atalanta.app.configuration_files import watched_files

    found = []
    for name, parameter in (("without", ""), ("with", ";sslAutoReload=true")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "store.p12").write_bytes(b"")
        tls = "sslEnabled=true;keyStorePath=store.p12;keyStorePassword=x"
        configuration = quiet(broker_file(tmp_path / name, parameters=tls + parameter))
        found.append([path.relative_to(tmp_path / name) for path in watched_files(configuration)])
    assert found[0] == found[1] and Path("store.p12") in found[0]
