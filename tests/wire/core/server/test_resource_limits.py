"""resource-limit-settings: sessions and queues of one user."""

from __future__ import annotations

import gc
import json
import time

import pytest

from atalanta.kernel.errors import ILLEGAL_STATE, SECURITY, SESSION_CREATION_REJECTED
from atalanta.kernel.security.resource_limits import NAME_CHARS_MAX, ResourceLimit
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import ConsumerClose, CreateConsumer
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.producer import CreateProducer
from atalanta.wire.core.packets.queue import CreateAddress, CreateSharedQueueV2, DeleteQueue
from atalanta.wire.core.packets.session import AddMetadataV2, CreateSessionV2, UniqueAddMetadata
from tests.wire.core.server.large_rig import body_of, send_large
from tests.wire.core.server.server_rig import VERSION, Server, queue_request, text_message


def limited(max_sessions: int = -1, max_queues: int = -1) -> Server:
    return Server(BrokerConfig(resource_limits=[ResourceLimit("admin", max_sessions, max_queues)]))


def test_a_user_has_no_more_sessions_than_allowed_over_all_connections() -> None:
    server = limited(max_sessions=2)
    first = server.login()
    second = server.login()
    server.login("guest")
    third = server.connect()
    third.feed(b"ARTEMIS")
    answer = third.open_session(10, "admin", "admin")
    assert isinstance(answer, ExceptionResponse)
    assert answer.code == SESSION_CREATION_REJECTED
    assert "user admin, sessions allowed: 2" in str(answer.message)
    server.lost(first.conn)
    again = third.open_session(10, "admin", "admin")
    assert not isinstance(again, ExceptionResponse)
    assert second.closed is None


def test_none_at_all() -> None:
    server = limited(max_sessions=0)
    client = server.connect()
    client.feed(b"ARTEMIS")
    assert isinstance(client.open_session(10, "admin", "admin"), ExceptionResponse)


def test_a_user_creates_no_more_queues_than_allowed() -> None:
    server = limited(max_queues=2)
    server.queue("of-the-file")
    admin = server.login()
    admin.succeeds(queue_request("a", "a"))
    admin.succeeds(queue_request("b", "b", temporary=True, durable=False))
    code, why = admin.fails(queue_request("c", "c"))
    assert code == SECURITY and "queues allowed: 2" in why
    assert "c" not in server.broker.queues and "c" not in server.broker.addresses
    admin.succeeds(DeleteQueue("a"))
    admin.succeeds(queue_request("c", "c"))


def test_a_user_without_a_setting_has_a_limit_too() -> None:
    server = Server(BrokerConfig(resource_limits=[ResourceLimit("guest")]))
    server.broker.session_services.queues.user_limit = 3
    server.security.add_rule("#", {name: ["admin", "guest"] for name in PERMISSIONS})
    server.queue("of-the-file")
    admin = server.login()
    for name in "abc":
        admin.succeeds(queue_request(name))
    code, why = admin.fails(queue_request("d"))
    assert code == SECURITY and "queues allowed: 3" in why and "max-queues" in why
    code, why = admin.fails(
        SendMessage(text_message("e", routing_type=1), requires_response=True, correlation=-7, sender_id=0)
    )
    assert code == SECURITY and "e" not in server.broker.queues
    admin.succeeds(DeleteQueue("a"))
    admin.succeeds(queue_request("d"))
    guest = server.login("guest")  # has a setting, which says: any
    for number in range(5):
        guest.succeeds(queue_request(f"guest-{number}"))
    peer = server.login("cluster", "secret")
    for number in range(5):
        peer.succeeds(queue_request(f"peer-{number}"))


LONG = "x" * (NAME_CHARS_MAX + 1)


def send(address: str) -> SendMessage:
    return SendMessage(
        text_message(address, routing_type=1), requires_response=True, correlation=-7, sender_id=0
    )


@pytest.mark.parametrize(
    "request_",
    [
        queue_request(LONG, "a"),
        queue_request("q", LONG),
        queue_request(LONG, "a", temporary=True, durable=False),
        CreateSharedQueueV2(address="a", queue=LONG, durable=True, requires_response=True),
        CreateAddress(address=LONG, routing_types=[1]),
        send(LONG),
        send(f"a::{LONG}"),
        send(f"{LONG}::a"),
    ],
)
@pytest.mark.parametrize("user", ["admin", "guest"])
def test_names_are_not_endless(server: Server, user: str, request_: Packet) -> None:
    client = server.login(user)
    code, why = client.fails(request_)
    assert code == ILLEGAL_STATE and str(NAME_CHARS_MAX) in why and len(why) < 300
    assert not server.broker.queues and not server.broker.addresses
    for session in server.broker.clients.sessions():
        kept = session.identity.answers.values()
        assert not any(len(name) > NAME_CHARS_MAX for answers in kept for name in answers)
        assert not any(len(name) > NAME_CHARS_MAX for name in session.addresses.by_name)


def test_the_longest_names(server: Server) -> None:
    name = "é" * NAME_CHARS_MAX
    admin = server.login()
    admin.succeeds(queue_request(name))
    admin.succeeds(send(f"{name}::{name}"))
    assert server.broker.queues[name].message_count == 1


def test_a_large_message_for_an_endless_name_is_refused(server: Server) -> None:
    client = server.login()
    send_large(client, LONG, body_of(300_000))
    server.settle()
    (answer,) = client.packets(ExceptionResponse)
    assert answer.code == ILLEGAL_STATE and not server.broker.addresses


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("createQueue", [json.dumps({"name": LONG, "address": "a"})]),
        ("createQueue", [json.dumps({"name": "q", "address": LONG})]),
        ("createQueue", ["a", LONG, "ANYCAST"]),
        ("createAddress", [LONG, "ANYCAST"]),
    ],
)
def test_operators_make_no_endless_names(operation: str, given: list[str]) -> None:
    server = Server()
    client = server.login()
    request = text_message(
        "activemq.management",
        json.dumps(given),
        _AMQ_ResourceName="broker",
        _AMQ_OperationName=operation,
    )
    client.call(SendMessage(request, requires_response=True, correlation=-7, sender_id=0))
    assert not server.broker.queues and not server.broker.addresses


def test_the_listed_address_of_a_producer_is_cut(server: Server) -> None:
    client = server.login()
    client.send(CreateProducer(1, "x" * 1_000_000))
    (session,) = server.broker.clients.sessions()
    assert [one.address for one in session.producers.values()] == ["x" * NAME_CHARS_MAX]


def test_the_work_for_one_more_consumer_does_not_grow_with_their_number(server: Server) -> None:
    admin = server.login()
    admin.create_queue("orders")

    def cost(numbers: range) -> float:
        begin = time.process_time()
        for number in numbers:
            admin.send(CreateConsumer(consumer_id=number, queue="orders", filter="a = 1", priority=4))
        server.settle()
        return time.process_time() - begin

    gc.disable()  # a collection looks at whatever other tests have left
    try:
        first = cost(range(300))
        cost(range(300, 5_000))
        assert cost(range(5_000, 5_300)) < 4 * first
    finally:
        gc.enable()
    assert server.broker.queues["orders"].consumer_count() == 5_300
    begin = time.process_time()
    server.lost(admin.conn)
    assert time.process_time() - begin < 40 * first
    assert server.broker.queues["orders"].consumer_count() == 0


def test_the_consumers_of_one_connection_take_bounded_memory(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    selector = "a = '" + "x" * 60_000 + "'"
    consumers = 0
    while not isinstance(answer := client.consume("orders", consumers, selector), ExceptionResponse):
        consumers += 1
        assert consumers < 200
    assert answer.code == ILLEGAL_STATE
    assert "64 MiB" in str(answer.message)
    assert server.broker.queues["orders"].consumer_count() == consumers
    other = server.login()
    assert not isinstance(other.consume("orders", 0, selector), ExceptionResponse)
    client.succeeds(ConsumerClose(0))
    assert not isinstance(client.consume("orders", 0, selector), ExceptionResponse)


LONG = "x" * (NAME_CHARS_MAX + 1)


def test_what_a_session_keeps_of_its_client_is_bounded(server: Server) -> None:
    client = server.login()
    for key, value in (("key", LONG), (LONG, "value")):
        assert client.fails(AddMetadataV2(key, value))[0] == ILLEGAL_STATE
        assert client.fails(UniqueAddMetadata(key, value))[0] == ILLEGAL_STATE
    for name, client_id in ((LONG, None), ("name", LONG)):
        request = CreateSessionV2(name, 11, VERSION, "admin", "admin", client_id=client_id)
        assert isinstance(client.call(request, 1), ExceptionResponse)


@pytest.mark.parametrize("text", ["y" * 100_000, "short"])
def test_duplicate_ids_of_any_length_are_found_and_take_little_memory(server: Server, text: str) -> None:
    client = server.login()
    client.create_queue("orders")
    for given in (text, text + "2", text, text.encode(), text.encode()):
        client.publish("orders", "a", _AMQ_DUPL_ID=given)
        server.settle()
    assert server.broker.queues["orders"].message_count == 3
    assert all(len(each) < 1_000 for each in server.broker.caches.by_name["orders"].ids)
