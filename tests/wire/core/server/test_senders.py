"""Senders: confirmations, refusals, addresses made for it, large messages."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter, write_i32_be, write_i64_be

from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    SECURITY,
    UNEXPECTED_ROUTING_TYPE,
)
from atalanta.message.codec import encode_header
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.message import (
    SendContinuation,
    SendLargeMessage,
)
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.query import QueueQuery, QueueQueryResponseV3
from atalanta.wire.core.packets.session import SessionClose
from tests.wire.core.server.server_rig import Client, Server, text_message


def confirmed(client: Client) -> list[int]:
    return [packet.correlation for packet in client.packets(NullResponse)]


def refused(client: Client) -> list[tuple[int, int]]:
    return [(packet.correlation, packet.code) for packet in client.packets(ExceptionResponse)]


def test_a_durable_send_is_confirmed_only_when_it_is_on_disk(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    first = client.publish("orders", "a")
    second = client.publish("orders", "b")
    assert confirmed(client) == []
    server.settle()
    assert confirmed(client) == [first, second]


def test_a_repeat_is_confirmed_no_earlier_than_the_first_copy(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    first = client.publish("orders", "a", _AMQ_DUPL_ID="x")
    again = client.publish("orders", "a", _AMQ_DUPL_ID="x")
    assert confirmed(client) == []
    server.settle()
    assert confirmed(client) == [first, again]
    assert server.broker.queues["orders"].message_count == 1


def test_the_end_of_a_session_waits_for_its_sends(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    sent = client.publish("orders", "a")
    client.send(SessionClose())
    assert confirmed(client) == []
    server.settle()
    assert confirmed(client) == [sent, -1]


def test_who_asks_for_no_answer_gets_none(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    client.publish("orders", "a", wait=False)
    client.publish("orders", "b", wait=False, durable=False)
    server.settle()
    assert client.receive() == []
    assert server.broker.queues["orders"].message_count == 2


def test_a_refused_send_is_answered_with_its_correlation(server: Server) -> None:
    server.login().create_queue("orders")
    guest = server.login("guest")
    sent = guest.publish("orders", "a", routing_type=1)
    server.settle()
    assert refused(guest) == [(sent, SECURITY)]
    guest.publish("orders", "b", wait=False, routing_type=1)
    server.settle()
    assert guest.receive() == []
    assert guest.closed is None
    assert server.broker.queues["orders"].message_count == 0


def test_a_send_makes_the_address_and_the_anycast_queue_it_needs(server: Server) -> None:
    client = server.login()
    client.publish("new.queue", "a", routing_type=1)
    client.publish("new.topic", "b", routing_type=0)
    client.publish("new.default", "c")
    client.publish("new.address::its.queue", "d", routing_type=1)
    server.settle()
    assert len(confirmed(client)) == 4
    addresses = server.broker.addresses
    assert (addresses["new.queue"].anycast, addresses["new.queue"].multicast) == (True, False)
    assert (addresses["new.topic"].anycast, addresses["new.topic"].multicast) == (False, True)
    assert addresses["new.default"].multicast
    counts = {name: queue.message_count for name, queue in server.broker.queues.items()}
    assert counts == {"new.queue": 1, "its.queue": 1}
    assert server.broker.queues["new.queue"].spec.auto_created


def test_the_default_routing_types_decide_where_the_client_does_not(server: Server) -> None:
    server.settings.add(
        "any.#", {"default_address_routing_type": 1, "default_queue_routing_type": 1}
    )
    client = server.login()
    client.publish("any.one", "a")
    server.settle()
    assert server.broker.queues["any.one"].message_count == 1
    client.create_queue("two", "any.two", -1)
    assert server.broker.queues["two"].spec.routing_type == 1
    answer = client.call(QueueQuery("any.three"))
    assert isinstance(answer, QueueQueryResponseV3) and answer.routing_type == 1


def test_without_automatic_creation_a_missing_address_is_an_error(server: Server) -> None:
    server.settings.add("#", {"auto_create_addresses": False, "auto_create_queues": False})
    client = server.login()
    sent = client.publish("missing", "a", routing_type=1)
    server.settle()
    assert refused(client) == [(sent, ADDRESS_DOES_NOT_EXIST)]
    assert "missing" not in server.broker.addresses


def test_the_other_routing_type_is_refused_or_added_but_never_lost(server: Server) -> None:
    server.settings.add("fixed.#", {"auto_create_addresses": False})
    client = server.login()
    server.queue("fixed.topic", "fixed.topic", 0)
    server.queue("free.topic", "free.topic", 0)
    server.settle()
    sent = client.publish("fixed.topic", "a", routing_type=1)
    server.settle()
    assert refused(client) == [(sent, UNEXPECTED_ROUTING_TYPE)]
    first = client.publish("free.topic", "b", routing_type=0)
    clash = client.publish("free.topic", "c", routing_type=1)
    server.settle()
    # The topic's queue has the name that the anycast queue would need.
    answers = [
        (packet.correlation, type(packet))
        for _, packet in client.receive()
        if isinstance(packet, NullResponse | ExceptionResponse)
    ]
    assert answers == [(clash, ExceptionResponse), (first, NullResponse)]


def test_a_full_name_reaches_its_queue_or_is_refused(server: Server) -> None:
    client = server.login()
    server.queue("sub", "prices", 0)
    server.queue("other", "orders", 1)
    server.settle()
    sent = [
        client.publish("prices::sub", "a", routing_type=0),
        client.publish("prices::sub", "b"),
        client.publish("prices::sub", "c", routing_type=1),
        client.publish("prices::other", "d", routing_type=0),
    ]
    server.settle()
    found = [packet for _, packet in client.receive()]
    assert [packet.correlation for packet in found if isinstance(packet, NullResponse)] == sent[:2]
    errors = [packet for packet in found if isinstance(packet, ExceptionResponse)]
    assert [(one.correlation, one.code) for one in errors] == [
        (sent[2], UNEXPECTED_ROUTING_TYPE),
        (sent[3], UNEXPECTED_ROUTING_TYPE),
    ]
    assert server.broker.queues["sub"].message_count == 2
    assert not server.broker.addresses["prices"].anycast


def test_a_message_that_no_queue_takes_goes_to_the_dead_letter_address_if_that_is_wished(server: Server) -> None:
    server.settings.add("orders", {"send_to_dla_on_no_route": True, "dead_letter_address": "DLA"})
    client = server.login()
    client.create_queue("red", "orders", 0, filter="colour = 'red'")
    client.create_queue("DLA")
    sent = client.publish("orders", "blue", routing_type=0, colour="blue")
    server.settle()
    assert confirmed(client) == [sent]
    client.consume("DLA")
    server.settle()
    found = client.deliveries()[0].message
    assert found.text() == "blue"
    assert found.address == "DLA"
    assert found.properties.get("_AMQ_ORIG_ADDRESS") == "orders"


def test_producer_credits_wait_while_the_memory_is_full(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    client.send(RequestProducerCredits(500, "orders"))
    assert [packet.credits for packet in client.packets(ProducerCredits)] == [500]
    server.broker.memory.limit_bytes = 1
    client.publish("orders", "a")
    server.settle()
    client.send(RequestProducerCredits(600, "orders"))
    assert client.packets(ProducerCredits) == []
    server.broker.memory.limit_bytes = 1 << 20
    server.broker.memory.freed = True
    assert [packet.credits for packet in client.packets(ProducerCredits)] == [600]


@pytest.mark.parametrize("credits", [-1, -(1 << 31)])
def test_a_nonsense_request_for_credits_ends_the_connection(credits: int) -> None:
    client = Server().login()
    client.send(RequestProducerCredits(credits, "orders"))
    assert client.closed is not None


# -- what a user may not smuggle in -------------------------------------------------------------
def test_only_members_and_managers_may_say_which_queues_take_a_message(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    client.create_queue("private")
    ids = server.broker.queues["private"].id.to_bytes(8, "big")
    server.security.add_rule("orders", {"send": ["guest"]})
    server.login("guest").publish("orders", "a", _AMQ_ROUTE_TO=ids)
    server.settle()
    assert server.broker.queues["private"].message_count == 0
    assert server.broker.queues["orders"].message_count == 1
    member = server.login("cluster", "secret")
    member.publish("orders", "b", _AMQ_ROUTE_TO=ids, _AMQ_BRIDGE_DUP=b"1")
    member.publish("orders", "b", _AMQ_ROUTE_TO=ids, _AMQ_BRIDGE_DUP=b"1")
    server.settle()
    assert server.broker.queues["private"].message_count == 1
    client.consume("private")
    server.settle()
    assert not client.deliveries()[0].message.has_property("_AMQ_ROUTE_TO")


def test_a_members_message_for_queues_that_are_gone_makes_no_address(server: Server) -> None:
    server.settings.add("#", {"auto_create_addresses": False})
    member = server.login("cluster", "secret")
    sent = member.publish("gone", "a", _AMQ_ROUTE_TO=(99).to_bytes(8, "big"), routing_type=1)
    server.settle()
    assert confirmed(member) == [sent]
    assert server.broker.addresses == {}


# -- large messages -----------------------------------------------------------------------------
def test_a_bridge_asks_for_an_answer_to_every_piece(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    client.send(SendLargeMessage(text_message("orders")))
    client.send(
        SendContinuation(
            b"one", continues=True, requires_response=True, correlation=-9, sender_id=0
        )
    )
    assert confirmed(client) == [-9]
    client.send(
        SendContinuation(
            b"two", continues=False, requires_response=True, correlation=-10, sender_id=0
        )
    )
    assert confirmed(client) == []
    server.settle()
    assert confirmed(client) == [-10]


def test_a_piece_without_a_beginning_ends_the_connection() -> None:
    client = Server().login()
    client.send(
        SendContinuation(b"x", continues=False, requires_response=True, correlation=-9, sender_id=0)
    )
    assert client.closed is not None


def test_the_sender_id_is_optional_as_old_versions_have_none() -> None:
    """Version 129 sends no correlation, 133 no sender id: the tail is read by the session's version."""
    for version, tail in ((129, b""), (133, (-7).to_bytes(8, "big", signed=True))):
        server = Server()
        server.login().create_queue("orders")
        client = server.connect()
        client.feed(packet_types.HANDSHAKE)
        client.open_session(10, "admin", "admin", version=version)
        message = text_message("orders", "a")
        out = BytesWriter()
        write_i32_be(out, len(message.body) + 13)
        out.write(message.body + encode_header(message) + b"\xff" + tail)
        body = out.getvalue()
        head = BytesWriter()
        write_i32_be(head, len(body) + 9)
        head.append(packet_types.SESS_SEND)
        write_i64_be(head, 10)
        client.feed(head.getvalue() + body)
        server.settle()
        assert client.closed is None
        assert server.broker.queues["orders"].message_count == 1
