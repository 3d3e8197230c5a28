"""Large messages that a node delivers: credits, slow clients, browsers."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.wire.core.packets.consumer import ConsumerClose, FlowToken
from tests.wire.core.server.large_rig import (
    BODY,
    PIECE,
    Reader,
    acknowledge,
    body_of,
    files,
    send_large,
    with_message,
)
from tests.wire.core.server.management_rig import attribute_of, operator_of
from tests.wire.core.server.server_rig import Server


def test_credits_decide_how_much_of_it_is_sent() -> None:
    server, client = with_message()
    client.consume("orders", credits=None)
    reader = Reader(client)
    client.send(FlowToken(0, 10))
    server.settle()
    (got,) = reader.look()
    assert got.size == len(BODY) and got.body == b"", "the header used the credit up"
    client.send(FlowToken(0, PIECE + 500))
    server.settle()
    assert len(reader.look()[0].body) == 2 * PIECE, "the last piece may exceed it"
    client.publish("orders", "behind", wait=False)
    server.settle()
    client.send(FlowToken(0, 10 * PIECE))
    server.settle()
    assert reader.bodies() == [BODY, b"behind"]


def test_a_client_that_does_not_read_costs_two_pieces(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", body_of(40 * PIECE))
    server.settle()
    slow = server.login()
    slow.consume("orders")
    server.core(slow.conn).on_blocked(server.now, True)
    server.settle()
    reader = Reader(slow)
    reader.look()
    assert sum(len(got.body) for got in reader.look()) <= 2 * PIECE
    server.core(slow.conn).on_blocked(server.now, False)
    server.settle()
    assert reader.bodies() == [body_of(40 * PIECE)]


def test_others_are_served_while_one_gets_a_large_message() -> None:
    server, client = with_message()
    client.consume("orders", 0, credits=None)
    client.send(FlowToken(0, 1))
    server.settle()
    client.receive()
    other = server.login()
    other.consume("orders")
    client.publish("orders", "a", wait=False)
    client.publish("orders", "b", wait=False)
    server.settle()
    assert other.bodies() == ["a", "b"]


def test_a_consumer_closed_in_the_middle_gives_it_back_whole() -> None:
    server, client = with_message()
    client.consume("orders", credits=None)
    client.send(FlowToken(0, PIECE))
    server.settle()
    client.receive()
    client.succeeds(ConsumerClose(0))
    client.consume("orders", 1)
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]
    validate(server.broker)


def test_a_browser_sees_it_and_the_message_stays() -> None:
    server, client = with_message()
    client.consume("orders", browse=True)
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]
    assert [each.delivery_count for each in reader.got] == [0]
    assert server.broker.queues["orders"].message_count == 1 and files(server) == 1


@pytest.mark.parametrize(("named", "shown"), [(5_000_000, 5_000_000), (-1, len(BODY))])
def test_the_size_before_a_compression_is_kept(server: Server, named: int, shown: int) -> None:
    """getBodySize of a Java client is the property; the broker's own figures are those of the file."""
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY, named_size=named)
    server.settle()
    reference = server.broker.queues["orders"].live()[0]
    assert reference.message.property_value("_AMQ_LARGE_SIZE") == shown
    operator = operator_of(server)
    for attribute in ("PersistentSize", "DurablePersistentSize"):
        assert attribute_of(operator, "queue.orders", attribute) == reference.size + len(BODY)


def test_a_deletion_in_the_middle_of_a_delivery_lets_the_delivery_end() -> None:
    server, client = with_message()
    browser = server.login()
    browser.consume("orders", credits=None, browse=True)
    browser.send(FlowToken(0, 1))
    server.settle()
    reader = Reader(browser)
    client.consume("orders")
    mine = Reader(client)
    server.settle()
    acknowledge(server, client, mine.look()[0].id)
    assert files(server) == 1, "the browser is not done with it"
    browser.send(FlowToken(0, -1))
    server.settle()
    assert reader.bodies() == [BODY] and files(server) == 0
