"""The scheduler of an acceptor: schedulerSupport, and the shortest period, over OpenWire, STOMP and CORE."""

from __future__ import annotations

import pytest

from atalanta.config.acceptors import parse_acceptor
from atalanta.message.properties import Int
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from tests.wire.extreme_numbers_rig import EveryProtocol, core_message, pass_time
from tests.wire.openwire.server.openwire_rig import properties, text

SCHEDULE: dict[str, object] = {
    "AMQ_SCHEDULED_DELAY": 60_000, "AMQ_SCHEDULED_PERIOD": 1_000, "AMQ_SCHEDULED_REPEAT": Int(3),
    "AMQ_SCHEDULED_CRON": "* * * * *", "n": Int(1),
}  # fmt: skip


def server_with(options: str) -> EveryProtocol:
    server = EveryProtocol(acceptor=parse_acceptor("clients", f"tcp://localhost:61616?{options}"))
    server.queue("a")
    server.settle()
    return server


def warnings(server: EveryProtocol) -> list[dict[str, object]]:
    return [fields for name, fields in server.trace.events if name == "message_not_scheduled"]


def test_without_scheduler_support_openwire_messages_are_delivered_at_once_as_they_are() -> None:
    server = server_with("schedulerSupport=false")
    client = server.openwire_client()
    client.consume("a")
    for number in range(3):
        client.publish(str(number), "a", properties=dict(SCHEDULE))
    client.publish("wrong", "a", properties={"AMQ_SCHEDULED_CRON": "x", "AMQ_SCHEDULED_DELAY": "y"})
    transaction = client.begin()
    client.succeeds(client.message("in one", "a", properties=dict(SCHEDULE), transaction_id=transaction))
    client.end(transaction)
    got = client.dispatches()
    assert [text(each) for each in got] == ["0", "1", "2", "wrong", "in one"]
    assert [properties(each) for each in got[:3]] == [SCHEDULE] * 3
    pass_time(server, 600)
    assert client.dispatches() == [] and server.broker.queues["a"].scheduled_count == 0
    [warning] = warnings(server)
    assert warning["acceptor"] == "clients" and warning["client"] == "c"
    assert "schedulerSupport" in str(warning["what_to_do"])


def test_without_scheduler_support_stomp_messages_are_delivered_at_once_as_they_are() -> None:
    server = server_with("schedulerSupport=false")
    client = server.stomp_client()
    client.subscribe("a")
    headers = {name: str(value) for name, value in SCHEDULE.items()}
    client.receipt("SEND", "1", destination="a", AMQ_SCHEDULED_TIME="99999999999999", **headers)
    client.receipt("SEND", "2", destination="a", **headers)
    got = client.messages()
    assert [each.body for each in got] == [b"1", b"2"]
    assert all(each[name] == value for each in got for name, value in headers.items())
    assert got[0]["AMQ_SCHEDULED_TIME"] == "99999999999999"
    assert server.broker.queues["a"].scheduled_count == 0 and len(warnings(server)) == 1
    server.openwire_client().publish("3", "a", properties=dict(SCHEDULE))
    assert len(warnings(server)) == 1


def test_an_ordinary_message_warns_of_nothing() -> None:
    server = server_with("schedulerSupport=false")
    server.openwire_client().publish("1", "a", properties={"n": Int(1)})
    server.stomp_client().receipt("SEND", "2", destination="a", n="1")
    assert warnings(server) == []


def test_the_delivery_time_of_core_clients_is_always_kept() -> None:
    server = server_with("schedulerSupport=false")
    message = core_message("a", 1, "x", {"_AMQ_SCHED_DELIVERY": server.now // 1_000_000 + 5_000})
    server.login().succeeds(SendMessage(message, requires_response=True, correlation=1, sender_id=0))
    assert server.broker.queues["a"].scheduled_count == 1


@pytest.mark.parametrize("options", ["", "schedulerSupport=true", "schedulerSupport=false"])
def test_properties_of_a_repetition_are_the_brokers_own(options: str) -> None:
    """Else a client of CORE or STOMP would repeat at any period, whatever the acceptor says."""
    server = server_with(options)
    at_ms = server.now // 1_000_000 + 1
    names: dict[str, object] = {
        "_AMQ_SCHED_PERIOD": 1, "_AMQ_SCHED_REPEAT": Int(-1), "_AMQ_SCHED_CRON": "* * * * *", "_AMQ_SCHED_JOB": 7,
    }  # fmt: skip
    message = core_message("a", 1, "x", {"_AMQ_SCHED_DELIVERY": at_ms, **names})
    server.login().succeeds(SendMessage(message, requires_response=True, correlation=1, sender_id=0))
    stomp = server.stomp_client()
    stomp.receipt("SEND", "y", destination="a", AMQ_SCHEDULED_DELAY="1", **{k: str(v) for k, v in names.items()})
    openwire = server.openwire_client()
    openwire.publish("z", "a", properties={"AMQ_SCHEDULED_DELAY": 1, **names})
    pass_time(server, 2)
    queue = server.broker.queues["a"]
    assert (queue.message_count, queue.scheduled_count) == (3, 0)
    assert not any(each.message.has_property(name) for each in queue.live() for name in names)


def test_a_shorter_period_is_refused_by_name() -> None:
    server = server_with("")
    client = server.openwire_client()
    for schedule in (
        {"AMQ_SCHEDULED_PERIOD": 999, "AMQ_SCHEDULED_REPEAT": Int(-1)},
        {"AMQ_SCHEDULED_PERIOD": 10, "AMQ_SCHEDULED_REPEAT": Int(1), "AMQ_SCHEDULED_CRON": "* * * * *"},
    ):
        _, why = client.fails(client.message("1", "a", properties=dict(schedule)))
        assert why.startswith(f"AMQ_SCHEDULED_PERIOD is {schedule['AMQ_SCHEDULED_PERIOD']} ms")
        assert "1000 ms" in why and "schedulerPeriodMin" in why
    stomp = server.stomp_client()
    why = stomp.error("SEND", "1", destination="a", AMQ_SCHEDULED_PERIOD="1", AMQ_SCHEDULED_REPEAT="2")
    assert "AMQ_SCHEDULED_PERIOD is 1 ms" in why and "schedulerPeriodMin" in why
    client.publish("1", "a", properties={"AMQ_SCHEDULED_PERIOD": 1_000, "AMQ_SCHEDULED_REPEAT": Int(1)})
    # Without repeats a period is the delay of the only delivery.
    client.publish("2", "a", properties={"AMQ_SCHEDULED_PERIOD": 10})
    assert server.broker.queues["a"].scheduled_count == 2


def test_an_acceptor_may_allow_shorter_periods_or_want_longer_ones() -> None:
    schedule: dict[str, object] = {"AMQ_SCHEDULED_PERIOD": 100, "AMQ_SCHEDULED_REPEAT": Int(1)}
    client = server_with("schedulerPeriodMin=100").openwire_client()
    client.publish("1", "a", properties=dict(schedule))
    client = server_with("schedulerPeriodMin=60000").openwire_client()
    _, why = client.fails(client.message("1", "a", properties={**schedule, "AMQ_SCHEDULED_PERIOD": 59_999}))
    assert "60000 ms" in why


def test_a_bridge_of_another_broker_has_the_scheduler_of_its_acceptor() -> None:
    for options, waiting in (("schedulerSupport=false", 0), ("", 1)):
        server = server_with(options)
        client = server.openwire_client("bridge")
        client.send(BrokerInfo(broker_name="other", network_connection=True))
        client.publish("1", "a", properties={"AMQ_SCHEDULED_DELAY": 5_000})
        assert server.broker.queues["a"].scheduled_count == waiting


def test_bridges_that_the_node_dials_schedule_as_its_acceptors_do() -> None:
    server = server_with("")
    host = server.host
    assert host.bridge_scheduler.on
    off, on, core = (
        parse_acceptor(name, f"tcp://localhost:1?{options}")
        for name, options in (
            ("off", "schedulerSupport=false"), ("on", ""), ("core", "protocols=CORE"),
        )
    )  # fmt: skip
    host.follow_acceptors([off, on])
    assert host.bridge_scheduler.on
    host.follow_acceptors([off, core])
    assert not host.bridge_scheduler.on


def test_the_life_of_a_scheduled_message_never_overflows() -> None:
    """An expiration of 2^63-1 with a delay ended the node."""
    server = server_with("")
    client = server.openwire_client()
    for number, (expiration, timestamp) in enumerate(((2**63 - 1, 1), (2**63 - 1, -(2**63)), (5, 2**63 - 1))):
        client.publish(
            str(number), "a", properties={"AMQ_SCHEDULED_DELAY": 1_000}, expiration=expiration, timestamp=timestamp
        )
    client.publish(
        "3", "a", properties={"AMQ_SCHEDULED_PERIOD": 1_000, "AMQ_SCHEDULED_REPEAT": Int(2)}, expiration=2**63 - 1,
        timestamp=1,
    )  # fmt: skip
    for _ in range(4):
        pass_time(server, 1)
    client.consume("a")
    assert [text(each) for each in client.dispatches()] == ["0", "1", "3", "3", "3"]
    assert server.broker.queues["a"].message_count == 5, "the one that has expired is gone"
