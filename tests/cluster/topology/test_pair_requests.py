"""Requests of real Artemis nodes about pairs: each is answered, and the connection goes on."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.cluster import (
    BackupRegistration,
    BackupRegistrationFailed,
    BackupRequest,
    BackupRequestResponse,
    QuorumVote,
    QuorumVoteReply,
)
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.server.pair_requests import java_text
from atalanta.wire.core.transport import TransportConfiguration, encode_transport
from tests.cluster.cluster_rig import RawPeer, Rig


@pytest.fixture
def peer(rig: Rig) -> RawPeer:
    """A peer with the cluster's password at the first of two nodes."""
    hosts = rig.cluster(2)
    made = RawPeer(rig, "artemis")
    made.log_in_as_member(hosts[0])
    return made


def still_open(rig: Rig, peer: RawPeer) -> bool:
    before = len(peer.got(Ping))
    peer.send(Ping(60_000), 0)
    rig.run(1)
    return not peer.closed and len(peer.got(Ping)) > before


def failover_vote(node_id: str, stays: bool) -> bytes:
    """The vote of ServerConnectVote: a primary asks to stay, a backup whether it may take over."""
    writer = Writer()
    writer.boolean(stays)
    writer.string(node_id)
    writer.nullable_string(None)
    return writer.getvalue()


def test_a_real_backup_is_refused_at_once_and_named_in_one_line(rig: Rig, peer: RawPeer) -> None:
    writer = Writer()
    encode_transport(writer, TransportConfiguration.tcp("backup", "b", 61616))
    offer = BackupRegistration("cluster", "secret", False, writer.getvalue())
    for _ in range(3):
        peer.send(offer, CLUSTER_CHANNEL)
    rig.run(1)
    answers = [each for each in peer.got(BackupRegistrationFailed)]
    assert len(answers) == 3
    assert all(isinstance(each, BackupRegistrationFailed) and each.problem == 0 for each in answers)
    assert len(rig.events("backup_refused")) == 1
    assert still_open(rig, peer)


def test_a_request_for_a_colocated_backup_is_answered_no(rig: Rig, peer: RawPeer) -> None:
    peer.send(BackupRequest(1, "journal", "bindings", "large", "paging", "node"), CLUSTER_CHANNEL)
    rig.run(1)
    (answer,) = peer.got(BackupRequestResponse)
    assert isinstance(answer, BackupRequestResponse) and not answer.started
    assert len(rig.events("backup_refused")) == 1
    assert still_open(rig, peer)


@pytest.mark.parametrize("handler", ["LiveFailoverQuorumVote", "PrimaryFailoverQuorumVote"])
@pytest.mark.parametrize("stays", [False, True])
def test_a_failover_vote_is_yes_for_a_backup_whose_primary_is_gone_and_for_a_primary_that_is_there(
    rig: Rig, peer: RawPeer, handler: str, stays: bool
) -> None:
    for node_id, known in (("node-1", True), ("gone", False)):
        peer.packets.clear()
        peer.send(QuorumVote(handler, failover_vote(node_id, stays)), CLUSTER_CHANNEL)
        rig.run(1)
        (answer,) = peer.got(QuorumVoteReply)
        assert isinstance(answer, QuorumVoteReply) and answer.handler == handler
        reader = Reader(answer.vote)
        assert reader.boolean() == (stays if known else not stays)
        assert reader.string() == node_id
        at = reader.nullable_string()
        assert (at is not None and "?port=61616&host=n1" in at) if known else at is None
    assert still_open(rig, peer)


def test_no_room_for_a_colocated_backup_is_the_answer_to_its_vote(rig: Rig, peer: RawPeer) -> None:
    writer = Writer()
    writer.int32(-1)
    writer.nullable_string(None)
    writer.boolean(False)
    peer.send(QuorumVote("RequestBackupQuorumVote", writer.getvalue()), CLUSTER_CHANNEL)
    rig.run(1)
    (answer,) = peer.got(QuorumVoteReply)
    assert isinstance(answer, QuorumVoteReply)
    reader = Reader(answer.vote)
    assert (reader.int32(), reader.nullable_string(), reader.boolean()) == (0, None, False)


def test_a_vote_of_an_unknown_kind_gets_no_answer_and_harms_nothing(rig: Rig, peer: RawPeer) -> None:
    peer.send(QuorumVote("another", b"\x01\x02"), CLUSTER_CHANNEL)
    rig.run(1)
    assert not peer.got(QuorumVoteReply)
    assert still_open(rig, peer)


def test_a_connector_reads_as_artemis_writes_it() -> None:
    transport = TransportConfiguration.tcp("netty", "10.0.0.1", 61616)
    transport.put("keyStorePassword", "secret")
    transport.put("sslEnabled", True)
    assert java_text(transport) == (
        "TransportConfiguration(name=netty, factory=org-apache-activemq-artemis-core-remoting-impl-netty-"
        "NettyConnectorFactory)?port=61616&host=10-0-0-1&keyStorePassword=****&sslEnabled=true"
    )
