"""Every parameter of a cluster connection does what it says; its default stands in the first test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.kernel.config import QueueConfig
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.kernel.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.sim.world import SECOND
from atalanta.wire.core.config import ConnectorConfig
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_cluster import ClusterConnect, NodeAnnounce
from atalanta.wire.core.packets_connection import Ping
from atalanta.wire.core.packets_message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.packets_producer import RequestProducerCredits
from atalanta.wire.core.packets_session import CreateSession, CreateSessionV2
from atalanta.wire.core.packets_topology import ClusterTopology, SubscribeTopologyV2
from tests.cluster.rig import (
    RawPeer,
    Rig,
    cluster_of,
    count,
    linked,
    node_of,
    remote_consumers,
    waiting,
)
from tests.cluster.test_large import client as large_client

Change = Callable[[ClusterConnectionConfig], None]


def having(**values: Any) -> Change:
    def change(config: ClusterConnectionConfig) -> None:
        for name, value in values.items():
            assert hasattr(config, name)
            setattr(config, name, value)

    return change


def dials(rig: Rig, source: Host, part: str) -> list[tuple[int, str]]:
    """From now on: (ms since now, target) of what `source` dials under keys with `part`."""
    found: list[tuple[int, str]] = []
    start = rig.world.now
    dial = rig.network.dial

    def watched(machine: Any, key: str, host: str, port: int) -> None:
        if machine is source and part in key:
            found.append(((rig.world.now - start) // 1_000_000, host))
        dial(machine, key, host, port)

    rig.network.dial = watched  # type: ignore[method-assign, assignment]
    return found


def pauses(found: list[tuple[int, str]]) -> list[int]:
    """Between dials, in ms, without the way there and back."""
    times = [at for at, _ in found]
    return [round((b - a) / 10) * 10 for a, b in zip(times, times[1:], strict=False)]


def sent(rig: Rig, source: Host, target: Host, kind: type[Packet]) -> list[Packet]:
    return [packet for _, packet in rig.packets(source, target) if isinstance(packet, kind)]


def test_defaults() -> None:
    """The code's, where Artemis' schema says otherwise (fact sheet C5)."""
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
    for host in hosts:
        host.start()
    rig.formed()
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
def test_check_period_is_how_often_the_peer_is_asked(period_ms: int, expected: int) -> None:
    rig = Rig()
    host = rig.node(
        peers=[1], change=having(check_period_ms=period_ms, connection_ttl_ms=60_001)
    )
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
def test_connection_ttl_is_told_and_ends_a_silent_link(ttl_ms: int) -> None:
    rig = Rig()
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
def test_min_large_message_size_cuts_larger_bodies_into_segments() -> None:
    rig = Rig()
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


# -- call-timeout, call-failover-timeout ---------------------------------------------------------------
class Deaf(RawPeer):
    """Answers pings, and the login as long as it `hears`; never opens a session."""

    def keep(self) -> None:
        for conn in self.conns:
            if conn in self.framers:
                self.send(Ping(6_000), 0, conn)
        self.rig.world.at(SECOND, self.keep)

    def on_closed(self, conn: int, why: str) -> None:
        self.framers.pop(conn, None)
        super().on_closed(conn, why)


def test_call_timeout_ends_a_link_that_does_not_open() -> None:
    rig = Rig()
    peer = Deaf(rig, "n9")
    peer.listen()
    rig.node(peers=[9], change=having(call_timeout_ms=5_000)).start()
    peer.keep()
    rig.until(lambda: peer.got(ClusterConnect))
    start = rig.world.now
    rig.until(lambda: len(peer.got(ClusterConnect)) > 1)
    assert 5 <= (rig.world.now - start) / SECOND <= 8


@pytest.mark.parametrize(("timeout_ms", "dialled_again"), [(4_000, True), (-1, False)])
def test_call_failover_timeout_is_for_links_that_were_lost(
    timeout_ms: int, dialled_again: bool
) -> None:
    """n1 dies, and something that never answers takes its place; it pings, so it is not silent."""
    rig = Rig()
    hosts = rig.cluster(
        2, change=having(call_timeout_ms=60_000, call_failover_timeout_ms=timeout_ms)
    )
    hosts[1].crash()
    rig.run(1)
    peer = Deaf(rig, "n1")
    peer.listen()
    peer.keep()
    found = dials(rig, hosts[0], ".bridge.")
    rig.run(15)
    assert (len(found) > 1) == dialled_again


# -- retries ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("interval", "multiplier", "longest", "expected"),
    [
        (500, 1.0, 2_000, [500] * 6),  # the defaults
        (100, 2.0, 1_000, [200, 400, 800, 1_000, 1_000, 1_000]),
        (300, 1.5, 2_000, [450, 675, 1_010, 1_510, 2_000, 2_000]),
        (3_000, 1.0, 2_000, [2_000, 2_000]),  # max-retry-interval rules, as in BridgeImpl
        (200, 0.0, 2_000, [200, 200, 200]),  # no growth: the interval itself
    ],
)
def test_retry_interval_multiplier_and_max_retry_interval(
    interval: int, multiplier: float, longest: int, expected: list[int]
) -> None:
    rig = Rig()
    change = having(
        retry_interval_ms=interval,
        retry_interval_multiplier=multiplier,
        max_retry_interval_ms=longest,
    )
    hosts = rig.cluster(2, change=change)
    rig.run(3)
    found = dials(rig, hosts[1], ".bridge.")
    hosts[0].crash()
    rig.run(9)
    near = [abs(a - b) <= 20 for a, b in zip(pauses(found), expected, strict=False)]
    assert len(near) >= len(expected) - 2 and all(near), pauses(found)
    hosts[0].start()
    rig.formed()


def cut_off(rig: Rig, change: Change) -> list[Host]:
    """Three nodes; n1 and n2 hear of each other through n0, but cannot reach each other."""
    rig.network.block("n1", "n2")
    rig.network.block("n2", "n1")
    for peers in ([], [0], [0]):
        rig.node(peers=peers, change=change).start()
    rig.until(lambda: all(len(cluster_of(host).topology.members) == 3 for host in rig.hosts))
    return rig.hosts


def test_initial_connect_attempts() -> None:
    rig = Rig()
    hosts = cut_off(rig, having(initial_connect_attempts=3))
    found = dials(rig, hosts[1], ".bridge.")
    rig.run(30)
    assert [host for _, host in found].count("n2") <= 4
    assert rig.events("n1 cluster_gave_up node=node-2")
    assert sorted(cluster_of(hosts[1]).peers) == ["node-0"]
    assert sorted(cluster_of(hosts[0]).peers) == ["node-1", "node-2"]
    rig.network.heal()
    hosts[2].crash()
    rig.run(7)
    hosts[2].start()  # news of it: a new beginning
    rig.formed()


def test_without_a_limit_initial_attempts_go_on() -> None:
    rig = Rig()
    hosts = cut_off(rig, having())
    rig.run(30)
    assert not rig.events("cluster_gave_up")
    rig.network.heal()
    rig.formed()
    assert len(hosts) == 3


def test_after_reconnect_attempts_the_node_is_out_and_gets_nothing() -> None:
    """Neither what is sent now nor what is redistributed; what was on its way waits for its return."""
    rig = Rig()
    hosts = rig.cluster(2, change=having(reconnect_attempts=3, retry_interval_ms=100), delay_ms=0)
    consumer = rig.client(hosts[1])
    consumer.consume("orders")
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    found = dials(rig, hosts[0], ".bridge.")
    hosts[1].crash()
    consumer.kill()
    rig.run(8)
    assert len(found) == 3
    assert rig.events("n0 cluster_gave_up node=node-1")
    assert cluster_of(hosts[0]).peers == {}
    assert node_of(hosts[0]).broker.addresses["orders"].remotes() == []
    producer = rig.client(hosts[0])
    for number in range(4):
        producer.publish("orders", b"%d" % number, ANYCAST)
    rig.until(lambda: len(producer.answers) == 4)
    assert count(hosts[0], "orders") == 4 and waiting(hosts[0], "node-1") == 0
    hosts[1].start()
    rig.formed()
    consumer.start()
    rig.until(lambda: consumer.ready)
    consumer.consume("orders")
    rig.until(lambda: len(consumer.bodies) == 4)


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
def test_confirmation_window_size_is_told() -> None:
    rig = Rig()
    hosts = rig.cluster(2, change=having(confirmation_window_bytes=12_345))
    windows = [
        packet.confirmation_window
        for packet in sent(rig, hosts[0], hosts[1], CreateSession)
        if isinstance(packet, CreateSession)
    ]
    assert windows == [12_345, 12_345]


@pytest.mark.parametrize("window", [20_000, 1 << 20, -1])
def test_producer_window_size_is_how_much_the_peer_lets_us_send(window: int) -> None:
    rig = Rig()
    hosts = rig.cluster(2, change=having(producer_window_bytes=window))
    consumer = rig.client(hosts[1])
    consumer.consume("orders")
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    producer = rig.client(hosts[0])
    for _ in range(20):
        producer.publish("orders", b"x" * 5_000, ANYCAST)
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


# -- announcements ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("attempts", "interval_ms"), [(2, 1_000), (4, 500)])
def test_notification_attempts_and_interval(attempts: int, interval_ms: int) -> None:
    """A listener hears of the node at once, and so many times more, each with a fresh event id."""
    rig = Rig()
    change = having(notification_attempts=attempts, notification_interval_ms=interval_ms)
    host = rig.node(peers=[1], change=change)
    host.start()
    peer = RawPeer(rig, "peer")
    peer.dial(host)
    peer.send(ClusterConnect("peer", "secret of the cluster"), 3)
    settings = cluster_of(host).settings
    peer.send(ClusterConnect(settings.cluster_user, settings.cluster_password), 3)
    peer.send(SubscribeTopologyV2(False, 136), 0)
    rig.run(10)
    heard = [packet for packet in peer.got(ClusterTopology) if isinstance(packet, ClusterTopology)]
    assert len(heard) == 1 + attempts
    ids = [packet.event_id for packet in heard]
    assert [b - a for a, b in zip(ids, ids[1:], strict=False)] == [interval_ms] * attempts


# -- topology-scanner-attempts ------------------------------------------------------------------------------
@pytest.mark.parametrize(("attempts", "found"), [(3, 3), (0, 1), (-1, 40)])
def test_topology_scanner_attempts(attempts: int, found: int) -> None:
    """n0 reaches n1; n9 of its list is not there. With n1 alone it is content after so many attempts."""
    rig = Rig()
    host = rig.node(peers=[1, 9], change=having(topology_scanner_attempts=attempts))
    seen = dials(rig, host, ".locate.")
    host.start()
    rig.node(peers=[]).start()
    rig.run(25)
    tries = [target for _, target in seen].count("n9")
    assert found <= tries <= found + 2 if attempts >= 0 else tries >= found
    assert bool(rig.events("n0 cluster_topology_incomplete node=n9")) == (attempts >= 0)


def test_a_scan_begins_again_with_news_and_without_anybody_it_goes_on_for_ever() -> None:
    rig = Rig()
    host = rig.node(peers=[1, 2], change=having(topology_scanner_attempts=2))
    seed = rig.node(peers=[])
    late = rig.node(peers=[])  # it knows nobody: n0 must find it
    host.start()
    rig.run(30)
    seed.start()
    rig.until(lambda: linked(host) == 1)
    rig.run(10)
    assert rig.events("n0 cluster_topology_incomplete node=n2")
    late.start()
    rig.run(10)
    assert sorted(cluster_of(host).topology.members) == ["node-0", "node-1"]
    seed.crash()
    rig.run(10)
    seed.start()
    rig.until(lambda: len(cluster_of(host).topology.members) == 3)


# -- client-id ------------------------------------------------------------------------------------------------
def test_client_id_is_shown_at_the_peer() -> None:
    for name in (None, "east-links"):
        rig = Rig()
        hosts = rig.cluster(2, change=having(client_id=name))
        told = [
            packet.client_id
            for packet in sent(rig, hosts[0], hosts[1], CreateSessionV2)
            if isinstance(packet, CreateSessionV2)
        ]
        assert told == ([None] if name is None else [name, name])
        clients = [
            session.client.client_id for session in node_of(hosts[1]).broker.clients.sessions()
        ]
        assert (name in clients) or name is None


# -- cluster-user, cluster-password -----------------------------------------------------------------------------
def test_the_default_credentials_are_warned_of_at_every_start() -> None:
    def default(settings: ClusterSettings) -> None:
        settings.cluster_user = DEFAULT_CLUSTER_USER
        settings.cluster_password = DEFAULT_CLUSTER_PASSWORD

    rig = Rig()
    host = rig.node(whole=default)
    other = rig.node()
    host.start()
    host.stop()
    host.start()
    other.start()
    assert len(rig.events("n0 cluster_default_password")) == 2
    assert not rig.events("n1 cluster_default_password")


# -- allow-direct-connections-only --------------------------------------------------------------------------------
@pytest.mark.parametrize("direct", [False, True])
def test_members_that_are_learnt_get_a_link_unless_only_direct_ones_may(direct: bool) -> None:
    rig = Rig()
    for peers in ([1], [2], []):
        rig.node(peers=peers, change=having(allow_direct_connections_only=direct)).start()
    rig.run(5)
    peers_of = [sorted(cluster_of(host).peers) for host in rig.hosts]
    assert peers_of[0] == (["node-1"] if direct else ["node-1", "node-2"])
    # Nobody at n2's is told by it: it hears of who announces himself there.
    known = [len(cluster_of(host).topology.members) for host in rig.hosts]
    assert known == [3, 3, 2 if direct else 3]


def test_a_connection_without_connectors_only_accepts() -> None:
    def nobody(config: ClusterConnectionConfig) -> None:
        config.static_connectors = []

    rig = Rig()
    accepting = rig.node(change=nobody)
    dialling = rig.node(peers=[0])
    accepting.start()
    dialling.start()
    rig.run(5)
    assert cluster_of(accepting).peers == {}
    assert sorted(cluster_of(accepting).topology.members) == ["node-0", "node-1"]
    assert linked(dialling) == 1
    consumer = rig.client(accepting)
    consumer.consume("orders")
    rig.run(1)
    producer = rig.client(dialling)
    producer.publish("orders", b"x", ANYCAST)
    rig.until(lambda: consumer.bodies == [b"x"])


def test_queues_are_told_by_their_filters_as_they_change() -> None:
    """BINDING_UPDATED, which a real node sends when a queue's filter is changed."""
    rig = Rig()
    queues: list[QueueConfig] = [queue("orders", "orders", ANYCAST)]
    hosts = [rig.node(queues=queues) for _ in range(2)]
    for host in hosts:
        host.start()
    rig.formed()
    record = cluster_of(hosts[0]).peers["node-1"]
    notifications = node_of(hosts[1]).notifications
    message = notifications.message(
        rig.world.now,
        "BINDING_UPDATED",
        {"_AMQ_ClusterName": "ordersnode-1", "_AMQ_FilterString": "colour = 'red'"},
    )
    record.bindings.on_notification(rig.world.now, message)
    assert record.bindings.bindings["ordersnode-1"].filter_text == "colour = 'red'"
    message = notifications.message(
        rig.world.now,
        "BINDING_UPDATED",
        {"_AMQ_ClusterName": "ordersnode-1", "_AMQ_FilterString": None},
    )
    record.bindings.on_notification(rig.world.now, message)
    assert record.bindings.bindings["ordersnode-1"].filter is None


