"""Large messages in a log view and in the browser of a session that acknowledges at delivery."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import ILLEGAL_STATE, RANGE_LOST
from atalanta.message.message import BYTES, Message
from atalanta.wire.core.packets.log_chunk import (
    LogReadColumnsResponse,
    LogReadResponse,
    decode_entries,
)
from atalanta.wire.core.packets.logview import (
    LogBody,
    LogRead,
    LogReadColumns,
    LogReadLargeResponse,
)
from atalanta.wire.core.packets.message import SendMessage
from tests.wire.core.server.large_rig import (
    BODY,
    Reader,
    body_of,
    pieces_of,
    send_large,
    with_message,
)
from tests.wire.core.server.server_rig import Server, text_message


def test_a_log_view_reads_it_whole() -> None:
    server, client = with_message()
    client.publish("orders", "small", wait=False)
    server.settle()
    client.receive()
    answer = client.call(
        LogRead(correlation=1, queue="orders", incarnation="", start=0, end=10, max_bytes=0)
    )
    assert isinstance(answer, LogReadResponse)
    bodies = [entry.message.body for entry in decode_entries(answer)]
    assert bodies[0] == BODY and len(bodies) == 2


def test_a_reader_of_columns_gets_rows_where_bodies_are_in_files() -> None:
    server, client = with_message()
    client.publish("orders", "small", wait=False)
    server.settle()
    client.receive()
    answer = client.call(LogReadColumns(1, "orders", "", 0, 10, 0))
    assert isinstance(answer, LogReadResponse)
    assert [entry.message.body for entry in decode_entries(answer)][0] == BODY
    without = client.call(LogReadColumns(1, "orders", "", 0, 10, -1_000))
    assert isinstance(without, LogReadColumnsResponse)
    assert without.chunk.count == 2 and without.chunk.bodies_at == without.chunk.end
    rest = client.call(LogReadColumns(1, "orders", "", 1, 10, 0))
    assert isinstance(rest, LogReadColumnsResponse) and rest.chunk.count == 1


@pytest.mark.parametrize("size", [5 << 20, 500_000, 10])
def test_a_log_view_sends_no_bodies_if_it_is_asked_for_none(server: Server, size: int) -> None:
    client = server.login()
    client.create_queue("orders")
    body = body_of(size)
    send_large(client, "orders", body)
    message = Message.create("orders", body, BYTES, True, 1_000)
    message.put_property("colour", "blue")
    client.send(SendMessage(message, False, -1, 0))
    server.settle()
    client.receive()
    answer = client.call(LogRead(1, "orders", "", 0, 10, -1_000))
    assert isinstance(answer, LogReadResponse), answer
    assert (answer.count, answer.next, answer.last) == (2, 2, True) and len(answer.entries) < 1_000
    entries = decode_entries(answer)
    assert [(entry.sequence, entry.message.body) for entry in entries] == [(1, b""), (2, b"")]
    assert entries[1].message.properties.get("colour") == "blue"
    whole = client.call(LogRead(1, "orders", "", 1, 10, 1_000))
    if isinstance(whole, LogReadResponse):
        assert decode_entries(whole)[0].message.body == body
    else:
        assert isinstance(whole, LogReadLargeResponse) and whole.size == size


def test_a_reader_without_bodies_does_not_keep_the_node_from_other_work() -> None:
    """The bodies count against a limit of their own: the node reads them, from page files for instance."""
    server = Server()
    client = server.login()
    client.create_queue("orders")
    for _ in range(12):
        client.send(SendMessage(Message.create("orders", bytes(1 << 20), BYTES, True, 1_000), False, -1, 0))
        server.settle()
    client.receive()
    first = client.call(LogRead(1, "orders", "", 0, 12, -(2 << 20)))
    assert isinstance(first, LogReadResponse) and 4 < first.count < 8 and not first.last
    rest = client.call(LogRead(1, "orders", "", first.next, 12, -(2 << 20)))
    assert isinstance(rest, LogReadResponse) and first.count + rest.count == 12 and rest.last


@pytest.mark.parametrize("large", [False, True])
def test_a_log_view_hands_out_a_body_above_four_mebibytes_in_pieces(server: Server, large: bool) -> None:
    client = server.login()
    client.create_queue("orders")
    body = body_of(9 << 20)
    if large:
        send_large(client, "orders", body)
    else:
        message = Message.create("orders", body, BYTES, True, 1_000)
        client.send(SendMessage(message, False, -1, 0))
    client.publish("orders", "behind", wait=False)
    server.settle()
    client.receive()
    answer = client.call(LogRead(1, "orders", "", 0, 10, 0))
    assert isinstance(answer, LogReadLargeResponse), answer
    assert (answer.size, answer.next, answer.last) == (len(body), 1, False)
    pieces = pieces_of(server, client, answer)
    assert b"".join(pieces) == body and max(map(len, pieces)) <= 4 << 20
    rest = client.call(LogRead(1, "orders", "", answer.next, 10, 0))
    assert isinstance(rest, LogReadResponse) and rest.count == 1 and rest.last
    code, _ = client.fails(LogBody(1, "orders", "", 1, 10 << 20, 0))
    assert code == ILLEGAL_STATE
    code, _ = client.fails(LogBody(1, "orders", "", 7, 0, 0))
    assert code == RANGE_LOST


@pytest.mark.parametrize("large", [False, True])
def test_a_browser_of_a_session_that_acknowledges_at_delivery_takes_nothing(server: Server, large: bool) -> None:
    sender = server.login()
    sender.create_queue("orders")
    if large:
        send_large(sender, "orders", BODY)
    else:
        sender.send(SendMessage(text_message("orders", "small", True, None), False, -1, 0))
    server.settle()
    client = server.login(pre_acknowledge=True)
    client.consume("orders", browse=True)
    browser = Reader(client)
    server.settle()
    assert len(browser.bodies()) == 1
    assert server.broker.queues["orders"].message_count == 1
    taker = server.login(pre_acknowledge=True)
    taker.consume("orders")
    reader = Reader(taker)
    server.settle()
    assert len(reader.bodies()) == 1
    assert server.broker.queues["orders"].message_count == 0
