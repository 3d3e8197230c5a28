"""The names of store-and-forward queues belong to the node: no client's queue may stand in their place."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.errors import ILLEGAL_STATE
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.queue import CreateSharedQueueV2
from tests.wire.core.server.server_rig import Server, queue_request, text_message

FORWARD = "$.artemis.internal.sf.my-cluster.node-b"


def send(address: str) -> SendMessage:
    return SendMessage(
        text_message(address, "a", routing_type=1),
        requires_response=True,
        correlation=-7,
        sender_id=0,
    )


REQUESTS: list[Packet] = [
    queue_request(FORWARD, "orders"),
    queue_request(FORWARD, "orders", durable=False, temporary=True),
    queue_request(f"orders::{FORWARD}", "orders"),
    queue_request("any", f"orders::{FORWARD}"),
    queue_request(FORWARD),
    CreateSharedQueueV2(address="orders", queue=FORWARD, requires_response=True),
    CreateSharedQueueV2(address="orders", queue=FORWARD, durable=False, requires_response=True),
    send(f"orders::{FORWARD}"),
    send(FORWARD),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_no_request_creates_such_a_queue(server: Server, request_: Packet) -> None:
    admin = server.login()
    code, text = admin.fails(request_)
    assert code == ILLEGAL_STATE
    assert "store-and-forward" in text
    assert not server.broker.queues


def test_neither_does_management(server: Server) -> None:
    admin = server.login()
    request = text_message(
        "activemq.management",
        json.dumps([json.dumps({"name": FORWARD, "address": "orders", "routing-type": "ANYCAST"})]),
        _AMQ_ResourceName="broker",
        _AMQ_OperationName="createQueue",
    )
    admin.call(SendMessage(request, requires_response=True, correlation=-7, sender_id=0))
    assert not server.broker.queues
