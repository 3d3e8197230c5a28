"""Consumers that take fewer messages than their address allows: told about, or cut off."""

from __future__ import annotations

import pytest

from atalanta.kernel.sessions.slow_consumers import SLOW_TIMER
from atalanta.message.properties import Int
from atalanta.wire.core.packets.consumer import Acknowledge
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client, Server

MINUTE = 60


def watching(policy: str, threshold: int = 2, **more: object) -> Server:
    server = Server()
    values = {
        "slow_consumer_threshold": threshold,
        "slow_consumer_policy": policy,
        "slow_consumer_check_period_s": 5,
        **more,
    }
    server.settings.add("q#", values)  # type: ignore[arg-type]
    server.broker.start_timers(server.now)
    server.broker.clients.close = server.close
    return server


def pass_time(server: Server, seconds: int) -> None:
    for _ in range(seconds):
        server.now += SECOND
        due = server.timers.due.get(SLOW_TIMER)
        if due is not None and due <= server.now:
            del server.timers.due[SLOW_TIMER]
            server.broker.on_timer(server.now, SLOW_TIMER)
    server.settle()


def fill(client: Client, count: int) -> None:
    for number in range(count):
        client.publish("q", str(number), wait=False)
    client.server.settle()


def acknowledge(client: Client, count: int) -> None:
    for delivery in client.deliveries()[:count]:
        client.send(Acknowledge(0, delivery.message.id, False))
    client.server.settle()


def slow_events(server: Server) -> int:
    return sum(1 for name, _ in server.trace.events if name == "slow_consumer")


def test_without_a_threshold_nobody_looks(server: Server) -> None:
    server.broker.start_timers(server.now)
    assert SLOW_TIMER not in server.timers.due


def test_a_slow_consumer_loses_its_connection_and_a_quick_one_stays() -> None:
    server = watching("KILL")
    sender, slow, quick = server.login(), server.login(), server.login()
    sender.create_queue("q")
    slow.consume("q")
    quick.consume("q")
    pass_time(server, 6)
    fill(sender, 60)
    acknowledge(slow, 5)
    acknowledge(quick, 20)
    pass_time(server, 5)
    assert slow.closed is not None and "slow consumer" in slow.closed
    assert quick.closed is None and sender.closed is None
    server.settle()
    assert len(quick.bodies()) >= 25


def test_a_consumer_is_not_slow_where_too_little_comes() -> None:
    server = watching("KILL")
    sender, idle = server.login(), server.login()
    sender.create_queue("q")
    idle.consume("q")
    pass_time(server, 6)
    fill(sender, 1)
    pass_time(server, 20)
    assert idle.closed is None
    assert slow_events(server) == 0


def test_a_new_consumer_has_a_period_to_begin() -> None:
    server = watching("KILL")
    sender = server.login()
    sender.create_queue("q")
    fill(sender, 100)
    server.login().consume("q")
    pass_time(server, 4)
    late = server.login()
    late.consume("q")
    pass_time(server, 5)
    assert late.closed is None


def test_notify_tells_who_it_is() -> None:
    server = watching("NOTIFY")
    sender, slow, ear = server.login(), server.login(), server.login()
    sender.create_queue("q")
    ear.create_queue("ear", "activemq.notifications", 0, filter="_AMQ_NotifType = 'CONSUMER_SLOW'")
    ear.consume("ear")
    slow.consume("q", 7)
    pass_time(server, 6)
    fill(sender, 50)
    pass_time(server, 5)
    (told,) = [one.message.properties for one in ear.deliveries()]
    assert told.get("_AMQ_Address") == "q"
    assert told.get("_AMQ_ConsumerName") == 7
    assert told.get("_AMQ_ConsumerCount") == Int(1)
    assert told.get("_AMQ_RemoteAddress") == "1.2.3.4:5"
    (session,) = server.broker.clients.connected[slow.conn].sessions
    assert told.get("_AMQ_SessionName") == session
    assert slow.closed is None


@pytest.mark.parametrize(("acknowledged", "slow"), [(4, True), (6, False)])
def test_the_unit_of_the_threshold(acknowledged: int, slow: bool) -> None:
    unit = {"slow_consumer_threshold_measurement_unit": "MESSAGES_PER_MINUTE"}
    server = watching("NOTIFY", MINUTE, **unit)
    sender, consumer = server.login(), server.login()
    sender.create_queue("q")
    consumer.consume("q")
    pass_time(server, 6)
    fill(sender, 50)
    acknowledge(consumer, acknowledged)
    pass_time(server, 5)
    assert slow_events(server) == int(slow)


def test_browsers_are_never_slow() -> None:
    server = watching("KILL")
    sender, browser = server.login(), server.login()
    sender.create_queue("q")
    fill(sender, 50)
    browser.consume("q", browse=True)
    pass_time(server, 20)
    assert browser.closed is None
