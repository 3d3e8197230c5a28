"""Bounds of what a client may say: what others are told of it can be encoded, and it itself can be answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.properties import Int
from atalanta.wire.openwire.commands.brokers import (
    BrokerInfo,
    BrokerSubscriptionInfo,
    NetworkBridgeFilter,
)
from atalanta.wire.openwire.commands.connections import WireFormatInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.transactions import TransactionInfo, XATransactionId
from atalanta.wire.openwire.encoding.primitives import decode_map, encode_map
from atalanta.wire.openwire.encoding.structure import Command
from atalanta.wire.openwire.options import HANDSHAKE, MAGIC, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.kernel.broker_rig import SECOND
from tests.wire.openwire.server.openwire_rig import (
    BEGIN,
    END,
    OPTIONS,
    PREPARE,
    RECOVER,
    OpenWireClient,
    OpenWireServer,
)

# What another connection's encoding in tight form cannot take; loose, this side reads it.
LONG = "x" * 60_000
LOOSE = replace(OPTIONS, tight=False)
LONG_NUMBERS = (0, 1, -1, 89, 1 << 31, (1 << 63) - 1, -(1 << 63))
NUMBERS = ("MaxFrameSize", "CacheSize", "MaxInactivityDuration", "MaxInactivityDurationInitalDelay")


# -- what a peer says about itself ----------------------------------------------------------------
def greeting(values: dict[str, object], version: int = 12) -> bytes:
    """A WireFormatInfo with other values."""
    usual = decode_map(info_of(OPTIONS).marshalled_properties or b"", "options", 64, 0)
    return WireFormat(HANDSHAKE).encode(WireFormatInfo(MAGIC, version, encode_map("options", usual | values)))


def stranger(server: OpenWireServer, first: bytes) -> OpenWireClient:
    client = OpenWireClient(server, "x")
    client.feed(first)
    server.settle()
    server.turn()
    return client


@pytest.mark.parametrize("size", [1, 50, 89, 1_023])
def test_a_peer_that_takes_no_answer_is_refused_before_its_login(server: OpenWireServer, size: int) -> None:
    client = stranger(server, greeting({"MaxFrameSize": size}))
    assert client.closed is not None and f"MaxFrameSize at byte 0: {size} bytes" in client.closed
    assert server.openwire_client("b").closed is None


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", LONG_NUMBERS)
def test_whatever_numbers_a_peer_announces_it_is_served_or_refused(
    server: OpenWireServer, name: str, value: int
) -> None:
    known: object = Int(value) if name == "CacheSize" and abs(value) < 1 << 31 else value
    client = stranger(server, greeting({name: known}))
    if client.closed is None:
        client.output()
        client.succeeds(client.login_info("c", "admin", "admin"))
    else:
        assert name in client.closed
    assert server.openwire_client("b").closed is None


@pytest.mark.parametrize("version", [-(1 << 31), -1, 0, 13, (1 << 31) - 1])
def test_whatever_version_a_peer_announces_it_is_served(server: OpenWireServer, version: int) -> None:
    client = stranger(server, greeting({}, version))
    client.output()
    client.succeeds(client.login_info("c", "admin", "admin"))


def test_an_impatient_peer_gets_a_few_signs_of_life_in_a_second(server: OpenWireServer) -> None:
    stranger(server, greeting({"MaxInactivityDuration": 1, "MaxInactivityDurationInitalDelay": 1}))
    beats = 0
    until = server.now + SECOND
    while server.now < until:
        due = server.timers.due["wire.openwire.alive"]
        server.now = due
        server.beat()
        beats += 1
    assert 1 < beats <= 21


# -- what others are told of a client -------------------------------------------------------------
def watcher_of(server: OpenWireServer) -> OpenWireClient:
    """A client with the tight encoding that watches all advisories."""
    watcher = server.openwire_client("watcher")
    watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.>"))
    watcher.output()
    return watcher


def loose_client(server: OpenWireServer, client_id: str = "loose") -> OpenWireClient:
    client = OpenWireClient(server, f"{client_id}-{server.last_conn}", LOOSE)
    client.greet()
    client.succeeds(client.login_info(client_id, "admin", "admin"))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    return client


def consumer(**more: object) -> ConsumerInfo:
    info = ConsumerInfo(ConsumerId("ID:x", 1, 1), destination=ActiveMQQueue("a"), prefetch_size=10)
    for name, value in more.items():
        setattr(info, name, value)
    return info


HOSTILE: dict[str, Command] = {
    "selector": consumer(selector=f"a = '{LONG}'"),
    "consumer id": consumer(consumer_id=ConsumerId(LONG, 1, 1)),
    "client id": consumer(client_id=LONG),
    "subscription": consumer(destination=ActiveMQTopic("t"), subscription_name=LONG),
    "composite": consumer(destination=ActiveMQQueue(",".join([f"{number:0>600}" for number in range(99)]))),
    "path": consumer(broker_path=[BrokerId(LONG)]),
    "long path": consumer(broker_path=[BrokerId(f"{number}") for number in range(3_000)]),
    "network path": consumer(network_consumer_path=[ConsumerId(LONG, 1, 1)]),
    "filter": consumer(additional_predicate=NetworkBridgeFilter(1, BrokerId(LONG), 1, 1)),
    "producer id": ProducerInfo(ProducerId(LONG, 1, 1), ActiveMQQueue("a")),
    "producer's path": ProducerInfo(ProducerId("ID:x", 1, 1), ActiveMQQueue("a"), [BrokerId(LONG)]),
    "producer's destination": ProducerInfo(ProducerId("ID:x", 1, 1), ActiveMQQueue(LONG)),
    "temporary topic": DestinationInfo(ConnectionId("ID:x"), ActiveMQTempTopic(LONG), 0),
    "destination's path": DestinationInfo(ConnectionId("ID:x"), ActiveMQTempTopic("ID:x:1"), 0, 0, [BrokerId(LONG)]),
    "connection id": DestinationInfo(ConnectionId(LONG), ActiveMQTempTopic("ID:x:1"), 0),
    "session": SessionInfo(SessionId(LONG, 1)),
    "removed subscription": RemoveSubscriptionInfo(ConnectionId("ID:x"), "s", LONG),
}  # fmt: skip


@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_text_that_others_cannot_be_told_is_refused(server: OpenWireServer, name: str) -> None:
    watcher, client = watcher_of(server), loose_client(server)
    watcher.output()
    _, why = client.fails(HOSTILE[name])
    assert len(why) < 400
    assert watcher.output() == [] and watcher.closed is None and client.closed is None
    late = server.openwire_client("late")
    late.consume(ActiveMQTopic("ActiveMQ.Advisory.>"))
    assert late.closed is None
    client.succeeds(consumer())
    found = [each.message.data_structure for each in watcher.of_kind(MessageDispatch) if each.message is not None]
    assert [each.selector for each in found if isinstance(each, ConsumerInfo)] == [None]
    assert "commands_left_out" not in server.trace.counters


@pytest.mark.parametrize("field", ["connection_id", "user_name", "client_id"])
def test_a_login_with_a_text_that_others_cannot_be_told_is_refused(server: OpenWireServer, field: str) -> None:
    watcher = watcher_of(server)
    client = OpenWireClient(server, "x", LOOSE)
    client.greet()
    info = client.login_info("c", "admin", "admin")
    setattr(info, field, ConnectionId(LONG) if field == "connection_id" else LONG)
    _, why = client.fails(info)
    assert "at most 1024" in why
    assert watcher.output() == [] and watcher.closed is None


def test_a_long_selector_of_a_core_client_is_told_as_demand_for_everything(server: OpenWireServer) -> None:
    watcher = watcher_of(server)
    core = server.login("admin")
    core.create_queue("a")
    core.consume("a", selector=f"a = '{LONG}'")
    core.create_queue("c.s", "t", 0, filter=f"a = '{LONG}'")
    found = [each.message.data_structure for each in watcher.of_kind(MessageDispatch) if each.message is not None]
    (info,) = [each for each in found if isinstance(each, ConsumerInfo)]
    assert info.selector is None and watcher.closed is None
    bridge = bridge_of(server, "syncDurableSubs=true\n")
    bridge.succeeds(bridge.login_info("bridge", "admin", "admin"))
    (listed,) = bridge.of_kind(BrokerSubscriptionInfo)
    assert [each.selector for each in listed.subscription_infos or []] == [None]


def bridge_of(server: OpenWireServer, properties: str) -> OpenWireClient:
    """A connection that has said that it is the bridge of another broker."""
    client = OpenWireClient(server, "bridge")
    client.greet()
    client.send(
        BrokerInfo(
            BrokerId("other"), "tcp://other:1", [], "other", network_connection=True,
            duplex_connection="syncDurableSubs" not in properties, network_properties=properties,
        )  # fmt: skip
    )
    return client


@pytest.mark.parametrize(
    "name", ["prefetchSize", "advisoryPrefetchSize", "advisoryAckPercentage", "consumerPriorityBase"]
)
@pytest.mark.parametrize("value", [1 << 31, 9_999_999_999, -(1 << 31) - 1])
def test_a_number_of_another_brokers_bridge_has_32_bits(server: OpenWireServer, name: str, value: int) -> None:
    bridge = bridge_of(server, f"{name}={value}\n")
    assert bridge.closed is not None and f"{name}={value}" in bridge.closed
    assert server.openwire_client("b").closed is None


@pytest.mark.parametrize("field", ["broker_id", "broker_name", "broker_url"])
def test_a_text_of_another_brokers_introduction_is_bounded(server: OpenWireServer, field: str) -> None:
    client = OpenWireClient(server, "bridge", LOOSE)
    client.greet()
    info = BrokerInfo(BrokerId("other"), "tcp://other:1", [], "other", network_connection=True)
    setattr(info, field, BrokerId(LONG) if field == "broker_id" else LONG)
    client.send(info)
    assert client.closed is not None and "at most 1024" in client.closed


def test_a_filter_of_another_brokers_bridge_that_is_too_long_is_not_asked_for(server: OpenWireServer) -> None:
    """All consumers are heard of instead, and the bridge takes what is included."""
    bridge = bridge_of(server, f"destinationFilter={'f' * 32_740}\n")
    bridge.send(bridge.login_info("bridge", "admin", "admin"))
    server.verify()
    server.settle()
    (asked,) = bridge.of_kind(ConsumerInfo)
    assert bridge.closed is None and asked.destination is not None
    assert len(asked.destination.physical_name or "") < 200


def test_a_bridge_whose_own_commands_cannot_be_encoded_ends_alone(server: OpenWireServer) -> None:
    server.trace.expects_failures = True
    bridge = bridge_of(server, f"clientIdToken={'t' * 20_000}\n")
    bridge.send(bridge.login_info("bridge", "admin", "admin"))
    server.verify()
    server.settle()
    assert bridge.closed is not None and "its log has an event command_failed" in bridge.closed
    (fields,) = [fields for name, fields in server.trace.events if name == "command_failed"]
    assert (fields["protocol"], fields["command"]) == ("OPENWIRE", "ConnectionInfo")
    assert str(fields["place"]).startswith("wire/openwire/encoding/writer.py:")
    assert server.openwire_client("b").closed is None


# -- what cannot be encoded all the same ----------------------------------------------------------
def small_client(server: OpenWireServer) -> OpenWireClient:
    """A client that takes frames of 1,024 bytes."""
    client = OpenWireClient(server, "small")
    client.feed(greeting({"MaxFrameSize": 1_024}))
    client.output()
    client.succeeds(client.login_info("small", "admin", "admin"))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    return client


def test_an_advisory_that_cannot_be_encoded_is_left_out_and_named_once(server: OpenWireServer) -> None:
    watcher, client = small_client(server), server.openwire_client("c")
    watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.Consumer.>"))
    for number in range(3):
        client.consume(f"q{number}", selector=f"a = '{'x' * 1_000}'")
    client.consume("short")
    found = [each.message.destination for each in watcher.of_kind(MessageDispatch) if each.message is not None]
    assert [each.physical_name for each in found if each is not None] == ["ActiveMQ.Advisory.Consumer.Queue.short"]
    assert watcher.closed is None and client.closed is None
    assert server.trace.counters["commands_left_out"] == 3
    (fields,) = [fields for name, fields in server.trace.events if name == "command_left_out"]
    assert (fields["protocol"], fields["command"]) == ("OPENWIRE", "advisory with ConsumerInfo")
    assert "at most 1024 are accepted" in str(fields["why"]) and "wire_format.py" in str(fields["place"])


def test_an_answer_that_cannot_be_encoded_ends_its_connection_only(server: OpenWireServer) -> None:
    client, small = server.openwire_client("c"), small_client(server)
    for number in range(30):
        xid = XATransactionId(1, b"%060d" % number, b"b")
        client.succeeds(TransactionInfo(ConnectionId(client.id), xid, BEGIN))
        client.publish("1", "a", transaction_id=xid)
        for step in (END, PREPARE):
            client.succeeds(TransactionInfo(ConnectionId(client.id), xid, step))
    server.trace.expects_failures = True
    small.send(TransactionInfo(ConnectionId(small.id), None, RECOVER), True)
    server.settle()
    assert small.closed is not None and "DataArrayResponse" in small.closed
    assert client.closed is None
    client.publish("1", "a")


def test_a_message_that_cannot_be_encoded_is_set_aside_and_the_next_one_comes() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"dead_letter_address": "DLQ"})
    server = OpenWireServer(settings=settings)
    client, small = server.openwire_client("c"), small_client(server)
    for name in ("a", "DLQ"):
        client.consume(name, selector="x = 1")
    small.consume("a")
    client.publish("x" * 2_000, "a")
    client.publish("short", "a")
    assert [len(each or "") for each in small.texts()] == [5]
    assert small.closed is None and client.closed is None
    client.consume("DLQ")
    assert [len(each or "") for each in client.texts()] == [2_000]
