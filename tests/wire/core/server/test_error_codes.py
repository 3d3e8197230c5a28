"""Refusals begin with the code that Artemis has for them; docs/reference/error-codes.md lists all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.queue import CreateAddress, CreateSharedQueueV2, DeleteQueue
from tests.wire.core.server.server_rig import Server, queue_request, text_message

ROOT = Path(__file__).parents[4]


def send(address: str, routing_type: int | None = None) -> SendMessage:
    message = text_message(address, "a", routing_type=routing_type)
    return SendMessage(message, requires_response=True, correlation=-7, sender_id=0)


def shared(address: str, filter_text: str | None) -> CreateSharedQueueV2:
    request = CreateSharedQueueV2(address=address, queue="shared", filter=filter_text)
    request.requires_response = True
    return request


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (CreateConsumer(consumer_id=1, queue="missing"), "AMQ229017"),
        (DeleteQueue("missing"), "AMQ229017"),
        (queue_request("single"), "AMQ229019"),
        (queue_request("bad", filter="price >"), "AMQ229020"),
        (DeleteQueue("single"), "AMQ229025"),
        (shared("elsewhere", None), "AMQ229082"),
        (shared("prices", "price > 3"), "AMQ229083"),
        (CreateConsumer(consumer_id=1, queue="single"), "AMQ229200"),
        (CreateAddress(address="odd", routing_types=[7]), "AMQ229208"),
        (queue_request("", "orders"), "AMQ229216"),
        (queue_request("x" * 2000), "AMQ229251"),
    ],
)
def test_a_refusal_begins_with_the_code_of_artemis(server: Server, request_: Packet, code: str) -> None:
    client = server.login()
    client.create_queue("single", max_consumers=1)
    client.consume("single")
    client.succeeds(shared("prices", None))
    assert client.fails(request_)[1].startswith(f"{code}: ")


def test_a_refused_login_begins_with_its_code(server: Server) -> None:
    for user, code in (("admin", "AMQ229031"), (server.broker.security.cluster_user, "AMQ229099")):
        answer = server.greeted().open_session(10, user, "wrong")
        assert isinstance(answer, ExceptionResponse)
        assert (answer.message or "").startswith(f"{code}: ")


def test_the_table_lists_exactly_the_codes_of_the_source() -> None:
    used: set[str] = set()
    for path in (ROOT / "src/atalanta").rglob("*.py"):
        if "cli" not in path.parts:
            used.update(re.findall(r'"(AMQ229\d{3}): ', path.read_text("utf-8")))
    table = (ROOT / "docs/reference/error-codes.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(AMQ\d{6})` \|", table, re.MULTILINE)) == used
