"""Real Artemis nodes that have logged in here: after a restart they get the password again, and nobody else does."""

from __future__ import annotations

import pytest

from atalanta.cluster.connection.cluster_connection import LOGINS
from atalanta.cluster.connection_routers.config import PoolConfig, RouterConfig
from atalanta.cluster.links.proven_peers import ProvenPeers
from atalanta.cluster.native_config import OwnSettings
from atalanta.kernel.security.cluster_proof import CHALLENGE_USER, DIAL, ClusterNonces
from atalanta.sim.host import Host
from atalanta.sim.nodes import CLUSTER_PASSWORD, CLUSTER_USER, PORT
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.cluster import (
    ClusterChallenge,
    ClusterConnect,
    ClusterConnectReply,
    ClusterProof,
    NodeAnnounce,
)
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, node_of
from tests.cluster.connection_routers.router_rig import routed

DAY = 86_400


def connector_of(name: str, secure: bool = False) -> TransportConfiguration:
    made = TransportConfiguration.tcp("netty", name, PORT)
    if secure:
        made.put("sslEnabled", "true")
    return made


def log_in(rig: Rig, host: Host, secure: bool = False) -> RawPeer:
    """A real Artemis logs in at the node, and leaves the cluster."""
    peer = RawPeer(rig, "bridge")
    peer.log_in_as_member(host)
    announcement = NodeAnnounce(node_id="artemis", event_id=1, connector=connector_of("artemis", secure))
    peer.send(announcement, CLUSTER_CHANNEL)
    rig.until(lambda: "artemis" in cluster_of(host).topology.members)
    return peer


def restart(rig: Rig, host: Host, down_seconds: int = 1) -> None:
    host.stop()
    rig.until(lambda: not host.up)
    rig.run(down_seconds)
    host.start()
    rig.run(1)


def answering(rig: Rig, host: Host, node_id: str, name: str, secure: bool = False) -> list[str]:
    """A machine that discovery names and that answers as a real Artemis; the passwords it got in its first login."""
    found = RawPeer(rig, name)
    found.listen()
    data = encode_announcement(Announcement(node_id, "unique", [connector_of(name, secure)]))
    node_of(host).on_datagram(rig.world.now, "discovery/group", data)
    rig.until(lambda: found.got(ClusterConnect))
    rig.run(0.1)
    for conn in found.conns:
        found.send(ClusterConnectReply(False), CLUSTER_CHANNEL, conn)
    rig.run(0.1)
    sent = [each for each in found.got(ClusterConnect) if isinstance(each, ClusterConnect)]
    return [each.password for each in sent if each.user == CLUSTER_USER]


def proven_of(host: Host) -> ProvenPeers:
    clusters = node_of(host).clusters
    assert clusters is not None
    return clusters.proven_peers


def discovering(rig: Rig, remember: bool = True) -> Host:
    (host,) = rig.cluster(1, discovery=True, own=OwnSettings(cluster_remember_logins=remember))
    return host


@pytest.mark.parametrize("days", [0, 29])
def test_after_a_restart_the_node_logs_in_at_a_real_artemis_that_has_logged_in_here(rig: Rig, days: int) -> None:
    """Each would wait for the other's login for ever."""
    host = discovering(rig)
    log_in(rig, host)
    restart(rig, host, days * DAY + 1)
    assert answering(rig, host, "artemis", "artemis") == [CLUSTER_PASSWORD]


def test_so_it_does_after_a_crash(rig: Rig) -> None:
    host = discovering(rig)
    log_in(rig, host)
    rig.run(1)
    host.crash()
    host.start()
    rig.run(1)
    assert answering(rig, host, "artemis", "artemis") == [CLUSTER_PASSWORD]


@pytest.mark.parametrize("case", ["another address", "another node", "30 days", "not allowed"])
def test_nobody_else_gets_the_password(rig: Rig, case: str) -> None:
    host = discovering(rig, remember=case != "not allowed")
    log_in(rig, host)
    restart(rig, host, 30 * DAY if case == "30 days" else 1)
    node_id = "thief" if case == "another node" else "artemis"
    assert answering(rig, host, node_id, "thief" if case == "another address" else "artemis") == []
    (told,) = rig.events("cluster_connector_failed")
    assert "cluster-plain-password" in told and "correct host and port" not in told
    assert len(rig.events("discovered_member_refused")) == 1


def test_who_was_reached_with_tls_gets_no_password_without_it(rig: Rig) -> None:
    """A forged announcement of its address would let it pass in clear text."""
    host = discovering(rig)
    log_in(rig, host, secure=True)
    restart(rig, host)
    assert answering(rig, host, "artemis", "artemis") == []


def test_a_new_cluster_password_goes_to_nobody_who_has_proven_the_former_one(rig: Rig) -> None:
    host = discovering(rig)
    log_in(rig, host)
    proven = proven_of(host)
    address = connector_of("artemis").address
    assert proven.has(rig.world.now, "artemis", address, False)
    proven.settings.cluster_password = "another"
    assert not proven.has(rig.world.now, "artemis", address, False)


def test_an_atalanta_at_its_place_is_not_remembered(rig: Rig) -> None:
    """It never needs the password, so who has its address later gets none."""
    host = discovering(rig)
    log_in(rig, host)
    peer = RawPeer(rig, "atalanta")
    peer.dial(host)
    peer.send(ClusterConnect(CHALLENGE_USER, "11"), CLUSTER_CHANNEL)
    rig.until(lambda: peer.got(ClusterChallenge))
    (challenge,) = peer.got(ClusterChallenge)
    assert isinstance(challenge, ClusterChallenge)
    proof = ClusterNonces("11", challenge.nonce).proof(CLUSTER_USER, CLUSTER_PASSWORD, DIAL, "artemis")
    peer.send(ClusterProof("artemis", "", proof), CLUSTER_CHANNEL)
    peer.send(NodeAnnounce(node_id="artemis", event_id=2, connector=connector_of("artemis")), CLUSTER_CHANNEL)
    rig.run(1)
    restart(rig, host)
    assert answering(rig, host, "artemis", "artemis") == []


def test_who_stays_logged_in_counts_as_logging_in_each_day(rig: Rig) -> None:
    host = discovering(rig)
    log_in(rig, host)
    proven = proven_of(host)
    first = proven.peers["artemis"].at_ms
    later = rig.world.now + DAY * 10**9
    cluster_of(host).on_timer(later, f"cluster.0.{LOGINS}")
    assert proven.peers["artemis"].at_ms == later // 10**6 > first


def test_a_record_that_cannot_be_read_is_dropped(rig: Rig) -> None:
    host = discovering(rig)
    log_in(rig, host)
    values = node_of(host).broker.values
    for key, value in (("a", b"{"), ("b", b"[1]"), ("c", b'["x", 1, 2, 3]'), ("d", b"\xff")):
        values.set(f"proven.{key}", value)
    restart(rig, host)
    assert node_of(host).broker.values.keys("proven.") == ["proven.artemis"]


def test_a_pool_logs_in_at_a_discovered_artemis_that_has_logged_in_here(rig: Rig) -> None:
    def by_discovery(config: RouterConfig, pool: PoolConfig) -> None:
        pool.cluster_connection, pool.discovery_group = None, "group"

    host = rig.node(discovery=True, router=routed(change=by_discovery))
    host.start()
    log_in(rig, host)
    # The locator of the cluster connection, and the pool.
    assert answering(rig, host, "artemis", "artemis") == [CLUSTER_PASSWORD] * 2
