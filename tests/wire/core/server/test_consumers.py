"""Receivers: deliveries, credits, acknowledgements, redelivery, and the end of its queue."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import (
    ILLEGAL_STATE,
    INVALID_FILTER,
    MAX_CONSUMERS,
    QUEUE_DOES_NOT_EXIST,
)
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import (
    Acknowledge,
    ConsumerClose,
    DisconnectConsumer,
    Expired,
    FlowToken,
    ForceConsumerDelivery,
    IndividualAcknowledge,
    Settle,
)
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.query import QueueQueryResponseV3
from atalanta.wire.core.packets.queue import DeleteQueue
from atalanta.wire.core.packets.session import SessionStart, SessionStop
from atalanta.wire.core.packets.transaction import Rollback
from tests.wire.core.server.server_rig import FORCED, Client, Server


def filled(server: Server, *texts: str) -> Client:
    """A logged-in client and a queue `orders` with these messages."""
    client = server.login()
    client.create_queue("orders")
    for text in texts:
        client.publish("orders", text, wait=False)
    server.settle()
    client.receive()
    return client


def test_a_consumer_is_answered_with_its_queue(server: Server) -> None:
    client = filled(server, "a")
    answer = client.consume("orders::orders", credits=None)
    assert isinstance(answer, QueueQueryResponseV3)
    assert (answer.exists, answer.name, answer.message_count) == (True, "orders", 1)
    assert client.bodies() == []


@pytest.mark.parametrize(
    ("queue", "selector", "code"),
    [
        ("missing", None, QUEUE_DOES_NOT_EXIST),
        ("other::orders", None, QUEUE_DOES_NOT_EXIST),
        ("orders", "price >", INVALID_FILTER),
        ("orders", "XPATH '//price['", INVALID_FILTER),
    ],
)
def test_a_consumer_that_cannot_be_is_refused(queue: str, selector: str | None, code: int) -> None:
    client = filled(Server())
    answer = client.consume(queue, selector=selector)
    assert isinstance(answer, ExceptionResponse) and answer.code == code


def test_a_window_of_zero_gets_one_message_for_each_credit(server: Server) -> None:
    client = filled(server, "a", "b", "c")
    client.consume("orders", credits=0)
    assert client.bodies() == []
    for expected in ("a", "b"):
        client.send(FlowToken(0, 1))
        assert client.bodies() == [expected]
        client.send(FlowToken(0, 0))
        assert client.bodies() == []


def test_credits_are_bytes_of_frames(server: Server) -> None:
    client = filled(server, *("x" * 100 for _ in range(10)))
    client.consume("orders", credits=1)
    size = client.deliveries()[0].message.size + 13
    client.send(FlowToken(0, 2 * size))
    # One credit was overdrawn by the first: the rest pays for the second and part of the third.
    assert len(client.bodies()) == 2


def test_minus_one_is_no_flow_control_at_all(server: Server) -> None:
    client = filled(server, *(str(number) for number in range(500)))
    client.consume("orders", credits=-1)
    assert len(client.bodies()) == 500


def test_a_stopped_session_gets_nothing(server: Server) -> None:
    client = filled(server, "a")
    client.succeeds(SessionStop())
    client.consume("orders")
    assert client.bodies() == []
    client.send(SessionStart())
    assert client.bodies() == ["a"]


def test_the_marker_of_a_forced_delivery_comes_after_the_messages(server: Server) -> None:
    client = filled(server, "a", "b")
    client.consume("orders")
    client.send(ForceConsumerDelivery(0, 42))
    found = [packet for _, packet in client.receive() if isinstance(packet, ReceiveMessage)]
    assert [packet.message.text() for packet in found[:2]] == ["a", "b"]
    assert found[2].message.properties.get(FORCED) == 42
    assert (found[2].consumer_id, found[2].delivery_count) == (0, 0)
    client.send(ForceConsumerDelivery(0, 43))
    assert [packet.message.properties.get(FORCED) for packet in client.packets(ReceiveMessage)] == [
        43
    ]


def test_a_forced_delivery_for_a_consumer_without_credit_is_answered_too() -> None:
    client = filled(Server(), "a")
    client.consume("orders", credits=0)
    client.send(ForceConsumerDelivery(0, 1))
    assert [packet.message.properties.get(FORCED) for packet in client.packets(ReceiveMessage)] == [
        1
    ]


# -- acknowledging ------------------------------------------------------------------------------
def test_a_cumulative_acknowledgement_takes_all_before_it(server: Server) -> None:
    client = filled(server, "a", "b", "c")
    client.consume("orders")
    found = client.deliveries()
    client.send(Acknowledge(0, found[1].message.id, True))
    assert client.packets(NullResponse) == []
    server.settle()
    assert len(client.packets(NullResponse)) == 1
    assert server.broker.queues["orders"].message_count == 1
    server.restart()
    assert server.broker.queues["orders"].message_count == 1


def test_an_individual_acknowledgement_takes_that_one_alone(server: Server) -> None:
    client = filled(server, "a", "b", "c")
    client.consume("orders")
    found = client.deliveries()
    client.send(IndividualAcknowledge(0, found[1].message.id, False))
    server.settle()
    assert client.receive() == []
    left = [reference.message.text() for reference in server.broker.queues["orders"].live()]
    assert left == ["a", "c"]


@pytest.mark.parametrize("kind", [Acknowledge, IndividualAcknowledge])
def test_acknowledging_what_one_does_not_have_is_an_error(server: Server, kind: type[Acknowledge]) -> None:
    client = filled(server, "a")
    client.consume("orders")
    assert len(client.bodies()) == 1
    assert client.fails(kind(0, 4711, True))[0] == ILLEGAL_STATE
    assert client.fails(kind(99, 4711, True))[0] == ILLEGAL_STATE
    client.send(kind(0, 4711, False))
    assert client.receive() == []
    assert server.broker.queues["orders"].message_count == 1


def test_pre_acknowledged_messages_are_gone_when_they_are_sent(server: Server) -> None:
    filled(server, "a")
    client = server.login(pre_acknowledge=True)
    client.consume("orders")
    assert client.bodies() == ["a"]
    assert server.broker.queues["orders"].message_count == 0


# -- redelivery ---------------------------------------------------------------------------------
def test_what_a_closed_consumer_held_comes_back_as_new_and_after_a_crash_as_redelivered(server: Server) -> None:
    client = filled(server, "a")
    client.consume("orders")
    assert [found.delivery_count for found in client.deliveries()] == [1]
    client.succeeds(ConsumerClose(0))
    client.consume("orders", consumer_id=1)
    assert [found.delivery_count for found in client.deliveries()] == [1]
    server.lost(client.conn)
    other = server.login()
    other.consume("orders")
    assert [found.delivery_count for found in other.deliveries()] == [2]


def test_too_many_deliveries_end_at_the_dead_letter_address(server: Server) -> None:
    server.settings.add("orders", {"dead_letter_address": "DLA", "max_delivery_attempts": 2})
    filled(server, "poison", "good")
    server.queue("DLA")
    for _ in range(2):
        client = server.login()
        client.consume("orders", credits=1)
        assert client.bodies() == ["poison"]
        server.lost(client.conn)
    server.settle()
    client = server.login()
    client.consume("orders")
    assert client.bodies() == ["good"]
    client.consume("DLA", consumer_id=1)
    found = client.deliveries()[0].message
    assert found.text() == "poison"
    assert found.properties.get("_AMQ_ORIG_QUEUE") == "orders"


@pytest.mark.parametrize("target", [None, "missing", "empty"])
def test_a_poisonous_message_that_goes_nowhere_is_at_least_reported(server: Server, target: str | None) -> None:
    server.settings.add("orders", {"dead_letter_address": target, "max_delivery_attempts": 1})
    client = filled(server, "poison")
    server.broker.address_registry.create(server.broker.now, "empty", True, True, False)
    client.consume("orders")
    assert client.bodies() == ["poison"]
    server.lost(client.conn)
    server.settle()
    assert server.broker.queues["orders"].message_count == 0
    told = [name for name, _ in server.trace.events]
    assert "message_dead_lettered" in told
    assert ("moved_message_lost" in told) == (target is not None)


# -- release and reject -------------------------------------------------------------------------
def test_a_released_message_comes_again_and_counts(server: Server) -> None:
    server.settings.add("orders", {"dead_letter_address": "DLA", "max_delivery_attempts": 3})
    client = filled(server, "poison", "good")
    server.queue("DLA")
    client.consume("orders")
    found = client.deliveries()
    poison = found[0].message.id
    assert [each.message.text() for each in found] == ["poison", "good"]
    for count in (2, 3):
        client.succeeds(Settle(1, 0, poison, False))
        again = [packet for _, packet in client.seen if isinstance(packet, ReceiveMessage)][-1]
        assert (again.message.id, again.delivery_count) == (poison, count)
    client.succeeds(Settle(1, 0, poison, False))
    client.succeeds(IndividualAcknowledge(0, found[1].message.id, True))
    assert server.broker.queues["orders"].message_count == 0
    client.consume("DLA", consumer_id=1)
    assert client.bodies() == ["poison"]


def test_the_count_of_a_released_message_survives_a_restart(server: Server) -> None:
    client = filled(server, "a")
    client.consume("orders")
    client.succeeds(Settle(1, 0, client.deliveries()[0].message.id, False, 3_600_000))
    server.restart()
    queue = server.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count) == (1, 1)
    client = server.login()
    client.consume("orders")
    assert client.bodies() == []
    server.now += 3_600_000_000_000
    server.broker.on_timer(server.now, "kernel.scheduled")
    assert [each.delivery_count for each in client.deliveries()] == [2]


def test_a_rejected_message_is_a_dead_letter_at_once(server: Server) -> None:
    server.settings.add("orders", {"dead_letter_address": "DLA"})
    client = filled(server, "bad", "good")
    server.queue("DLA")
    client.consume("orders")
    bad, good = [each.message.id for each in client.deliveries()]
    client.succeeds(Settle(1, 0, bad, True))
    code, text = client.fails(Settle(2, 0, bad, True))
    assert code == ILLEGAL_STATE and "not delivered" in text
    assert client.fails(Settle(3, 9, good, False))[0] == ILLEGAL_STATE
    server.restart()
    assert [server.broker.queues[name].message_count for name in ("orders", "DLA")] == [1, 1]


def test_release_and_reject_are_outside_of_a_transaction(server: Server) -> None:
    server.settings.add("orders", {"dead_letter_address": "DLA"})
    filled(server, "a", "b", "c")
    dead = server.queue("DLA")
    client = server.login(transacted=True)
    client.consume("orders")
    first, second, third = [each.message.id for each in client.deliveries()]
    client.succeeds(IndividualAcknowledge(0, first, True))
    client.succeeds(Settle(1, 0, second, True))
    client.succeeds(Settle(2, 0, third, False, 3_600_000))
    client.succeeds(Rollback(False))
    queue = server.broker.queues["orders"]
    assert (queue.message_count, queue.scheduled_count, dead.message_count) == (2, 1, 1)
    again = [packet for _, packet in client.seen if isinstance(packet, ReceiveMessage)][-1]
    assert (again.message.text(), again.delivery_count) == ("a", 2)


# -- expiry -------------------------------------------------------------------------------------
def test_the_client_may_report_a_message_as_expired(server: Server) -> None:
    server.settings.add("orders", {"expiry_address": "late"})
    client = filled(server, "a")
    late = server.queue("late")
    client.consume("orders")
    client.send(Expired(0, client.deliveries()[0].message.id))
    server.settle()
    assert late.message_count == 1
    assert server.broker.queues["orders"].message_count == 0


# -- the queue goes, or is full -----------------------------------------------------------------
def test_deleting_a_queue_disconnects_its_consumers(server: Server) -> None:
    client = filled(server, "a")
    client.consume("orders", consumer_id=7)
    client.receive()
    other = server.login()
    assert other.fails(DeleteQueue("orders"))[0] == ILLEGAL_STATE
    server.broker.queue_registry.delete(server.now, "orders", "deleted")
    assert [packet.consumer_id for packet in client.packets(DisconnectConsumer)] == [7]
    client.succeeds(ConsumerClose(7))
    client.send(FlowToken(7, 100))
    assert client.closed is None


def test_more_consumers_than_a_queue_takes_are_refused(server: Server) -> None:
    client = server.login()
    client.create_queue("orders", max_consumers=1)
    client.consume("orders")
    answer = client.consume("orders", consumer_id=1)
    assert isinstance(answer, ExceptionResponse) and answer.code == MAX_CONSUMERS
    assert not isinstance(client.consume("orders", consumer_id=2, browse=True), ExceptionResponse)
    client.succeeds(ConsumerClose(0))
    assert not isinstance(client.consume("orders", consumer_id=3), ExceptionResponse)


def test_a_browser_sees_all_and_takes_nothing(server: Server) -> None:
    client = filled(server, "a", "b")
    client.consume("orders", browse=True)
    assert [(found.message.text(), found.delivery_count) for found in client.deliveries()] == [
        ("a", 0),
        ("b", 0),
    ]
    client.send(Acknowledge(0, 1, False))
    assert server.broker.queues["orders"].message_count == 2
    client.consume("orders", consumer_id=1)
    assert client.bodies() == ["a", "b"]
