"""Large messages that a node gets: in a file, as safe as others, and no file left behind."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import ADDRESS_FULL, ILLEGAL_STATE, SECURITY
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.message import SendContinuation, SendMessage
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.large_rig import (
    BODY,
    PIECE,
    Reader,
    answered,
    begin,
    files,
    send_large,
    told,
)
from tests.wire.core.server.server_rig import Server, text_message


def test_a_sender_is_answered_when_file_and_record_are_safe(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    correlation = send_large(client, "orders", BODY)
    records = len(server.journal.records)
    server.work_files(5)  # created and written, not synced
    assert answered(client) == [] and len(server.journal.records) == records
    server.work_files(1)
    assert answered(client) == [] and len(server.journal.records) == records + 1
    server.settle()
    assert answered(client) == [correlation]
    assert max(len(payload) for _, _, payload in server.journal.records) < 1_000


def test_what_is_sent_behind_a_large_message_comes_behind_it(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY)
    client.publish("orders", "small", wait=False)
    send_large(client, "orders", b"x" * 10)
    client.publish("orders", "last", wait=False)
    server.settle()
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY, b"small", b"x" * 10, b"last"]


def test_a_sender_faster_than_the_disk_is_not_listened_to(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    begin(client, "orders")
    for _ in range(30):
        client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    connection = server.core(client.conn)
    (body,) = server.broker.large.bodies.values()
    assert connection.holds == 1 and body.size <= 12 * PIECE
    server.now += 3_600 * SECOND
    server.check_alive()
    assert client.closed is None, "its pings are not read either"
    server.settle()
    assert connection.holds == 0 and body.size == 30 * PIECE


@pytest.mark.parametrize("durable", [True, False])
def test_a_sender_that_vanishes_in_the_middle_leaves_no_file(server: Server, durable: bool) -> None:
    client = server.login()
    client.create_queue("orders")
    begin(client, "orders", durable)
    for _ in range(20):
        client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.lost(client.conn)
    server.settle()
    assert files(server) == 0 and server.broker.large.bodies == {}
    assert server.broker.large.unwritten == 0


def test_a_message_that_is_begun_anew_replaces_the_unfinished_one(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    begin(client, "orders")
    client.send(SendContinuation(b"given up", continues=True, sender_id=0))
    send_large(client, "orders", b"whole")
    server.settle()
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [b"whole"] and files(server) == 1


def test_a_full_disk_refuses_the_message_and_nothing_else(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    server.large.full_at = PIECE
    correlation = send_large(client, "orders", BODY)
    small = client.publish("orders", "small")
    server.settle()
    found = [packet for _, packet in client.receive()]
    refused = [packet for packet in found if isinstance(packet, ExceptionResponse)]
    assert [(packet.correlation, packet.code) for packet in refused] == [
        (correlation, ILLEGAL_STATE)
    ]
    assert "no space left" in (refused[0].message or "")
    assert [p.correlation for p in found if isinstance(p, NullResponse)] == [small]
    assert files(server) == 0 and server.broker.queues["orders"].message_count == 1
    assert told(server, "large_message_write_failed")


@pytest.mark.parametrize("address", ["orders", "an address to come"])
def test_an_unfinished_message_does_not_fill_the_disk_past_its_limit(server: Server, address: str) -> None:
    """max-disk-usage: what an honest client has in hand is taken, what follows is not, and the file goes at once."""
    client = server.login()
    client.create_queue("orders")
    begin(client, address)
    client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.settle()
    server.broker.memory.set_disk_full(True)
    for _ in range(9):
        client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
        server.settle()
    assert not client.closed and files(server) == 1
    for _ in range(10):
        if not client.closed:
            client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
        server.settle()
    assert "without credits" in str(client.closed)
    (error,) = client.packets(ExceptionResponse)
    assert error.code == ADDRESS_FULL and "without credits" in (error.message or "")
    assert files(server) == 0 and server.broker.large.bodies == {}


@pytest.mark.parametrize("finished", [False, True])
def test_a_message_that_does_not_fit_leaves_its_room_at_once(server: Server, finished: bool) -> None:
    client = server.login()
    client.create_queue("orders")
    server.large.full_at = PIECE
    if finished:
        send_large(client, "orders", BODY)
    else:
        begin(client, "orders")
        for _ in range(3):
            client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.settle()
    assert files(server) == 0 and server.broker.large.bodies == {}
    assert client.closed is None and server.broker.large.unwritten == 0


def test_a_sender_that_ignores_credits_loses_its_connection_only() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"address_full_policy": "BLOCK", "max_size_bytes": 1 << 20})
    server = Server(settings=settings)
    greedy = server.login()
    greedy.create_queue("orders")
    other = server.login()
    for _ in range(40):
        if greedy.closed is None:
            greedy.send(SendMessage(text_message("orders", "x" * 50_000, True, None), False, -1, 0))
        server.settle()
    assert greedy.closed is not None and "producerWindowSize" in greedy.closed
    assert server.broker.addresses["orders"].account.bytes < 3 << 20
    other.consume("orders")
    server.settle()
    assert other.bodies()[:1] == ["x" * 50_000] and other.closed is None


def test_who_may_not_send_gets_no_file(server: Server) -> None:
    server.login().create_queue("orders")
    guest = server.login("guest")
    begin(guest, "orders")
    guest.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.settle()
    assert files(server) == 0
    guest.send(
        SendContinuation(
            bytes(PIECE), continues=False, requires_response=True, correlation=-9, sender_id=0
        )
    )
    server.settle()
    refused = guest.packets(ExceptionResponse)
    assert [(packet.correlation, packet.code) for packet in refused] == [(-9, SECURITY)]


def test_a_message_nobody_takes_leaves_no_file(server: Server) -> None:
    client = server.login()
    client.create_queue("orders", filter="colour = 'blue'")
    send_large(client, "orders", BODY, colour="red")
    server.settle()
    assert files(server) == 0


def test_a_repeat_leaves_no_second_file(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY, _AMQ_DUPL_ID="one")
    send_large(client, "orders", BODY, _AMQ_DUPL_ID="one")
    server.settle()
    assert files(server) == 1 and len(answered(client)) == 2
