"""Security settings for a fully qualified queue name decide for that queue, before those of its address."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.errors import SECURITY
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogLease,
    LogPlan,
    LogPosition,
    LogRead,
    LogRetain,
    LogSeek,
)
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.queue import CreateSharedQueueV2, DeleteQueue
from tests.wire.core.server.large_rig import body_of, send_large
from tests.wire.core.server.server_rig import Client, Server, queue_request, text_message


def send(address: str) -> SendMessage:
    return SendMessage(
        text_message(address, "a", routing_type=1),
        requires_response=True,
        correlation=-7,
        sender_id=0,
    )


def shared(durable: bool) -> CreateSharedQueueV2:
    request = CreateSharedQueueV2(address="orders", queue="fresh", durable=durable)
    request.routing_type = 1
    request.requires_response = True
    return request


# (permission, queue that the request concerns, the request)
REQUESTS: list[tuple[str, str, Packet]] = [
    ("send", "secret", send("orders::secret")),
    ("consume", "secret", CreateConsumer(consumer_id=0, queue="secret", priority=4)),
    ("consume", "secret", CreateConsumer(consumer_id=0, queue="orders::secret", priority=4)),
    ("browse", "secret", CreateConsumer(consumer_id=0, queue="secret", browse_only=True, priority=4)),
    (
        "browse",
        "secret",
        CreateConsumer(consumer_id=0, queue="orders::secret", browse_only=True, priority=4),
    ),
    ("createDurableQueue", "fresh", queue_request("fresh", "orders")),
    ("createDurableQueue", "fresh", shared(True)),
    ("createNonDurableQueue", "fresh", queue_request("fresh", "orders", durable=False)),
    ("createNonDurableQueue", "fresh", queue_request("fresh", "orders", temporary=True)),
    ("createNonDurableQueue", "fresh", shared(False)),
    ("deleteDurableQueue", "secret", DeleteQueue("secret")),
    ("deleteDurableQueue", "secret", DeleteQueue("orders::secret")),
    ("deleteNonDurableQueue", "volatile", DeleteQueue("volatile")),
    ("consume", "secret", LogPosition(5, "secret")),
    ("consume", "secret", LogPosition(5, "orders::secret")),
    (
        "consume",
        "secret",
        LogRead(correlation=5, queue="secret", incarnation="", start=0, end=1, max_bytes=0),
    ),
    (
        "consume",
        "secret",
        LogPlan(5, "secret", incarnation="", start=0, max_messages=1, max_bytes=1),
    ),
    ("consume", "secret", LogLease(correlation=5, queue="secret", group="g", owner="me", ttl_ms=9)),
    ("consume", "secret", LogSeek(5, "secret", 0)),
    ("consume", "secret", LogRetain(5, "secret", "", "g", 1, 9, 9)),
]  # fmt: skip


class Setting:
    """Returns who has the permission: the role of the address's setting, of the queue's; None: without that setting."""

    def __init__(self, address: str | None, queue: str | None, granted: bool) -> None:
        self.address = address
        self.queue = queue
        self.granted = granted

    def add(self, server: Server, permission: str, queue: str) -> None:
        for match, role in (("orders", self.address), (f"orders::{queue}", self.queue)):
            if role is not None:
                server.security.add_rule(match, {permission: [role]})


SETTINGS = {
    "address only": Setting("guest", None, True),
    "address only, refused": Setting("admin", None, False),
    "queue only": Setting(None, "guest", True),
    "queue only, refused": Setting(None, "admin", False),
    "both, the queue's grants": Setting("admin", "guest", True),
    "both, the queue's refuses": Setting("guest", "admin", False),
}


@pytest.fixture
def server(server: Server) -> Server:
    """A server with three queues of one address."""
    server.queue("secret", "orders", 1)
    server.queue("open", "orders", 1)
    server.queue("volatile", "orders", 1, durable=False)
    server.settle()
    return server


def refused(client: Client, request: Packet) -> bool:
    answer = client.call(request)
    return isinstance(answer, ExceptionResponse) and answer.code == SECURITY


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("permission", "queue", "request_"), REQUESTS)
def test_the_setting_of_the_queue_decides_before_that_of_its_address(
    server: Server, permission: str, queue: str, request_: Packet, name: str
) -> None:
    setting = SETTINGS[name]
    setting.add(server, permission, queue)
    names = sorted(server.broker.queues)
    guest = server.login("guest")
    assert refused(guest, request_) is not setting.granted
    if not setting.granted:
        assert sorted(server.broker.queues) == names
        assert not server.broker.queues["secret"].consumers
        assert server.broker.queues["secret"].message_count == 0


@pytest.mark.parametrize("name", SETTINGS)
def test_large_messages(server: Server, name: str) -> None:
    setting = SETTINGS[name]
    setting.add(server, "send", "secret")
    guest = server.login("guest")
    send_large(guest, "orders::secret", body_of(300_000))
    server.settle()
    assert bool(guest.packets(ExceptionResponse)) is not setting.granted
    assert server.broker.queues["secret"].message_count == int(setting.granted)


@pytest.mark.parametrize("name", SETTINGS)
def test_an_operator_sends_to_a_queue(server: Server, name: str) -> None:
    """The operation `sendMessage` of a queue; a refusal is counted and published as every other."""
    setting = SETTINGS[name]
    setting.add(server, "send", "secret")
    server.security.add_rule("activemq.management", {"manage": ["guest"], "send": ["guest"]})
    guest = server.login("guest")
    refusals = server.broker.permissions.refused
    request = text_message(
        "activemq.management",
        json.dumps([{}, 3, "hello", True, None, None]),
        _AMQ_ResourceName="queue.secret",
        _AMQ_OperationName="sendMessage",
    )
    guest.call(SendMessage(request, requires_response=True, correlation=-7, sender_id=0))
    server.settle()
    assert server.broker.queues["secret"].message_count == int(setting.granted)
    assert server.broker.permissions.refused - refusals == int(not setting.granted)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_queue_that_a_message_creates(server: Server, name: str) -> None:
    SETTINGS[name].add(server, "createDurableQueue", "fresh")
    guest = server.login("guest")
    held = server.security.exact
    for match in ("orders", "orders::fresh"):
        if match in held:
            held[match].permissions["send"] = ("guest",)
    assert refused(guest, send("orders::fresh")) is not SETTINGS[name].granted
    assert ("fresh" in server.broker.queues) is SETTINGS[name].granted


def test_other_queues_of_the_address_keep_its_setting(server: Server) -> None:
    server.security.add_rule("orders", {"consume": ["guest"], "send": ["guest"]})
    server.security.add_rule("orders::secret", {"consume": ["admin"], "send": ["admin"]})
    guest = server.login("guest")
    assert not refused(guest, CreateConsumer(consumer_id=0, queue="open", priority=4))
    assert not refused(guest, send("orders"))
    assert refused(guest, CreateConsumer(consumer_id=1, queue="secret", priority=4))
    assert refused(guest, send("orders::secret"))


def test_the_right_to_send_to_a_queue_is_not_the_right_to_send_to_its_address(server: Server) -> None:
    server.security.add_rule("orders::secret", {"send": ["guest"]})
    guest = server.login("guest")
    assert not refused(guest, send("orders::secret"))
    assert refused(guest, send("orders"))
    assert refused(guest, send("orders::open"))
    assert server.broker.queues["open"].message_count == 0


def test_a_lease_that_others_hold_is_not_used_without_the_permission(server: Server) -> None:
    server.security.add_rule("orders", {"consume": ["guest"]})
    guest = server.login("guest")
    lease = LogLease(correlation=5, queue="secret", group="g", owner="me", ttl_ms=60_000)
    assert not refused(guest, lease)
    server.security.add_rule("orders::secret", {"consume": ["admin"]})
    assert refused(guest, LogAckThrough(5, "secret", "", "g", 0, 1))


def test_the_refusal_names_queue_and_address(server: Server) -> None:
    guest = server.login("guest")
    _, text = guest.fails(CreateConsumer(consumer_id=0, queue="secret", priority=4))
    assert text.startswith("AMQ229213: ")
    assert "guest" in text and "CONSUME" in text and "secret" in text and "orders" in text
    _, text = guest.fails(send("orders"))
    assert text.startswith("AMQ229032: ") and "SEND" in text and "orders" in text
