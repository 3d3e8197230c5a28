"""Transactions as a CORE client sees them."""

from __future__ import annotations

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, DUPLICATE_ID, ILLEGAL_STATE
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse, Ping
from atalanta.wire.core.packets.consumer import Acknowledge, IndividualAcknowledge
from atalanta.wire.core.packets.transaction import Commit, Rollback, XaGetTimeout
from tests.wire.core.server.server_rig import Server, queue_request


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


# -- large ones ---------------------------------------------------------------------------------
LARGE = 300  # messages of 90,000 bytes: more than the work of one step


def test_others_are_answered_between_the_steps_of_a_large_commit(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("orders")
    for number in range(LARGE):
        client.publish("orders", f"{number}" + "x" * 90_000, wait=False)
    other = server.login()
    server.settle()
    client.send(Commit(-77))
    client.send(queue_request("later"))
    pings = 0
    while server.step():
        pings += 1
        assert server.broker.queues["orders"].message_count == 0
        assert "later" not in server.broker.queues, "what follows the commit waits for it"
        other.send(Ping(60_000), 0)
        server.turn()
        assert len(other.packets(Ping)) == 1
        assert not client.packets(NullResponse)
    assert pings > 1
    server.settle()
    assert [packet.correlation for packet in client.packets(NullResponse)][0] == -77
    assert server.broker.queues["orders"].message_count == LARGE
    assert "later" in server.broker.queues
    found = [reference.message.text() or "" for reference in server.broker.queues["orders"].live()]
    assert [text.rstrip("x") for text in found] == [str(number) for number in range(LARGE)]


def test_a_connection_lost_in_the_middle_of_a_large_commit_leaves_nothing(server: Server) -> None:
    client = server.login(transacted=True)
    client.create_queue("orders")
    for number in range(LARGE):
        client.publish("orders", f"{number}" + "x" * 90_000, wait=False)
    client.send(Commit(-77))
    assert server.step()
    server.lost(client.conn)
    server.settle()
    assert server.broker.queues["orders"].message_count == 0
    assert not server.broker.session_services.unfinished.waiting
