"""A cluster connection announces itself, finds members, and makes links to them."""

from __future__ import annotations

import pytest

from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.security.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.kernel.settings.broker_config import QueueConfig
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.cluster import ClusterConnect
from atalanta.wire.core.packets.session import CreateSessionV2
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, linked, node_of
from tests.cluster.parameters import dials, having, sent


# -- announcements ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("attempts", "interval_ms"), [(2, 1_000), (4, 500)])
def test_notification_attempts_and_interval(rig: Rig, attempts: int, interval_ms: int) -> None:
    """A listener hears of the node at once, and so many times more, each with a fresh event id."""
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
def test_topology_scanner_attempts(rig: Rig, attempts: int, found: int) -> None:
    """n0 reaches n1; n9 of its list is not there. With n1 alone it is content after so many attempts."""
    host = rig.node(peers=[1, 9], change=having(topology_scanner_attempts=attempts))
    seen = dials(rig, host, ".locate.")
    host.start()
    rig.node(peers=[]).start()
    rig.run(25)
    tries = [target for _, target in seen].count("n9")
    assert found <= tries <= found + 2 if attempts >= 0 else tries >= found
    assert bool(rig.events("n0 cluster_topology_incomplete node=n9")) == (attempts >= 0)


def test_a_scan_begins_again_with_news_and_without_anybody_it_goes_on_for_ever(rig: Rig) -> None:
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
def test_members_that_are_learnt_get_a_link_unless_only_direct_ones_may(rig: Rig, direct: bool) -> None:
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
    consumer = rig.consuming(accepting)
    rig.run(1)
    producer = rig.client(dialling)
    producer.publish("orders", b"x", ANYCAST)
    rig.until(lambda: consumer.bodies == [b"x"])


def test_queues_are_told_by_their_filters_as_they_change(rig: Rig) -> None:
    """BINDING_UPDATED, which a real node sends when a queue's filter is changed."""
    queues: list[QueueConfig] = [queue("orders", "orders", ANYCAST)]
    hosts = [rig.node(queues=queues) for _ in range(2)]
    rig.form(*hosts)
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
