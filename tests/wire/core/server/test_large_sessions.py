"""Large messages in distributed transactions, and of clients that come back on another connection."""

from __future__ import annotations

import pytest

from atalanta.kernel.memory.large_body import OPEN_TIMER
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.consumer import FlowToken
from atalanta.wire.core.packets.session import ReattachSession, ReattachSessionResponse
from atalanta.wire.core.packets.transaction import XaCommit, XaEnd, XaPrepare, XaRollback, XaStart
from tests.wire.core.server.large_rig import PIECE, Reader, body_of, files, send_large
from tests.wire.core.server.server_rig import Client, Server
from tests.wire.core.server.xa_rig import ONE, ok, xa_client

BODY = body_of(2 * PIECE + 5)


def look_for_open(server: Server) -> None:
    """The second has passed after which bodies are looked for in transactions."""
    server.broker.on_timer(server.now, OPEN_TIMER)
    server.settle()


def prepared(server: Server) -> Client:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    send_large(client, "in", BODY)
    server.settle()
    client.receive()
    ok(client, XaEnd(ONE, False), XaPrepare(ONE))
    look_for_open(server)
    assert files(server) == 1
    return client


@pytest.mark.parametrize("cut", [False, True])
def test_a_prepared_transaction_keeps_its_file_until_the_end(cut: bool) -> None:
    for commit in (True, False):
        server = Server()
        client = prepared(server)
        if cut:
            server.file_jobs.clear()
            server.large.crash()
            server.restart()
            look_for_open(server)
            client = xa_client(server)
            assert files(server) == 1
        ok(client, XaCommit(ONE, False) if commit else XaRollback(ONE))
        look_for_open(server)
        assert files(server) == (1 if commit else 0)
        assert server.broker.large.open == {}
        reader_of = server.login()
        reader_of.consume("in")
        reader = Reader(reader_of)
        server.settle()
        assert reader.bodies() == ([BODY] if commit else [])


def test_a_branch_that_is_abandoned_leaves_no_file(server: Server) -> None:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    send_large(client, "in", BODY)
    server.settle()
    assert files(server) == 1
    server.lost(client.conn)
    look_for_open(server)
    assert files(server) == 0


def test_a_client_that_comes_back_while_its_file_is_synced_waits_for_it(server: Server) -> None:
    server.login().create_queue("orders")
    client = server.login(window=10_000)
    correlation = send_large(client, "orders", BODY)
    old = server.core(client.conn)
    assert old.holds == 1
    server.lost(client.conn)
    again = server.connect()
    again.feed(b"ARTEMIS")
    again.send(ReattachSession(f"session-{client.conn}-10", -1), 1)
    again.publish("orders", "behind", wait=False)
    assert server.broker.queues["orders"].message_count == 0
    server.settle()
    found = [packet for _, packet in again.receive()]
    (answer,) = [packet for packet in found if isinstance(packet, ReattachSessionResponse)]
    assert answer.reattached
    assert correlation in [p.correlation for p in found if isinstance(p, NullResponse)]
    again.consume("orders")
    reader = Reader(again)
    server.settle()
    assert reader.bodies() == [BODY, b"behind"]


def test_a_client_that_leaves_while_the_file_is_read_gives_the_message_back_whole(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY)
    server.settle()
    client.consume("orders", credits=None)
    client.send(FlowToken(0, PIECE))
    server.turn()
    server.lost(client.conn)
    other = server.login()
    other.consume("orders")
    reader = Reader(other)
    server.settle()
    assert reader.bodies() == [BODY]
