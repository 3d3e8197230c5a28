"""Connections: negotiation, login, limits before login, keep-alive, failover and the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atalanta.config.acceptors import parse_acceptor
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    KeepAliveInfo,
    RemoveInfo,
    ShutdownInfo,
    WireFormatInfo,
)
from atalanta.wire.openwire.commands.identifiers import ConnectionId, SessionId
from atalanta.wire.openwire.commands.producers import SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse
from tests.kernel.broker_rig import SECOND
from tests.wire.openwire.server.openwire_rig import OPTIONS, OpenWireClient, OpenWireServer, text


def greeted(server: OpenWireServer, **options: object) -> OpenWireClient:
    client = OpenWireClient(server, "x", replace(OPTIONS, **options))  # type: ignore[arg-type]
    client.greet()
    return client


@pytest.mark.parametrize("version", [1, 5, 9, 12])
@pytest.mark.parametrize("tight", [True, False])
@pytest.mark.parametrize("cache", [True, False])
def test_every_wire_format(server: OpenWireServer, version: int, tight: bool, cache: bool) -> None:
    client = greeted(server, version=version, tight=tight, cache=cache)
    assert client.broker.broker_name == server.broker.config.name
    client.succeeds(client.login_info("c", "admin", "admin"))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    assert text(got) == "1"
    client.ack(got)


def test_wrong_credentials(server: OpenWireServer) -> None:
    client = greeted(server)
    client.send(client.login_info("c", "admin", "wrong"), True)
    server.verify()
    (answer,) = client.output()
    assert isinstance(answer, ExceptionResponse) and answer.exception is not None
    assert answer.exception.class_name == "java.lang.SecurityException"
    assert client.closed is not None


def test_a_client_id_is_given_once(server: OpenWireServer) -> None:
    first = server.openwire_client("c")
    second = greeted(server)
    kind, why = second.fails(second.login_info("c", "admin", "admin"))
    assert kind == "javax.jms.InvalidClientIDException" and "already connected" in why
    third = greeted(server)
    kind, _ = third.fails(third.login_info(None, "admin", "admin"))
    assert kind == "javax.jms.InvalidClientIDException"
    stranger = greeted(server)
    kind, _ = stranger.fails(stranger.login_info("c", "guest", "guest", failover_reconnect=True))
    assert kind == "javax.jms.InvalidClientIDException" and first.conn in server.connections
    fourth = greeted(server)
    fourth.succeeds(fourth.login_info("c", "admin", "admin", failover_reconnect=True))
    assert first.closed == "its client has reconnected" and fourth.closed is None
    fourth.succeeds(RemoveInfo(ConnectionId(fourth.id), -1))
    server.lost(fourth.conn)
    server.openwire_client("c")


def test_a_connection_that_its_client_has_cleaned_up_logs_in_again(server: OpenWireServer) -> None:
    """What pools of activemq-ra do with each connection that has a client id."""
    client = server.openwire_client("first")
    temporary = client.temporary_queue()
    client.publish("1", "a")
    client.consume("a")
    assert client.texts() == ["1"]
    client.succeeds(RemoveInfo(ConnectionId(client.id)))
    client.succeeds(client.login_info("second", "admin", "admin"))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    assert temporary.physical_name not in server.broker.queues
    client.producers.clear()
    client.publish("2", "a")
    client.consume("a")
    assert client.texts() == ["1", "2"]
    other = server.openwire_client("first")
    assert other.closed is None
    assert client.fails(client.consumer_info(temporary))[0]
    assert "already connected" in refused(server, "second")
    client.succeeds(RemoveInfo(ConnectionId(client.id)))
    assert "Unable to validate" in client.fails(client.login_info("second", "admin", "wrong"))[1]


def refused(server: OpenWireServer, client_id: str) -> str:
    client = greeted(server)
    return client.fails(client.login_info(client_id, "admin", "admin"))[1]


def test_before_login_only_the_handshake(server: OpenWireServer) -> None:
    for command in (SessionInfo(SessionId("x", 1)), RemoveInfo(ConnectionId("x"), -1)):
        client = greeted(server)
        client.send(command)
        assert client.closed is not None and "before ConnectionInfo" in client.closed
    client = greeted(server)
    client.send(ConnectionControl(fault_tolerant=True))
    client.send(KeepAliveInfo(), True)
    (alive,) = client.output()
    assert isinstance(alive, KeepAliveInfo) and not alive.response_required
    client.send(BrokerInfo())
    assert client.closed is not None and "no bridge of a network" in client.closed


@pytest.mark.parametrize("tight", [True, False])
def test_an_unknown_type_ends_its_connection_alone(server: OpenWireServer, tight: bool) -> None:
    other = server.openwire_client("other")
    partial = bytes.fromhex("00000005 3c 00000007")
    early = greeted(server, tight=tight)
    early.feed(partial)
    assert early.closed == "type 60 before ConnectionInfo"
    client = greeted(server, tight=tight)
    client.succeeds(client.login_info("c", "admin", "admin"))
    client.feed(partial)
    assert client.closed == "type at byte 4: unknown type 60 in version 12"
    client = greeted(server, tight=tight)
    client.succeeds(client.login_info("d", "admin", "admin"))
    inside = "20 01 02 00000001 00000002 3c" if tight else "20 00000001 00 00000002 01 3c"
    client.feed(len(bytes.fromhex(inside)).to_bytes(4, "big") + bytes.fromhex(inside))
    assert client.closed is not None and client.closed.endswith("unknown type 60 in version 12")
    other.publish("1", "a")
    other.consume("a")
    assert other.texts() == ["1"]


def test_commands_behind_the_login_wait_for_it(server: OpenWireServer) -> None:
    client = greeted(server)
    client.send(client.login_info("c", "admin", "admin"))
    client.send(SessionInfo(SessionId(client.id, 1)))
    client.send(client.message("1", "a"))
    server.verify()
    server.settle()
    assert server.broker.queues["a"].message_count == 1


def test_a_reserve_connection_stays_without_login(server: OpenWireServer) -> None:
    client = greeted(server)
    for _ in range(20):
        server.now += 20 * SECOND
        client.send(KeepAliveInfo())
        server.check_alive()
    assert client.closed is None
    assert server.connection(client.conn).stays_without_login(server.now)
    silent = OpenWireClient(server, "y")
    server.now += 20 * SECOND
    server.check_alive()
    assert silent.closed is not None


def test_signs_of_life(server: OpenWireServer) -> None:
    client = greeted(server, inactivity_ms=3000, inactivity_delay_ms=0)
    client.succeeds(client.login_info("c", "admin", "admin"))
    for _ in range(3):
        server.now += SECOND
        server.beat()
    assert len(client.of_kind(KeepAliveInfo)) == 3
    server.now += 4 * SECOND
    server.check_alive()
    assert client.closed is not None


def test_the_frame_size_of_the_acceptor_holds() -> None:
    acceptor = parse_acceptor("artemis", "tcp://localhost:61616?maxFrameSize=2048&maxInactivityDuration=0")
    server = OpenWireServer(acceptor=acceptor)
    client = OpenWireClient(server, "x")
    client.feed(client.decoder.format.encode(WireFormatInfo()))
    client = server.openwire_client()
    assert client.decoder.format.options.frame_bytes_max == 2048
    client.publish("1", "a")
    client.feed((4096).to_bytes(4, "big"))
    assert client.closed is not None and "4096" in client.closed


def test_a_protocol_that_the_acceptor_does_not_serve() -> None:
    server = OpenWireServer(acceptor=parse_acceptor("artemis", "tcp://localhost:61616?protocols=CORE"))
    client = OpenWireClient(server, "x")
    client.feed(b"\0\0\0\x64\x01ActiveMQ")
    assert client.closed is not None and "OPENWIRE" in client.closed


def test_a_failover_client_that_repeats_a_send_doubles_nothing(server: OpenWireServer) -> None:
    client = server.openwire_client("c", fault_tolerant=True)
    sent = client.message("1", "a")
    client.succeeds(sent)
    server.lost(client.conn)
    again = server.openwire_client("c", connection_id=client.id[3:], fault_tolerant=True, failover_reconnect=True)
    again.succeeds(sent)
    server.settle()
    assert server.broker.queues["a"].message_count == 1
    again.succeeds(SessionInfo(SessionId(again.id, 1)))


def test_the_stop_of_the_node(server: OpenWireServer) -> None:
    client = server.openwire_client()
    server.connection(client.conn).stop(server.now)
    (end,) = client.output()
    assert isinstance(end, ShutdownInfo) and client.closed == "the node stops"


def test_a_slow_reader_gets_no_more(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("a")
    connection = server.connection(client.conn)
    connection.on_blocked(server.now, True)
    client.publish("1", "a")
    assert client.dispatches() == []
    connection.on_blocked(server.now, False)
    assert client.texts() == ["1"]


def test_a_client_id_is_taken_over_with_link_stealing() -> None:
    server = OpenWireServer(acceptor=parse_acceptor("a", "tcp://h:1?allowLinkStealing=true"))
    first = server.openwire_client("c")
    second = greeted(server)
    second.succeeds(second.login_info("c", "admin", "admin"))
    assert first.closed == "its client has reconnected"


def test_reserve_connections_of_a_host_are_bounded(server: OpenWireServer) -> None:
    reserves = [greeted(server) for _ in range(502)]
    assert server.host.too_many_without_login(server.now) == []
    server.now += 11 * SECOND
    assert server.host.too_many_without_login(server.now) == [each.conn for each in reserves[500:]]
