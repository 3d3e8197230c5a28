"""Dead letters of every kind of client, their shared and individual queues, and message groups as in Classic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.message.properties import Int
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.identifiers import ConnectionId, SessionId
from atalanta.wire.openwire.commands.producers import SessionInfo
from tests.kernel.broker_rig import SECOND
from tests.wire.openwire.server.openwire_rig import (
    INDIVIDUAL,
    OPTIONS,
    POISON,
    ROLLBACK,
    OpenWireClient,
    OpenWireServer,
    properties,
    text,
)

SHARED: dict[str, SettingValue] = {"dead_letter_address": "ActiveMQ.DLQ", "max_delivery_attempts": 3}
# What individualDeadLetterStrategy of an activemq.xml becomes.
SEPARATE: dict[str, SettingValue] = {
    **SHARED, "dead_letter_address": "ActiveMQ.DLQ.individual", "auto_create_dead_letter_resources": True,
    "dead_letter_queue_prefix": "ActiveMQ.DLQ.Queue.", "dead_letter_queue_suffix": "",
}  # fmt: skip


def server_with(values: dict[str, SettingValue]) -> OpenWireServer:
    settings = AddressSettingsRepository()
    settings.add("orders.#", values)
    server = OpenWireServer(settings=settings)
    if values is SHARED:
        server.login().create_queue("ActiveMQ.DLQ")
    return server


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("values", [SHARED, SEPARATE])
def test_a_poison_message_ends_in_the_queue_of_the_strategy(
    values: dict[str, SettingValue], persistent: bool
) -> None:
    server = server_with(values)
    client = server.openwire_client()
    consumer = client.consume("orders.a")
    for name in ("orders.a", "orders.b"):
        client.publish(name, name, persistent=persistent)
    client.consume("orders.b")
    for got in client.dispatches():
        client.ack(got, POISON, got)
    client.close(consumer)
    if values is SHARED:
        client.consume("ActiveMQ.DLQ")
        assert sorted(str(each) for each in client.texts()) == ["orders.a", "orders.b"]
        return
    for name in ("orders.a", "orders.b"):
        client.consume(f"ActiveMQ.DLQ.Queue.{name}", selector=f"JMSMessageID <> 'x{name}'")
        (got,) = client.dispatches()
        assert text(got) == name and got.message is not None and got.message.persistent == persistent
        client.ack(got, INDIVIDUAL)
        assert server.broker.queues[f"ActiveMQ.DLQ.Queue.{name}"].message_count == 0
    assert client.texts() == []


@pytest.mark.parametrize("ending", ["lost", "closed", "consumer", "rollback"])
def test_the_broker_counts_attempts_whatever_ends_them(ending: str) -> None:
    server = server_with(SHARED)
    server.openwire_client("sender").publish("1", "orders.a")
    for attempt in range(3):
        client = server.openwire_client(f"c{attempt}")
        consumer = client.consume("orders.a")
        (got,) = client.dispatches()
        assert got.redelivery_counter == attempt and got.message is not None
        if ending == "lost":
            server.lost(client.conn)
        elif ending == "closed":
            client.succeeds(RemoveInfo(ConnectionId(client.id), -2))
        elif ending == "consumer":
            client.close(consumer, -2)
        else:
            transaction = client.begin()
            client.ack(got, transaction=transaction)
            client.end(transaction, ROLLBACK)
            client.close(consumer)  # it has not delivered the message again
    last = server.openwire_client("last")
    last.consume("orders.a")
    assert last.dispatches() == []
    last.consume("ActiveMQ.DLQ")
    assert last.texts() == ["1"]


def test_a_browser_of_an_individual_dead_letter_queue() -> None:
    server = server_with(SEPARATE)
    client = server.openwire_client()
    client.publish("1", "orders.a")
    client.consume("orders.a")
    (got,) = client.dispatches()
    client.ack(got, POISON, got)
    client.consume("ActiveMQ.DLQ.Queue.orders.a", browser=True)
    first, end = client.dispatches()
    assert text(first) == "1" and end.message is None


# -- groups ---------------------------------------------------------------------------------------
def test_a_group_ends_with_the_sequence_minus_1_and_moves_when_its_consumer_leaves() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"default_group_first_key": "JMSXGroupFirstForConsumer"})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    first, second = client.consume("a"), client.consume("a")
    for number in (1, 2, -1, 1):
        client.publish(str(number), "a", group_id="g", group_sequence=number)
    got = client.dispatches()
    assert [(each.consumer_id, text(each)) for each in got] == [
        (first, "1"), (first, "2"), (first, "-1"), (second, "1")
    ]  # fmt: skip
    marks = [properties(each) if each.message and each.message.marshalled_properties else {} for each in got]
    assert [each.get("JMSXGroupFirstForConsumer") for each in marks] == [True, None, None, True]
    for each in got:
        client.ack(each, INDIVIDUAL)
    client.close(second)
    client.publish("3", "a", group_id="g", group_sequence=Int(3))
    (moved,) = client.dispatches()
    assert moved.consumer_id == first


def test_a_dead_letter_that_cannot_be_sent_to_its_consumer_does_not_come_again_at_once() -> None:
    """Moved to the dead-letter address, it would be delivered and moved in each turn."""
    settings = AddressSettingsRepository()
    settings.add("#", SHARED)
    server = OpenWireServer(settings=settings)
    sender = server.openwire_client("sender")
    for body in ("x" * 5_000, "good"):
        sender.publish(body, "ActiveMQ.DLQ")
    small = OpenWireClient(server, "small", replace(OPTIONS, frame_bytes_max=2_000))
    small.greet()
    small.succeeds(small.login_info("small", "admin", "admin"))
    small.succeeds(SessionInfo(SessionId(small.id, 1)))
    small.consume("ActiveMQ.DLQ")
    for _ in range(20):
        server.settle()
    assert small.texts() == ["good"] and small.closed is None
    assert [name for name, _ in server.trace.events].count("message_not_convertible") == 1
    server.lost(small.conn)
    server.now += 61 * SECOND
    server.broker.on_timer(server.now, "kernel.scheduled")
    reader = server.openwire_client("reader")
    reader.consume("ActiveMQ.DLQ")
    assert sorted(len(str(each)) for each in reader.texts()) == [4, 5_000]
