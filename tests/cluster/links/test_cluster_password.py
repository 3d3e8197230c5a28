"""The cluster's password: proved between nodes of ours without sending it, plain only to peers that may have it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.cluster.connection_routers.config import PoolConfig, RouterConfig
from atalanta.cluster.native_config import OwnSettings
from atalanta.kernel.security.cluster_proof import CHALLENGE_USER, DIAL, ClusterNonces
from atalanta.kernel.security.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.sim.host import Host
from atalanta.sim.nodes import CLUSTER_PASSWORD, PORT
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import (
    ClusterChallenge,
    ClusterConnect,
    ClusterConnectReply,
    ClusterProof,
    NodeAnnounce,
)
from atalanta.wire.core.packets.session import CreateSession
from atalanta.wire.core.packets.topology import ClusterTopologyV4
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, linked, node_of
from tests.cluster.connection_routers.router_rig import place, routed, visit
from tests.wire.core.samples import sample_transport
from tests.wire.core.server.server_rig import Client, Server


def challenged(server: Server, client: Client, nonce: str = "11") -> ClusterChallenge:
    client.send(ClusterConnect(CHALLENGE_USER, nonce), 3)
    (challenge,) = client.packets(ClusterChallenge)
    assert client.packets(ClusterConnectReply) == []
    return challenge


def answer(client: Client, proof: ClusterProof) -> list[bool]:
    client.send(proof, 3)
    return [packet.authorized for packet in client.packets(ClusterConnectReply)]


def proof_of(challenge: ClusterChallenge, password: str = "secret", nonce: str = "11") -> str:
    return ClusterNonces(nonce, challenge.nonce).proof("cluster", password, DIAL, "node-b")


def test_a_peer_that_knows_the_password_proves_it() -> None:
    server = Server()
    client = server.greeted()
    challenge = challenged(server, client)
    assert answer(client, ClusterProof("node-b", "", proof_of(challenge))) == [True]
    client.send(NodeAnnounce(node_id="node-b", event_id=1, connector=sample_transport()), 3)
    assert client.closed is None


@pytest.mark.parametrize("case", ["password", "node", "target", "nonce", "reflected", "none"])
def test_a_wrong_proof_opens_nothing(case: str) -> None:
    server = Server()
    client = server.greeted()
    challenge = challenged(server, client)
    proof = proof_of(challenge, "guess" if case == "password" else "secret")
    if case == "nonce":
        proof = proof_of(challenge, nonce="22")
    elif case == "reflected":
        proof = challenge.proof
    elif case == "none":
        proof = ""
    node_id = "node-c" if case == "node" else "node-b"
    target = "elsewhere:1" if case == "target" else ""
    assert answer(client, ClusterProof(node_id, target, proof)) == [False]
    client.send(NodeAnnounce(node_id="node-b", event_id=1, connector=sample_transport()), 3)
    assert client.closed is not None


def test_a_login_cannot_be_passed_on_from_another_address() -> None:
    """A forged announcement names the forger's address: its proof for that is of no use elsewhere."""
    server = Server()
    client = server.greeted()
    challenge = challenged(server, client)
    nonces = ClusterNonces("11", challenge.nonce)
    proof = nonces.proof("cluster", "secret", DIAL, "node-b", "forger:1")
    assert answer(client, ClusterProof("node-b", "forger:1", proof)) == [False]


def test_a_challenge_serves_once() -> None:
    server = Server()
    client = server.greeted()
    challenge = challenged(server, client)
    assert answer(client, ClusterProof("node-b", "", "")) == [False]
    client.send(ClusterProof("node-b", "", proof_of(challenge)), 3)
    assert client.closed is not None


# -- whole nodes --------------------------------------------------------------------------------
def wrote_password(rig: Rig, target: str = "") -> bool:
    """Whether any connection (to the machine `target`) had the password in it."""
    secret = CLUSTER_PASSWORD.encode("utf-16-be"), CLUSTER_PASSWORD.encode("utf-16-le")
    return any(
        word in bytes(data)
        for _, name, _, data in rig.network.sent
        for word in (*secret, CLUSTER_PASSWORD.encode())
        if target in ("", name)
    )


def announced(rig: Rig, host: Host, name: str) -> RawPeer:
    """A listening machine that a datagram announced."""
    stranger = RawPeer(rig, name)
    stranger.listen()
    connector = TransportConfiguration.tcp("x", name, PORT)
    data = encode_announcement(Announcement(name, "unique", [connector]))
    node_of(host).on_datagram(rig.world.now, "discovery/group", data)
    rig.until(lambda: stranger.got(ClusterConnect))
    return stranger


@pytest.mark.parametrize("discovery", [True, False])
def test_nodes_of_ours_never_send_the_password(rig: Rig, discovery: bool) -> None:
    hosts = rig.cluster(3, discovery=discovery)
    rig.until(lambda: all(linked(host) == 2 for host in hosts))
    assert not wrote_password(rig)


VICTIM = ClusterTopologyV4(
    exit=False, node_id="victim", primary=TransportConfiguration.tcp("x", "victim", PORT)
)


@pytest.mark.parametrize(
    "replies",
    [
        [ClusterConnectReply(False)],
        [ClusterConnectReply(True)],
        [ClusterChallenge("stranger", "22", "33"), ClusterConnectReply(True)],
        [VICTIM],
    ],
)
def test_a_forged_announcement_gets_no_password(rig: Rig, replies: list[Packet]) -> None:
    (host,) = rig.cluster(1, discovery=True)
    stranger = announced(rig, host, "stranger")
    for packet in replies:
        stranger.send(packet, CLUSTER_CHANNEL)
    rig.run(10)
    assert list(cluster_of(host).topology.members) == [node_of(host).broker.node_id]
    real = isinstance(replies[0], ClusterConnectReply)  # as a real Artemis answers: it is not challenged again
    assert stranger.closed and (len(stranger.conns) == 1 if real else len(stranger.conns) > 1)
    assert not wrote_password(rig)
    assert len(rig.events("discovered_member_refused")) <= 1


def test_a_member_that_discovery_finds_gets_the_password_if_that_is_allowed(rig: Rig) -> None:
    (host,) = rig.cluster(1, discovery=True, own=OwnSettings(cluster_plain_password=True))
    artemis = announced(rig, host, "artemis")
    artemis.send(ClusterConnectReply(False), CLUSTER_CHANNEL)
    rig.until(lambda: len(artemis.got(ClusterConnect)) == 2)
    assert wrote_password(rig, "artemis")


def test_the_refusal_is_told_once_with_its_remedy(rig: Rig) -> None:
    (host,) = rig.cluster(1, discovery=True)
    artemis = announced(rig, host, "artemis")
    artemis.send(ClusterConnectReply(False), CLUSTER_CHANNEL)
    rig.run(5)
    assert len(artemis.got(ClusterConnect)) == 1  # it logs each challenge as a failed login
    data = encode_announcement(Announcement("other", "unique", [TransportConfiguration.tcp("x", "artemis", PORT)]))
    node_of(host).on_datagram(rig.world.now, "discovery/group", data)
    rig.until(lambda: len(artemis.got(ClusterConnect)) == 2)  # another node there may be one of ours
    artemis.send(ClusterConnectReply(False), CLUSTER_CHANNEL)
    rig.run(1)
    (told,) = rig.events("discovered_member_refused")
    assert "artemis:" in told and "cluster-plain-password" in told


def test_a_static_member_gets_the_password_if_it_does_not_know_the_challenge(rig: Rig) -> None:
    host = rig.node(peers=[7])
    artemis = RawPeer(rig, "n7")
    artemis.listen()
    host.start()
    rig.until(lambda: artemis.got(ClusterConnect))
    artemis.send(ClusterConnectReply(False), CLUSTER_CHANNEL)
    rig.until(lambda: len(artemis.got(ClusterConnect)) == 2)
    second = artemis.got(ClusterConnect)[1]
    assert isinstance(second, ClusterConnect) and second.password == CLUSTER_PASSWORD
    artemis.send(ClusterConnectReply(True), CLUSTER_CHANNEL)
    rig.until(lambda: artemis.got(NodeAnnounce))
    rig.network.close(artemis.conns[-1], "restarted")
    rig.until(lambda: len(artemis.got(ClusterConnect)) == 3)
    third = artemis.got(ClusterConnect)[2]  # no challenge again, which a real Artemis logs as a failed login
    assert isinstance(third, ClusterConnect) and third.password == CLUSTER_PASSWORD


@pytest.mark.parametrize("own", [True, False])
def test_the_default_credentials_are_named_as_what_new_versions_refuse(rig: Rig, own: bool) -> None:
    host = rig.node(peers=[7])
    artemis = RawPeer(rig, "n7")
    artemis.listen()
    host.start()
    if not own:
        cluster = cluster_of(host)
        cluster.settings.cluster_user = DEFAULT_CLUSTER_USER
        cluster.settings.cluster_password = DEFAULT_CLUSTER_PASSWORD
    rig.until(lambda: artemis.got(ClusterConnect))
    for count in (2, 3):
        artemis.send(ClusterConnectReply(False), CLUSTER_CHANNEL)
        rig.until(lambda: len(artemis.got(ClusterConnect)) == count)  # noqa: B023
    (told,) = rig.events("cluster_connector_failed")
    assert ("Artemis 2.54 and newer refuse" in told) == (not own)


@pytest.mark.parametrize("discovery", [True, False])
def test_a_wrong_password_is_told_once_by_each_node(rig: Rig, discovery: bool) -> None:
    for index in range(2):
        rig.node(peers=[1 - index], discovery=discovery, password=f"password {index}").start()
    rig.run(120)
    assert rig.events("protocol_error") == []
    for name in ("cluster_connector_failed", "cluster_login_refused"):
        told = rig.events(name)
        assert len(told) == 2 and all("give all nodes the same" in each for each in told), told


def test_a_node_without_a_cluster_user_takes_in_no_node_and_gets_no_password(rig: Rig) -> None:
    """It answers the challenge with a proof that nobody can check: a refusal at once would look like a real Artemis."""
    alone, host = rig.node(), rig.node(peers=[0])
    alone.start()
    node_of(alone).broker.security.cluster_password = None
    host.start()
    rig.run(30)
    assert linked(host) == 0 and not wrote_password(rig)
    (told,) = rig.events("n0 cluster_login_refused")
    assert "no cluster-connection and no cluster-password of its own" in told


@pytest.mark.parametrize("password", ["CHANGE ME!!", "", "secret"])
def test_a_peer_in_plain_text_is_refused_where_nobody_is_the_cluster_user(password: str) -> None:
    server = Server()
    server.security.cluster_password = None
    client = server.greeted()
    client.send(ClusterConnect("cluster", password), 3)
    assert [packet.authorized for packet in client.packets(ClusterConnectReply)] == [False]
    assert answer(server.greeted(), ClusterProof("node-b", "", "")) == []


# -- pools of connection routers ----------------------------------------------------------------
def by_discovery(config: RouterConfig, pool: PoolConfig) -> None:
    pool.cluster_connection, pool.discovery_group = None, "group"


def by_connector(config: RouterConfig, pool: PoolConfig) -> None:
    pool.cluster_connection, pool.static_connectors = None, ["n7"]


@pytest.mark.parametrize("change", [None, by_discovery])
def test_a_pool_never_sends_the_password_to_nodes_of_ours(
    rig: Rig,
    change: Callable[[RouterConfig, PoolConfig], None] | None,
) -> None:
    hosts = [rig.node(discovery=True, router=routed(change=change)) for _ in range(2)]
    rig.form(*hosts)
    rig.run(4)
    targets = {place(visit(rig, hosts[0], f"key{n}"), hosts[0]) for n in range(16)}
    assert targets == {"n0", "n1"}
    assert not wrote_password(rig)


@pytest.mark.parametrize("authorized", [True, False])
def test_a_pool_sends_a_forged_announcement_no_password(rig: Rig, authorized: bool) -> None:
    host = rig.node(discovery=True, router=routed(change=by_discovery))
    host.start()
    stranger = announced(rig, host, "stranger")
    for _ in range(3):
        stranger.send(ClusterConnectReply(authorized), CLUSTER_CHANNEL)
        rig.run(6)
    assert len(stranger.conns) > 2 and not stranger.got(CreateSession)
    assert not wrote_password(rig)


def test_a_pool_with_a_static_connector_logs_in_at_a_real_artemis(rig: Rig) -> None:
    host = rig.node(peers=[7], router=routed(change=by_connector))
    artemis = RawPeer(rig, "n7")
    artemis.listen()
    host.start()
    rig.run(1)
    for reply in (ClusterConnectReply(False), ClusterConnectReply(True)):
        artemis.send(reply, CLUSTER_CHANNEL)
        rig.run(1)
    assert not artemis.got(CreateSession)  # it has a client id, and waits for the version
    artemis.send(ClusterTopologyV4(exit=False, node_id="real", last=True, server_version=136), 0)
    rig.run(1)
    (session,) = artemis.got(CreateSession)
    assert isinstance(session, CreateSession) and session.password == CLUSTER_PASSWORD
