"""Scheduled messages: delays, repetitions, times of cron."""

from __future__ import annotations

import pytest

from atalanta.message.properties import Int
from tests.kernel.broker_rig import SECOND
from tests.wire.openwire.server.openwire_rig import (
    STANDARD,
    OpenWireServer,
    id_of,
    properties,
    text,
)


def pass_time(server: OpenWireServer, seconds: int) -> None:
    server.settle()
    server.now += seconds * SECOND
    server.broker.on_timer(server.now, "kernel.scheduled")
    server.settle()


def test_a_scheduled_message_waits(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a", properties={"AMQ_SCHEDULED_DELAY": 5000})
    client.consume("a")
    assert client.dispatches() == []
    pass_time(server, 6)
    assert client.texts() == ["1"]


def test_a_repeated_message_comes_with_ids_of_its_own(server: OpenWireServer) -> None:
    client = server.openwire_client()
    schedule: dict[str, object] = {
        "AMQ_SCHEDULED_DELAY": 5000, "AMQ_SCHEDULED_PERIOD": Int(2000), "AMQ_SCHEDULED_REPEAT": "2", "n": Int(1),
    }  # fmt: skip
    client.publish("1", "a", properties=schedule)
    client.consume("a")
    found = []
    for seconds in (4, 1, 1, 1, 2, 10):
        pass_time(server, seconds)
        found.append(client.dispatches())
    assert [len(each) for each in found] == [0, 1, 0, 1, 1, 0]
    got = [each[0] for each in found if each]
    assert [text(each) for each in got] == ["1", "1", "1"]
    assert len({str(id_of(each)) for each in got}) == 3
    assert [properties(each) for each in got] == [{"n": 1}] * 3
    client.ack(got[2], STANDARD, got[0], 3)
    server.settle()
    assert server.broker.queues["a"].message_count == 0


def test_a_repeated_message_in_a_transaction_and_at_the_times_of_cron(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("a")
    transaction = client.begin()
    client.succeeds(
        client.message("1", "a", properties={"AMQ_SCHEDULED_CRON": "* * * * *"}, transaction_id=transaction)
    )
    client.end(transaction)
    assert client.texts() == []
    for _ in range(3):
        pass_time(server, 60)
        assert client.texts() == ["1"]


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ({"AMQ_SCHEDULED_CRON": "* * *"}, "'* * *' has not the five fields"),
        ({"AMQ_SCHEDULED_REPEAT": Int(3)}, "AMQ_SCHEDULED_REPEAT needs AMQ_SCHEDULED_PERIOD"),
        ({"AMQ_SCHEDULED_DELAY": "x"}, "AMQ_SCHEDULED_DELAY: 'x' is no number"),
        ({"AMQ_SCHEDULED_PERIOD": True}, "AMQ_SCHEDULED_PERIOD: true is no number"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused(
    server: OpenWireServer, schedule: dict[str, object], why: str
) -> None:
    client = server.openwire_client()
    kind, found = client.fails(client.message("1", "a", properties=schedule))
    assert kind == "javax.jms.JMSException" and found.startswith(why)


def test_the_life_of_a_scheduled_message_begins_with_its_delivery(server: OpenWireServer) -> None:
    client = server.openwire_client()
    now_ms = server.now // 1_000_000
    client.publish("1", "a", properties={"AMQ_SCHEDULED_DELAY": 5000}, timestamp=now_ms, expiration=now_ms + 1000)
    client.consume("a")
    pass_time(server, 5)
    (got,) = client.dispatches()
    assert got.message is not None and got.message.expiration == server.now // 1_000_000 + 1000
