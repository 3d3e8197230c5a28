"""Files of large messages that are damaged: nothing wrong is delivered, and others are served."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.memory.large_body import next_crc
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.core.packets.log_chunk import LogReadResponse
from atalanta.wire.core.packets.logview import (
    LogRead,
    LogReadLargeResponse,
)
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.large_rig import (
    BODY,
    PIECE,
    Reader,
    acknowledge,
    files,
    pieces_of,
    restart,
    send_large,
    told,
    with_message,
)
from tests.wire.core.server.server_rig import Client, Server


def test_a_file_that_lost_its_end_costs_the_connection() -> None:
    server, client = with_message()
    (file,) = server.large.contents
    server.large.damage(file, PIECE)
    client.consume("orders")
    server.settle()
    assert "cannot be read" in (client.closed or "")
    (event,) = told(server, "large_message_damaged")
    assert (event["bytes"], event["bytes_found"]) == (len(BODY), PIECE)
    assert server.broker.queues["orders"].message_count == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_with_a_flipped_bit_is_not_delivered(restarted: bool) -> None:
    server, client = with_message()
    if restarted:
        client = restart(server)
    (file,) = server.large.contents
    server.large.contents[file][PIECE // 2] ^= 1
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert "cannot be read" in (client.closed or "")
    (event,) = told(server, "large_message_damaged")
    assert event["queues"] == "orders" and event["bytes_found"] == len(BODY)
    assert BODY not in reader.bodies()
    assert server.broker.queues["orders"].message_count == 1


def with_damaged_message(**settings: int | str) -> tuple[Server, Client]:
    """A damaged large message and a small one behind it in `orders`; `dead` is its dead-letter address."""
    found = AddressSettingsRepository()
    found.add("#", settings)
    server = Server(settings=found)
    client = server.login()
    client.create_queue("orders")
    client.create_queue("dead")
    send_large(client, "orders", BODY)
    server.settle()
    client.publish("orders", "behind", wait=False)
    server.settle()
    (file,) = server.large.contents
    server.large.contents[file][PIECE // 2] ^= 1
    return server, client


def taken(server: Server, queue: str) -> tuple[bool, list[bytes]]:
    """Returns whether a new consumer lost its connection, and what it got and acknowledged."""
    client = server.login()
    client.consume(queue)
    reader = Reader(client)
    server.settle()
    bodies = reader.bodies()
    if client.closed is None:
        for got in reader.got:
            acknowledge(server, client, got.id)
        server.lost(client.conn)
    else:
        assert "cannot be read" in client.closed
    return client.closed is not None, bodies


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("attempts", [10, -1])
def test_a_damaged_message_goes_to_the_dead_letter_address(attempts: int, restarted: bool) -> None:
    server, _ = with_damaged_message(dead_letter_address="dead", max_delivery_attempts=attempts)
    assert taken(server, "orders") == (True, [])
    assert server.broker.queues["dead"].message_count == 1
    if restarted:
        restart(server)
    assert taken(server, "orders") == (False, [b"behind"])
    assert taken(server, "dead") == (True, [])
    assert server.broker.queues["dead"].message_count == 1 and files(server) == 1
    validate(server.broker)


def test_a_damaged_message_without_dead_letter_address_lets_others_by_for_an_hour() -> None:
    server, _ = with_damaged_message(max_delivery_attempts=2)
    assert taken(server, "orders") == (True, [])
    assert taken(server, "orders") == (False, [b"behind"])
    assert server.broker.queues["orders"].message_count == 1
    server.now += 3_600 * SECOND
    server.broker.on_timer(server.now, "kernel.scheduled")
    server.settle()
    assert taken(server, "orders") == (True, [])
    server.settle()
    assert server.broker.queues["orders"].message_count == 0 and files(server) == 0
    assert [event["message"] for event in told(server, "large_message_damaged")] == [
        event["message"] for event in told(server, "message_dead_lettered") * 2
    ]


def test_a_browser_of_a_damaged_message_changes_nothing() -> None:
    server, client = with_damaged_message(dead_letter_address="dead")
    client.consume("orders", browse=True)
    server.settle()
    assert "cannot be read" in (client.closed or "")
    assert [server.broker.queues[name].message_count for name in ("orders", "dead")] == [2, 0]


def test_a_log_view_goes_on_behind_a_damaged_message() -> None:
    server, client = with_damaged_message()
    answer = client.call(LogRead(1, "orders", "", 0, 10, 0))
    assert isinstance(answer, LogReadLargeResponse) and answer.next == 1 and not answer.last
    damaged = b"".join(pieces_of(server, client, answer))
    assert damaged != BODY and len(damaged) == len(BODY) and next_crc(0, BODY) == answer.crc
    rest = client.call(LogRead(1, "orders", "", answer.next, 10, 0))
    assert isinstance(rest, LogReadResponse) and rest.count == 1 and rest.last
    (event,) = told(server, "large_message_damaged")
    assert event["queues"] == "orders" and event["message"] != -1
    assert event["bytes_found"] == len(BODY)


@pytest.mark.parametrize("left", [0, PIECE, -1])
def test_a_message_whose_file_is_damaged_is_told_about_once_and_left_out(left: int) -> None:
    server, _ = with_message()
    (file,) = server.large.contents
    server.large.damage(file, left)
    restart(server)
    (event,) = told(server, "large_message_damaged")
    assert event["queues"] == "orders" and event["bytes"] == len(BODY)
    assert event["bytes_found"] == max(left, 0)
    assert server.broker.queues["orders"].message_count == 0 and files(server) == 0
    restart(server)
    assert len(told(server, "large_message_damaged")) == 1
    validate(server.broker)
