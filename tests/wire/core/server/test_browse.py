"""Browsers of CORE clients: they need no start of the session, and count no delivery."""

from __future__ import annotations

from atalanta.wire.core.packets.session import SessionStart, SessionStop
from tests.wire.core.server.server_rig import Client, Server


def stopped_session(count: int) -> tuple[Server, Client]:
    server = Server()
    sender = server.login()
    sender.create_queue("q")
    for number in range(count):
        sender.publish("q", f"m{number}", routing_type=1)
    server.settle()
    client = server.login(start=False)
    return server, client


def test_a_browser_gets_messages_before_the_session_is_started() -> None:
    server, client = stopped_session(2)
    client.consume("q", 1)
    client.consume("q", 2, browse=True)
    server.settle()
    got = client.deliveries()
    assert [(packet.consumer_id, packet.delivery_count) for packet in got] == [(2, 0), (2, 0)]
    client.send(SessionStart())
    server.settle()
    got = client.deliveries()
    assert [(packet.consumer_id, packet.delivery_count) for packet in got] == [(1, 1), (1, 1)]


def test_a_browser_goes_on_while_the_session_is_stopped() -> None:
    server, client = stopped_session(1)
    client.send(SessionStart())
    client.consume("q", 2, browse=True)
    server.settle()
    assert client.bodies() == ["m0"]
    client.send(SessionStop())
    server.settle()
    client.receive()
    server.login().publish("q", "m1", routing_type=1)
    server.settle()
    assert client.bodies() == ["m1"]


def test_a_browsed_message_shows_the_deliveries_before() -> None:
    server, client = stopped_session(1)
    taker = server.login()
    taker.consume("q")
    server.settle()
    server.lost(taker.conn)
    server.settle()
    client.consume("q", 2, browse=True)
    server.settle()
    assert [packet.delivery_count for packet in client.deliveries()] == [1]


def test_a_paused_queue_is_browsed() -> None:
    server, client = stopped_session(1)
    server.broker.queues["q"].pause()
    taker = server.login()
    taker.consume("q")
    client.consume("q", 2, browse=True)
    server.settle()
    assert (client.bodies(), taker.bodies()) == (["m0"], [])
