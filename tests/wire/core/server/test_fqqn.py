"""Fully qualified queue names in requests: `address::queue`, and `::queue` for a queue of any address."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import QUEUE_DOES_NOT_EXIST
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.query import BindingQuery, QueueQuery, QueueQueryResponseV3
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueue,
    CreateSharedQueue,
    CreateSharedQueueV2,
    DeleteQueue,
)
from tests.wire.core.server.server_rig import Server, queue_request


def test_a_jms_producer_creates_the_queue_of_its_fqqn(server: Server) -> None:
    """ActiveMQSession.checkDestination: queries, then address and queue, both under the FQQN."""
    client = server.login()
    client.call(BindingQuery("orders::eu"))
    client.succeeds(CreateAddress("orders::eu", [1], auto_created=True))
    client.succeeds(queue_request("orders::eu", auto_created=True))
    queue = server.broker.queues["eu"]
    assert (queue.spec.name, queue.spec.address) == ("eu", "orders")
    client.publish("orders::eu", "a", wait=False, routing_type=1)
    client.consume("orders::eu")
    server.settle()
    assert client.bodies() == ["a"]


@pytest.mark.parametrize(
    "request_type", [CreateQueue, CreateSharedQueue, CreateSharedQueueV2]
)
@pytest.mark.parametrize(("address", "name"), [("t::s", "t::s"), ("t::s", "s"), ("t", "t::s")])
def test_a_subscription_is_created_under_its_fqqn(
    server: Server,
    request_type: type[CreateQueue | CreateSharedQueue | CreateSharedQueueV2],
    address: str,
    name: str,
) -> None:
    client = server.login()
    client.succeeds(request_type(address=address, queue=name, durable=True, requires_response=True))
    queue = server.broker.queues["s"]
    assert (queue.spec.name, queue.spec.address) == ("s", "t")


def test_an_empty_address_names_the_queue_of_any(server: Server) -> None:
    client = server.login()
    client.create_queue("eu", "orders")
    client.publish("orders", "a", wait=False, routing_type=1)
    client.consume("::eu")
    server.settle()
    assert client.bodies() == ["a"]
    answer = client.call(QueueQuery("::eu"))
    assert isinstance(answer, QueueQueryResponseV3)
    assert (answer.exists, answer.name, answer.address) == (True, "eu", "orders")
    for wrong in ("eu::", "::", "other::eu"):
        code, _ = client.fails(CreateConsumer(consumer_id=9, queue=wrong, priority=4))
        assert code == QUEUE_DOES_NOT_EXIST
    server.login().consume("::eu", browse=True)
    assert isinstance(client.call(DeleteQueue("::other")), ExceptionResponse)
