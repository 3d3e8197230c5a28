"""Settings at the limits of their types: each is refused by name where it is read, or the node works with it."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

import pytest

from atalanta.config.acceptors import parse_acceptor
from atalanta.config.xml.reader import BadValue, convert
from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.query import BindingQuery, QueueQuery
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.uri import UriError
from tests.share import sampled
from tests.wire.extreme_numbers_rig import (
    EXTREMES,
    EveryProtocol,
    core_message,
    pass_time,
    read_by_all,
    server_with_everything,
)


def numbers_of(described: type[Any]) -> list[Field[Any]]:
    return [each for each in fields(described) if each.metadata and each.metadata["kind"] in ("int", "float")]


def accepted(metadata: Any) -> list[int | float]:
    """The extreme values that the reader of a file takes; it refuses the others with the value in the text."""
    found: list[int | float] = []
    for value in EXTREMES:
        try:
            found.append(convert(str(value), metadata))
        except BadValue as error:
            assert str(value) in str(error)
    return found


def work(server: EveryProtocol) -> None:
    """Queues made by use, messages that expire, are scheduled, refused and dead; a restart."""
    now_ms = server.now // 1_000_000
    core = server.login()
    for name in ("plain", "ring", "groups", "made", "dead"):
        for properties in ({}, {"_AMQ_GROUP_ID": "g"}, {"_AMQ_SCHED_DELIVERY": now_ms + 1}):
            for expiration in (0, now_ms + 1, 2**63 - 1):
                values: dict[str, object] = {"_AMQ_ROUTING_TYPE": 1, **properties}
                message = core_message(name, now_ms, "x", values, expiration=expiration)
                core.call(SendMessage(message, requires_response=True, correlation=1, sender_id=0))
    core.create_queue("own")
    core.publish("own", "x", wait=False)
    for name in ("plain", "never"):
        core.call(QueueQuery(name))
        core.call(BindingQuery(name))
    pass_time(server, 2)
    for name in ("plain", "ring", "made", "dead", "own"):
        if name in server.broker.queues:
            read_by_all(server, name)
    if not core.closed:
        server.lost(core.conn)
    for seconds in (2, 60, 4_000):
        pass_time(server, seconds)
        server.check_alive()
    validate(server.broker)
    server.restart()
    server.broker.start_timers(server.now)
    pass_time(server, 60)
    server.login().consume("plain")
    server.settle()


@pytest.mark.parametrize("entry", sampled(numbers_of(AddressSettings), 6), ids=lambda entry: str(entry.metadata["xml"]))
def test_an_address_setting(entry: Field[Any]) -> None:
    for value in accepted(entry.metadata):
        settings = AddressSettingsRepository()
        settings.add(
            "#",
            {"dead_letter_address": "DLQ", "expiry_address": "EXP", "redelivery_delay_ms": 1,
             "redelivery_collision_avoidance_factor": 0.5, entry.name: value},
        )  # fmt: skip
        server = server_with_everything(settings=settings)
        work(server)
        assert server.broker.addresses["plain"].routed >= 0


@pytest.mark.parametrize("entry", sampled(numbers_of(BrokerConfig), 6), ids=lambda entry: str(entry.metadata["xml"]))
def test_a_parameter_of_the_broker(entry: Field[Any]) -> None:
    for value in accepted(entry.metadata):
        config = BrokerConfig()
        setattr(config, entry.name, value)
        server = server_with_everything(config)
        server.broker.start_timers(server.now)
        work(server)


@pytest.mark.parametrize("entry", numbers_of(AcceptorConfig), ids=lambda entry: str(entry.metadata["xml"]))
def test_a_parameter_of_an_acceptor(entry: Field[Any]) -> None:
    name = entry.metadata["xml"]
    taken = 0
    for value in (*EXTREMES, 10**30):
        try:
            acceptor = parse_acceptor("a", f"tcp://localhost:61616?{name}={value}")
        except UriError as error:
            assert name in str(error) and str(value)[:10] in str(error)
            continue
        assert value <= 2**63 - 1
        taken += 1
        server = server_with_everything(acceptor=acceptor)
        server.login()
        server.stomp_client(heart_beat="1000,1000")
        server.openwire_client()
        pass_time(server, 1)
        server.check_alive()
    assert taken > 0


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("default-max-consumers", 2**31 - 1),
        ("default-consumers-before-dispatch", 2**31 - 1),
        ("default-group-buckets", 2**31 - 1),
        ("default-consumer-window-size", 2**31 - 1),
        ("max-size-bytes", 2**63 - 1),
        ("expiry-delay", 2**63 - 1),
        ("redelivery-delay", 2**63 - 1),
    ],
)
def test_the_largest_number_means_no_limit_and_one_more_is_refused(name: str, largest: int) -> None:
    [entry] = [each for each in fields(AddressSettings) if each.metadata["xml"] == name]
    assert convert(str(largest), entry.metadata) == largest
    with pytest.raises(BadValue, match=str(largest + 1)):
        convert(str(largest + 1), entry.metadata)


def test_an_expiry_delay_without_end_is_never() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"expiry_delay_ms": 2**63 - 1, "redelivery_delay_ms": 2**63 - 1, "max_redelivery_delay_ms": -1})
    server = server_with_everything(settings=settings)
    client = server.login()
    client.publish("plain", "x")
    server.settle()
    client.consume("plain")
    server.settle()
    [first] = client.deliveries()
    assert first.message.expiration == 2**63 - 1
    stomp = server.stomp_client()
    stomp.send("SEND", "y", destination="dead", persistent="true")
    stomp.subscribe("dead", ack="client-individual")
    [message] = stomp.messages()
    stomp.receipt("NACK", id=message["ack"])
    pass_time(server, 10_000)
    assert stomp.messages() == []
    assert server.broker.queues["dead"].scheduled_count == 1
    server.restart()
    server.broker.start_timers(server.now)
    pass_time(server, 10_000)
    assert server.broker.queues["dead"].scheduled_count == 1
