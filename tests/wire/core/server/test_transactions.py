"""Transactions as a CORE client sees them."""

from __future__ import annotations

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, DUPLICATE_ID, ILLEGAL_STATE
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import Acknowledge, IndividualAcknowledge
from atalanta.wire.core.packets.transaction import Commit, Rollback, XaGetTimeout
from tests.wire.core.server.server_rig import Server


def test_a_commit_is_answered_with_its_correlation_when_durable(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("orders")
    client.publish("orders", "a")
    client.publish("orders", "b")
    client.receive()
    server.settle()
    assert server.broker.queues["orders"].message_count == 0
    client.send(Commit(-77))
    assert client.receive() == []
    server.settle()
    assert [packet.correlation for packet in client.packets(NullResponse)] == [-77]
    assert server.broker.queues["orders"].message_count == 2


def test_a_rollback_undoes_sends_and_delivers_again(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("in")
    client.create_queue("out")
    server.login().publish("in", "work")
    client.consume("in")
    server.settle()
    first = client.deliveries()[0]
    client.send(Acknowledge(0, first.message.id, False))
    client.publish("out", "result", wait=False)
    client.succeeds(Rollback(False))
    server.settle()
    again = [found for _, found in client.seen if getattr(found, "delivery_count", 0) == 2]
    assert len(again) == 1
    assert server.broker.queues["out"].message_count == 0


def test_a_duplicate_in_a_transaction_refuses_all_of_it(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("orders")
    client.publish("orders", "a", _AMQ_DUPL_ID="x")
    client.send(Commit(-70))
    server.settle()
    client.receive()
    client.publish("orders", "b")
    client.publish("orders", "a", _AMQ_DUPL_ID="x")
    client.receive()
    client.send(Commit(-71))
    server.settle()
    refused = client.packets(ExceptionResponse)
    assert [(packet.code, packet.correlation) for packet in refused] == [(DUPLICATE_ID, -71)]
    assert server.broker.queues["orders"].message_count == 1
    client.publish("orders", "c")
    client.send(Commit(-72))
    server.settle()
    assert server.broker.queues["orders"].message_count == 2


def test_the_same_id_twice_in_one_transaction_is_a_duplicate_too(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("orders")
    client.publish("orders", "a", _AMQ_DUPL_ID="x")
    client.publish("orders", "a", _AMQ_DUPL_ID="x")
    client.receive()
    code, _ = client.fails(Commit(-70))
    assert code == DUPLICATE_ID
    assert server.broker.queues["orders"].message_count == 0


def test_a_send_that_was_refused_spoils_the_transaction(server: Server) -> None:
    server.settings.add("#", {"auto_create_addresses": False})
    client = server.login(transacted=True)
    server.queue("orders")
    client.publish("orders", "a")
    client.publish("missing", "b", wait=False)
    client.receive()
    code, _ = client.fails(Commit(-70))
    assert code == ADDRESS_DOES_NOT_EXIST
    assert server.broker.queues["orders"].message_count == 0


def test_a_failed_acknowledgement_spoils_the_transaction(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("in")
    client.create_queue("out")
    client.consume("in")
    client.publish("out", "result", wait=False)
    client.send(IndividualAcknowledge(0, 4711, False))
    code, _ = client.fails(Commit(-70))
    assert code == ILLEGAL_STATE
    assert server.broker.queues["out"].message_count == 0


def test_a_lost_connection_is_a_rollback(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("in")
    server.login().publish("in", "work")
    client.consume("in")
    server.settle()
    client.send(Acknowledge(0, client.deliveries()[0].message.id, False))
    server.lost(client.conn)
    other = server.login()
    other.consume("in")
    server.settle()
    assert [found.delivery_count for found in other.deliveries()] == [2]


def test_xa_in_a_session_that_is_not_for_it_is_refused_with_words() -> None:
    code, text = Server().login().fails(XaGetTimeout())
    assert code == ILLEGAL_STATE
    assert "XA" in text


def test_a_repeat_is_refused_in_artemis_words(server: Server) -> None:
    """PostOfficeImpl.checkNotBridgeDuplicateID: JMS programs have no code of it, so they look for these words."""
    client = server.login(transacted=True)
    client.create_queue("orders")
    client.publish("orders", "a", _AMQ_DUPL_ID="once", wait=False)
    client.succeeds(Commit())
    client.publish("orders", "a", _AMQ_DUPL_ID="once", wait=False)
    code, text = client.fails(Commit())
    assert code == DUPLICATE_ID == 113
    assert text.startswith("Duplicate message detected - message will not be routed. Message information: ")
    assert "address=orders" in text and "once" in text
