"""Every operation asks for its permission; a refusal is answered with 105 and changes nothing."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import SECURITY
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.logview import LogLease, LogPosition, LogRead
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.queue import CreateAddress, CreateSharedQueueV2, DeleteQueue
from tests.wire.core.server.server_rig import Server, queue_request, text_message


def shared(durable: bool) -> CreateSharedQueueV2:
    request = CreateSharedQueueV2(address="orders", queue="shared", durable=durable)
    request.routing_type = 1
    request.requires_response = True
    return request


REQUESTS: list[tuple[str, Packet]] = [
    (
        "send",
        SendMessage(
            text_message("orders", "a"), requires_response=True, correlation=-7, sender_id=0
        ),
    ),
    (
        "send",
        SendMessage(
            text_message("orders::orders", "a"), requires_response=True, correlation=-7, sender_id=0
        ),
    ),
    ("consume", CreateConsumer(consumer_id=0, queue="orders", priority=4)),
    ("browse", CreateConsumer(consumer_id=0, queue="orders", browse_only=True, priority=4)),
    ("createAddress", CreateAddress(address="fresh", routing_types=[0])),
    ("createAddress", CreateAddress(address="orders", routing_types=[0])),
    ("createDurableQueue", queue_request("second", "orders")),
    ("createDurableQueue", shared(True)),
    ("createNonDurableQueue", shared(False)),
    ("createNonDurableQueue", queue_request("second", "orders", temporary=True, durable=False)),
    ("createNonDurableQueue", queue_request("second", "orders", durable=False)),
    ("deleteDurableQueue", DeleteQueue("orders")),
    ("deleteNonDurableQueue", DeleteQueue("volatile")),
    (
        "manage",
        SendMessage(
            text_message("activemq.management", "a"),
            requires_response=True,
            correlation=-7,
            sender_id=0,
        ),
    ),
    ("consume", LogPosition(5, "orders")),
    (
        "consume",
        LogRead(correlation=5, queue="orders", incarnation="", start=0, end=1, max_bytes=0),
    ),
    ("consume", LogLease(correlation=5, queue="orders", group="g", owner="me", ttl_ms=1000)),
]


def prepared() -> Server:
    server = Server()
    server.queue("orders")
    server.queue("volatile", "orders", 1, durable=False)
    server.settle()
    return server


@pytest.mark.parametrize(("permission", "request_"), REQUESTS)
def test_an_operation_needs_its_permission(permission: str, request_: Packet) -> None:
    server = prepared()
    names = sorted(server.broker.queues)
    records = len(server.journal.records)
    guest = server.login("guest")
    assert guest.fails(request_)[0] == SECURITY
    assert guest.closed is None
    assert sorted(server.broker.queues) == names
    assert len(server.journal.records) == records
    assert not server.broker.queues["orders"].consumers
    server.security.add_rule("#", {permission: ["guest"]})
    assert not isinstance(guest.call(request_), ExceptionResponse)


def test_a_routing_type_is_not_added_to_an_address_without_the_permission_to_create_it() -> None:
    """The class of CVE-2025-27427: createDurableQueue or send alone may not change an address."""
    server = prepared()
    server.security.add_rule(
        "#", {name: ["guest"] for name in ("createDurableQueue", "createNonDurableQueue", "send")}
    )
    guest = server.login("guest")
    shared_topic = shared(True)
    shared_topic.routing_type = 0
    for request in (
        queue_request("topic", "orders", 0),
        queue_request("topic", "orders", 0, temporary=True, durable=False),
        shared_topic,
        SendMessage(
            text_message("orders", "a", routing_type=0),
            requires_response=True,
            correlation=-7,
            sender_id=0,
        ),
        SendMessage(
            text_message("fresh", "a", routing_type=0),
            requires_response=True,
            correlation=-7,
            sender_id=0,
        ),
        queue_request("fresh"),
    ):
        assert guest.fails(request)[0] == SECURITY
    address = server.broker.addresses["orders"]
    assert (address.anycast, address.multicast) == (True, False)
    assert sorted(server.broker.addresses) == ["orders"]


def test_permissions_are_those_of_the_address_not_of_the_queue() -> None:
    server = prepared()
    server.security.add_rule("volatile", {"consume": ["guest"]})
    guest = server.login("guest")
    assert guest.fails(CreateConsumer(consumer_id=0, queue="volatile", priority=4))[0] == SECURITY


def test_a_repeated_send_is_refused_after_the_permission_was_withdrawn() -> None:
    server = prepared()
    server.security.add_rule("orders", {"send": ["guest"]})
    guest = server.login("guest")
    request = SendMessage(
        text_message("orders", "a"), requires_response=True, correlation=-7, sender_id=0
    )
    assert not isinstance(guest.call(request), ExceptionResponse)
    server.security.add_rule("orders", {"send": ["admin"]})
    assert guest.fails(request)[0] == SECURITY
