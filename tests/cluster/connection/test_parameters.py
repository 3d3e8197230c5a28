"""Every parameter of a cluster connection does what it says; its default stands in the first test."""

from __future__ import annotations

import pytest

from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.cluster import NodeAnnounce
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.packets.producer import RequestProducerCredits
from atalanta.wire.core.packets.session import CreateSession
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import Rig, cluster_of, count, linked, remote_consumers, waiting
from tests.cluster.links.large_client import client as large_client
from tests.cluster.parameters import having, sent


def test_defaults() -> None:
    """The defaults are those of Artemis' code, where its schema says otherwise."""
    found = ClusterConnectionConfig()
    assert (found.address, found.max_hops, found.message_load_balancing) == ("", 1, "ON_DEMAND")
    assert (found.check_period_ms, found.connection_ttl_ms) == (30_000, 60_000)
    assert (found.call_timeout_ms, found.call_failover_timeout_ms) == (30_000, -1)
    assert (found.retry_interval_ms, found.retry_interval_multiplier) == (500, 1.0)
    assert found.max_retry_interval_ms == 2_000
    assert (found.initial_connect_attempts, found.reconnect_attempts) == (-1, -1)
    assert (found.use_duplicate_detection, found.forward_when_no_consumers) == (True, None)
    assert (found.min_large_message_bytes, found.confirmation_window_bytes) == (102_400, 10 << 20)
    assert found.producer_window_bytes == 1 << 20
    assert (found.notification_interval_ms, found.notification_attempts) == (1_000, 2)
    assert (found.topology_scanner_attempts, found.client_id) == (30, None)
    assert not found.allow_direct_connections_only


# -- address ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("address", "known"),
    [
        ("", ["eu.de", "eu.uk", "e_.x", "us.ny"]),
        ("eu", ["eu.de", "eu.uk"]),
        ("eu.uk,us", ["eu.uk", "us.ny"]),
        ("!eu", ["e_.x", "us.ny"]),
        ("eu,!eu.uk", ["eu.de"]),
        ("!eu.uk,eu", ["eu.de"]),
        ("eu,!eu", []),
        ("eu.*", []),  # no wildcards
        ("eu.#", []),
        ("e_", ["e_.x"]),  # of SQL neither
        ("%", []),
        ("o'clock", []),
        ("!e_", ["eu.de", "eu.uk", "us.ny"]),
    ],
)
def test_address_says_whose_bindings_come_and_go(address: str, known: list[str]) -> None:
    """Those that were there before (sendQueueInfoToQueue) and those that come later (the filter)."""
    names = ["eu.de", "eu.uk", "e_.x", "us.ny"]
    early = [queue(name, name, ANYCAST) for name in names]
    rig = Rig()
    hosts = [rig.node(queues=early, change=having(address=address)) for _ in range(2)]
    rig.form(*hosts)
    client = rig.client(hosts[1])
    for name in names:
        client.create(name + ".later")
    rig.run(1)
    bindings = cluster_of(hosts[0]).peers["node-1"].bindings.bindings
    told = sorted(name.removesuffix("node-1") for name in bindings)
    assert told == sorted([*known, *(name + ".later" for name in known)])


# -- connector-ref ------------------------------------------------------------------------------------
def test_connector_ref_is_what_others_are_told() -> None:
    def other(settings: ClusterSettings) -> None:
        settings.connectors["far"] = ConnectorConfig("far", "n0.example", 7_000)
        settings.cluster_connections[0].connector = "far"

    rig = Rig()
    host = rig.node(peers=[1], whole=other)
    target = rig.node(peers=[])
    host.start()
    target.start()
    rig.until(lambda: sent(rig, host, target, NodeAnnounce))
    (announce, *_) = sent(rig, host, target, NodeAnnounce)
    assert isinstance(announce, NodeAnnounce) and announce.connector is not None
    assert (announce.connector.host, announce.connector.port) == ("n0.example", 7_000)
    topology = cluster_of(target).topology.members["node-0"]
    assert topology.primary is not None and topology.primary.host == "n0.example"


# -- check-period, connection-ttl ---------------------------------------------------------------------
@pytest.mark.parametrize(("period_ms", "expected"), [(4_000, 14), (20_000, 2)])
def test_check_period_is_how_often_the_peer_is_asked(rig: Rig, period_ms: int, expected: int) -> None:
    host = rig.node(peers=[1], change=having(check_period_ms=period_ms, connection_ttl_ms=60_001))
    other = rig.node(peers=[])
    host.start()
    other.start()
    rig.until(lambda: linked(host) == 1)
    rig.run(60)
    pings = [
        packet
        for packet in sent(rig, host, other, Ping)
        if isinstance(packet, Ping) and packet.connection_ttl_ms == 60_001  # no echo
    ]
    links = 2  # a locator and a bridge; each pings once when it opens
    assert expected <= len(pings) / links - 1 <= expected + 1


@pytest.mark.parametrize("ttl_ms", [3_000, 20_000])
def test_connection_ttl_is_told_and_ends_a_silent_link(rig: Rig, ttl_ms: int) -> None:
    hosts = rig.cluster(2, change=having(connection_ttl_ms=ttl_ms))
    told = {
        packet.connection_ttl_ms
        for packet in sent(rig, hosts[0], hosts[1], Ping)
        if isinstance(packet, Ping)
    }
    assert ttl_ms in told
    start = rig.world.now
    rig.network.block("n1", "n0")
    rig.until(lambda: linked(hosts[0]) == 0, 60)
    took_ms = (rig.world.now - start) / 1_000_000
    assert ttl_ms * 0.6 <= took_ms <= ttl_ms + 3_000  # looked at every 2 s; silent a little before


# -- min-large-message-size ----------------------------------------------------------------------------
def test_min_large_message_size_cuts_larger_bodies_into_segments(rig: Rig) -> None:
    hosts = rig.cluster(2, change=having(min_large_message_bytes=1_000))
    consumer = large_client(rig, hosts[1], "orders")
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    producer = rig.client(hosts[0])
    bodies = [b"a" * 1_000, b"b" * 1_001, b"c" * 250_000, b""]
    for body in bodies:
        producer.publish("orders", body, ANYCAST, number=len(body))
    rig.until(lambda: len(consumer.bodies) == len(bodies))
    assert consumer.bodies == bodies
    assert len(sent(rig, hosts[0], hosts[1], SendLargeMessage)) == 2
    pieces = [
        len(packet.body)
        for packet in sent(rig, hosts[0], hosts[1], SendContinuation)
        if isinstance(packet, SendContinuation)
    ]
    assert pieces == [1_000, 1, *[1_000] * 250]
    rig.until(lambda: waiting(hosts[0], "node-1") == 0)
    assert [count(host, "orders") for host in hosts] == [0, 0]
    rig.until(lambda: not hosts[1].large.contents)


# -- use-duplicate-detection ----------------------------------------------------------------------------
def test_without_duplicate_detection_one_message_at_a_time_is_on_its_way() -> None:
    for sure, at_once in ((True, 5), (False, 1)):
        rig = Rig()
        hosts = rig.cluster(2, change=having(use_duplicate_detection=sure))
        rig.client(hosts[1]).consume("orders")
        rig.until(lambda rig=rig, hosts=hosts: remote_consumers(hosts[0], hosts[1], "orders") == 1)  # type: ignore[misc]
        producer = rig.client(hosts[0])
        rig.network.block("n1", "n0")  # no answers
        for number in range(5):
            producer.publish("orders", b"%d" % number, ANYCAST)
        rig.run(1)
        forwards = [
            packet
            for packet in sent(rig, hosts[0], hosts[1], SendMessage)
            if isinstance(packet, SendMessage) and packet.message.address == "orders"
        ]
        assert len(forwards) <= at_once
        assert all(("_AMQ_BRIDGE_DUP" in one.message.properties) == sure for one in forwards)


# -- windows --------------------------------------------------------------------------------------------
def test_confirmation_window_size_is_told(rig: Rig) -> None:
    hosts = rig.cluster(2, change=having(confirmation_window_bytes=12_345))
    windows = [
        packet.confirmation_window
        for packet in sent(rig, hosts[0], hosts[1], CreateSession)
        if isinstance(packet, CreateSession)
    ]
    assert windows == [12_345, 12_345]


@pytest.mark.parametrize("window", [20_000, 1 << 20, -1])
def test_producer_window_size_is_how_much_the_peer_lets_us_send(rig: Rig, window: int) -> None:
    hosts = rig.cluster(2, change=having(producer_window_bytes=window))
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    rig.sender(hosts[0], "orders", [b"x" * 5_000] * 20, ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 20)
    asked = [
        packet.credits
        for packet in sent(rig, hosts[0], hosts[1], RequestProducerCredits)
        if isinstance(packet, RequestProducerCredits) and packet.address == "orders"
    ]
    if window < 0:
        assert asked == []
    else:
        assert asked and max(asked) <= window
