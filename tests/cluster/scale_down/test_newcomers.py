"""Clients that come to a node that is just leaving: they are answered, hear where to go, and leave nothing behind."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.disconnect import HOLD_NS, Disconnects
from atalanta.cluster.scale_down.phase import DONE, MOVING
from atalanta.cluster.scale_down.scale_down import ScaleDown
from atalanta.message.message import Message
from atalanta.sim.host import Host
from atalanta.sim.nodes import CLUSTER_PASSWORD, CLUSTER_USER, PASSWORD, USER
from atalanta.sim.world.world import SECOND
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL, HANDSHAKE
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect
from atalanta.wire.core.packets.connection import (
    REASON_SCALE_DOWN,
    CheckForFailover,
    CheckForFailoverReply,
    DisconnectV3,
    ExceptionResponse,
)
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.session import CreateSession, SessionStart
from atalanta.wire.core.server.connection import CoreConnection
from atalanta.wire.core.server.redirect import CoreRedirect
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import RawPeer, Rig, node_of
from tests.cluster.scale_down.scale_down_rig import begin, departure, held, stocked, underway

BODIES = [b"%d" % number for number in range(200)]


def session(number: int) -> CreateSession:
    return CreateSession(
        name=f"s{number}", session_channel=10 + number, version=136, user=USER, password=PASSWORD
    )


def told(peer: RawPeer) -> DisconnectV3:
    (goodbye,) = peer.got(DisconnectV3)
    assert isinstance(goodbye, DisconnectV3)
    return goodbye


def sending(body: bytes) -> Packet:
    return SendMessage(
        Message.create("orders", body, 4, True, 0, 4),
        requires_response=True,
        correlation=7,
        sender_id=1,
    )


@pytest.mark.parametrize("asks", ["before", "after"])
def test_who_makes_its_first_session_is_refused_and_sent_to_the_target(asks: str) -> None:
    rig, target, leaving = stocked(BODIES)
    peer = RawPeer(rig, "comer")
    peer.dial(leaving)
    peer.send(CheckForFailover("elsewhere"), 1)
    rig.until(lambda: peer.got(CheckForFailoverReply))
    part = begin(rig, leaving)
    if asks == "before":  # the good-bye is said
        rig.until(lambda: part.frozen)
        peer.send(session(0), 1)
    rig.until(part.over)
    if asks == "after":
        peer.send(session(0), 1)
    rig.run(0.1)
    assert peer.closed == []  # it closes the connection itself, when it can hear the good-bye
    goodbye = told(peer)
    assert (goodbye.reason, goodbye.target_node_id) == (REASON_SCALE_DOWN, "node-0")
    assert goodbye.target is not None and goodbye.target.host == "n0"
    (refusal,) = peer.got(ExceptionResponse)
    assert isinstance(refusal, ExceptionResponse)
    assert refusal.message == "the node is stopping"
    assert part.phase == DONE


def test_who_makes_more_sessions_is_answered_on_all_of_them_and_sends_nothing() -> None:
    rig, target, leaving = stocked(BODIES)
    peer = RawPeer(rig, "comer")
    peer.dial(leaving)
    peer.send(CheckForFailover("elsewhere"), 1)
    peer.send(session(0), 1)
    rig.run(0.1)
    part = begin(rig, leaving)
    rig.until(lambda: part.frozen)
    peer.send(sending(b"late"), 10)
    peer.send(session(1), 1)
    rig.until(part.over)
    rig.run(0.1)
    assert (part.phase, part.left()) == (DONE, 0)
    assert [packet.correlation for packet in peer.got(ExceptionResponse)] == [7, -1]  # type: ignore[attr-defined]
    assert peer.closed == []
    told(peer)
    leaving.stop()
    assert held(target, "orders") == BODIES


def arriving_at_the_freeze(rig: Rig, peer: RawPeer, leaving: Host, greets: bool) -> ScaleDown:
    """The peer comes once the node is frozen, or (not `greets`) came before and greets only then; and asks."""
    if not greets:
        rig.network.dial(peer, "raw", leaving.name, 61616)
        rig.until(lambda: peer.conns)
    part = begin(rig, leaving)
    rig.until(lambda: part.frozen)
    if greets:
        peer.dial(leaving)
    else:
        peer.write(HANDSHAKE)
    peer.send(CheckForFailover("elsewhere"), 1)
    return part


@pytest.mark.parametrize("greets", [True, False])
def test_who_is_accepted_when_the_node_is_frozen_hears_where_to_go(greets: bool) -> None:
    rig, _, leaving = stocked(BODIES)
    peer = RawPeer(rig, "comer")
    part = arriving_at_the_freeze(rig, peer, leaving, greets)
    peer.send(session(0), 1)
    rig.until(part.over)
    rig.run(0.1)
    (answer,) = peer.got(CheckForFailoverReply)
    assert isinstance(answer, CheckForFailoverReply) and not answer.ok
    assert len(peer.got(ExceptionResponse)) == 1
    assert told(peer).target_node_id == "node-0"
    assert peer.closed == []


@pytest.mark.parametrize("held_s", [2, 8])
@pytest.mark.parametrize("greeted", [True, False])
def test_who_spoke_before_the_target_was_ready_is_answered_then(
    greeted: bool, held_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: it could not go on meanwhile."""
    rig, _, leaving = stocked(BODIES)
    hold_ns = held_s * SECOND
    monkeypatch.setattr(
        Disconnects, "answered", lambda self: rig.world.now >= self.until - HOLD_NS + hold_ns
    )
    peer = RawPeer(rig, "comer")
    part = arriving_at_the_freeze(rig, peer, leaving, greeted)
    rig.run(1)
    assert peer.packets == [] and part.disconnects is not None
    rig.until(part.over)
    rig.run(0.1)
    assert told(peer).target_node_id == "node-0"
    peer.send(session(0), 1)
    rig.run(0.1)
    assert len(peer.got(CheckForFailoverReply)) == 1
    assert len(peer.got(ExceptionResponse)) == 1
    assert peer.closed == []


def test_who_was_just_sent_elsewhere_leaves_nothing_behind_either() -> None:
    rig, target, leaving = stocked(BODIES)
    peer = RawPeer(rig, "comer")
    peer.dial(leaving)
    peer.send(CheckForFailover("elsewhere"), 1)
    peer.send(session(0), 1)
    peer.send(CreateConsumer(consumer_id=0, queue="orders", requires_response=False), 10)
    peer.send(SessionStart(), 10)
    peer.send(FlowToken(0, -1), 10)
    rig.until(lambda: len(peer.got(ReceiveMessage)) == len(BODIES))
    (connection,) = [
        each
        for each in node_of(leaving).connections.values()
        if isinstance(each, CoreConnection) and each.came_from == "elsewhere"
    ]
    redirect = CoreRedirect(connection, rig.world.now, "node-0")
    redirect.begin()
    redirect.send(rig.world.now, TransportConfiguration("n0"), [])
    part = begin(rig, leaving)
    rig.until(lambda: part.frozen)
    peer.send(SendMessage(Message.create("orders", b"late", 4, True, 0, 4), sender_id=1), 10)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == BODIES


def without_target() -> tuple[Rig, Host, Host]:
    """A node that a crash interrupted as it left, and its target is away."""
    rig, target, leaving = stocked(BODIES)
    departure(leaving).choice.config.commit_interval = 1
    underway(rig, leaving, 13)
    leaving.crash()
    target.crash()
    leaving.start()
    return rig, target, leaving


@pytest.mark.parametrize("greets", ["at once", "when the target is back"])
def test_who_comes_after_a_crash_is_refused_and_hears_later_where_to_go(greets: str) -> None:
    """A member that heard it sooner would send there once more what this node has taken from it."""
    rig, target, leaving = without_target()
    peer = RawPeer(rig, "comer")
    if greets == "at once":
        peer.dial(leaving)
        peer.send(CheckForFailover("elsewhere"), 1)
        peer.send(session(0), 1)
        rig.run(1)
        (answer,) = peer.got(CheckForFailoverReply)
        assert isinstance(answer, CheckForFailoverReply) and not answer.ok
        (refusal,) = peer.got(ExceptionResponse)
        assert isinstance(refusal, ExceptionResponse)
        assert refusal.message == "the node is stopping"
    else:
        rig.network.dial(peer, "raw", leaving.name, 61616)
        rig.run(1)
    assert peer.got(DisconnectV3) == [] and peer.closed == []
    target.start()
    part = departure(leaving)
    rig.until(part.over)
    if greets != "at once":
        peer.write(HANDSHAKE)
        peer.send(session(0), 1)
        rig.run(0.1)
        assert len(peer.got(ExceptionResponse)) == 1
    assert told(peer).target_node_id == "node-0"
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == BODIES


def test_who_comes_when_the_target_knows_all_is_told_after_a_crash_too() -> None:
    rig, target, leaving = without_target()
    rig.network.latency_ns = (5_000_000, 5_100_000)
    target.start()
    part = departure(leaving)
    rig.until(lambda: part.members_disconnected)
    peer = RawPeer(rig, "comer")
    peer.dial(leaving)
    peer.send(session(0), 1)
    rig.until(part.over)
    rig.run(0.1)
    assert told(peer).target_node_id == "node-0"
    assert len(peer.got(ExceptionResponse)) == 1
    assert peer.closed == []


def test_a_member_that_comes_before_the_target_knows_all_hears_nothing() -> None:
    rig, target, leaving = without_target()
    peer = RawPeer(rig, "comer")
    peer.dial(leaving)
    peer.send(ClusterConnect(CLUSTER_USER, CLUSTER_PASSWORD), CLUSTER_CHANNEL)
    rig.until(lambda: peer.closed)
    assert peer.packets == []
    target.start()
    part = departure(leaving)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)


def test_who_has_not_said_who_it_is_is_not_held_for_ever_for_a_target_that_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, target, leaving = stocked(BODIES)
    peer = RawPeer(rig, "comer")
    part = departure(leaving)
    monkeypatch.setattr(Disconnects, "answered", lambda self: part.phase == MOVING or part.link is None)
    arriving_at_the_freeze(rig, peer, leaving, True)
    peer.send(session(0), 1)
    target.crash()
    rig.until(lambda: peer.got(ExceptionResponse), 15)
    rig.run(4)  # the time for its login began anew
    assert peer.got(DisconnectV3) == [] and peer.closed == []
    target.start()
    rig.until(departure(leaving).over)
    assert told(peer).target_node_id == "node-0"
