"""A client that comes from another node while this one stops waits for no answer: it is sent on to the next."""

from __future__ import annotations

from atalanta.kernel.errors import SESSION_CREATION_REJECTED
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets.connection import (
    CheckForFailover,
    CheckForFailoverReply,
    DisconnectV3,
    ExceptionResponse,
)
from atalanta.wire.core.packets.session import (
    CreateSession,
    ReattachSession,
    ReattachSessionResponse,
)
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client, Server


def stop(server: Server) -> list[int]:
    """Connections that are closed for it."""
    server.broker.stopping = True
    for connection in server.connections.values():
        connection.stop(server.now)
    closing = [conn for conn, _ in server.host.take_closing()]
    server.turn()
    return closing


def made(client: Client, number: int) -> None:
    client.send(
        CreateSession(
            name=f"s{number}",
            session_channel=10 + number,
            version=136,
            user="admin",
            password="admin",
        ),
        1,
    )


def coming(server: Server, sessions: int) -> Client:
    client = server.greeted()
    client.send(CheckForFailover("elsewhere"), 1)
    for number in range(sessions):
        made(client, number)
    server.settle()
    client.receive()
    return client


def test_who_makes_its_sessions_anew_is_refused_by_an_answer(server: Server) -> None:
    client = coming(server, 1)
    assert stop(server) == []
    client.send(ReattachSession("s1", -1), 1)
    made(client, 1)
    server.settle()
    goodbye, reattached, refusal = [packet for _, packet in client.receive()]
    assert isinstance(goodbye, DisconnectV3)
    assert isinstance(reattached, ReattachSessionResponse)
    assert not reattached.reattached
    assert isinstance(refusal, ExceptionResponse)
    # With that one it would ask here again, until the end of the connection, which it does not notice.
    assert refusal.code != SESSION_CREATION_REJECTED


def test_who_is_only_just_connected_may_not_go_on_here(server: Server) -> None:
    client = server.connect()
    assert stop(server) == []
    client.feed(HANDSHAKE)
    client.send(CheckForFailover("elsewhere"), 1)
    (answer,) = [packet for _, packet in client.receive()]
    assert isinstance(answer, CheckForFailoverReply)
    assert not answer.ok


def test_others_are_let_go_at_once(server: Server) -> None:
    settled = coming(server, 1)
    server.now += 6 * SECOND
    direct = server.login()
    assert stop(server) == [settled.conn, direct.conn]


def test_a_stop_counts_one_delivery_at_most_however_many_clients_still_arrive(server: Server) -> None:
    sender = server.login()
    sender.create_queue("orders")
    server.settle()
    server.now += 6 * SECOND
    reader = server.login()
    reader.consume("orders")
    sender.publish("orders", "coffee")
    server.settle()
    arriving = []
    for _ in range(10):  # as many as the default of max-delivery-attempts
        client = server.greeted()
        client.send(CheckForFailover("elsewhere"), 1)
        client.open_session(10, "admin", "admin")
        client.consume("orders")
        server.settle()
        arriving.append(client)
    assert reader.bodies() == ["coffee"]
    sender.publish("orders", "tea")
    for conn in stop(server):
        server.close(conn, "the node stops")
    server.settle()
    server.connection(arriving[0].conn).on_blocked(server.now, True)
    server.connection(arriving[0].conn).on_blocked(server.now, False)
    for client in arriving:
        assert client.bodies() == []
        server.lost(client.conn)
        server.settle()
    server.restart()
    again = server.login()
    again.consume("orders")
    server.settle()
    received = [(packet.message.text(), packet.delivery_count) for packet in again.deliveries()]
    assert received == [("coffee", 2), ("tea", 1)]


def test_what_comes_between_release_and_the_next_turn_stands_behind_what_was_held(server: Server) -> None:
    client = server.connect()
    connection = server.connection(client.conn)
    connection.hold_input()
    client.feed(HANDSHAKE)
    connection.release_input()
    client.send(CheckForFailover("elsewhere"), 1)
    for _ in server.host.take_resumed():
        connection.resume(server.now)
    server.settle()
    ((_, answer),) = client.receive()
    assert isinstance(answer, CheckForFailoverReply)
