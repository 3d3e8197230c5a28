"""Users and members that log in: who they must be, and what they open by it."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import (
    CLUSTER_SECURITY,
    INCOMPATIBLE,
    SECURITY,
    SESSION_CREATION_REJECTED,
)
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, ClusterConnectReply, NodeAnnounce
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.query import (
    BindingQuery,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
    QueueQuery,
)
from atalanta.wire.core.packets.session import (
    CreateSession,
    CreateSessionResponse,
    CreateSessionV2,
    SessionClose,
)
from atalanta.wire.core.packets.topology import (
    ClusterTopologyV3,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from tests.wire.core.samples import sample_transport
from tests.wire.core.server.server_rig import Server, queue_request, text_message


@pytest.mark.parametrize(
    ("user", "password", "code"),
    [
        ("admin", "wrong", SECURITY),
        ("nobody", "admin", SECURITY),
        (None, None, SECURITY),
        ("admin", None, SECURITY),
        ("admin", "\ud800", SECURITY),
        ("cluster", "wrong", CLUSTER_SECURITY),
    ],
)
def test_wrong_credentials_open_nothing(server: Server, user: str | None, password: str | None, code: int) -> None:
    client = server.greeted()
    answer = client.open_session(10, user, password)
    assert isinstance(answer, ExceptionResponse) and answer.code == code
    assert client.closed is None
    client.send(QueueQuery("orders"))
    assert client.closed is not None


def test_passwords_and_endless_names_are_not_repeated() -> None:
    request = CreateSessionV2(
        name="s", session_channel=10, version=136, user="x" * 20_000, password="top secret"
    )
    assert "top secret" not in repr(request)
    server = Server()
    client = server.greeted()
    client.send(request, 1)
    answer = client.packets(ExceptionResponse)[0]
    assert len(answer.message or "") < 200
    assert all(len(str(fields)) < 300 for _, fields in server.trace.events)


def test_guessing_passwords_ends_the_connection(server: Server) -> None:
    client = server.greeted()
    for _ in range(10):
        client.open_session(10, "admin", "wrong")
    assert client.closed is None
    client.send(
        CreateSessionV2(name="s", session_channel=10, version=136, user="admin", password="wrong"),
        1,
    )
    assert client.closed is not None


@pytest.mark.parametrize("kind", [CreateSession, CreateSessionV2])
def test_right_credentials_open_a_session(server: Server, kind: type[CreateSession]) -> None:
    client = server.greeted()
    client.send(kind("s", 10, 136, "admin", "admin"), 1)
    answers = client.receive()
    assert [channel for channel, _ in answers] == [1]
    assert isinstance(answers[0][1], CreateSessionResponse)
    assert answers[0][1].server_version == 136
    client.send(SessionClose())
    server.settle()
    assert len(client.receive()) == 1


def test_old_clients_are_told_so(server: Server) -> None:
    answer = server.greeted().open_session(10, "admin", "admin", version=120)
    assert isinstance(answer, ExceptionResponse) and answer.code == INCOMPATIBLE


# What a client of Artemis 2.6, 2.16, 2.20, 2.28, 2.36 and 2.44 reads: its generations of the topology and of bindings.
@pytest.mark.parametrize(
    ("own", "topology", "binding"),
    [
        (129, ClusterTopologyV3, BindingQueryResponseV4),
        (130, ClusterTopologyV3, BindingQueryResponseV4),
        (131, ClusterTopologyV4, BindingQueryResponseV4),
        (134, ClusterTopologyV4, BindingQueryResponseV4),
        (135, ClusterTopologyV4, BindingQueryResponseV5),
        (136, ClusterTopologyV4, BindingQueryResponseV5),
    ],
)
def test_a_client_that_reconnects_is_served_in_its_own_version(
    server: Server, own: int, topology: type[Packet], binding: type[Packet]
) -> None:
    client = server.greeted()
    client.send(SubscribeTopologyV2(False, own), 0)
    client.receive()
    client.send(CreateSession("s", 10, 136, "admin", "admin"), 1)  # it names the version of the server before
    assert len(client.packets(CreateSessionResponse)) == 1
    server.core(client.conn).member_up("node-b", 1, sample_transport(), None, True, None, None)
    assert [type(packet) for _, packet in client.receive()] == [topology]
    client.send(BindingQuery("orders"))
    assert [type(packet) for _, packet in client.receive()] == [binding]
    client.feed(codec.encode(queue_request("orders"), 10, own))
    server.settle()
    client.receive()
    message = text_message("orders", "a")
    client.feed(codec.encode(SendMessage(message, requires_response=True, correlation=7, sender_id=1), 10, own))
    server.settle()
    server.turn()
    assert b"".join(server.wire.written.pop(client.conn)) == codec.encode(NullResponse(7), 10, own)


def test_a_client_too_old_is_told_so_whatever_its_request_names(server: Server) -> None:
    client = server.greeted()
    client.send(SubscribeTopologyV2(False, 120), 0)
    client.receive()
    answer = client.open_session(10, "admin", "admin", version=136)
    assert isinstance(answer, ExceptionResponse) and answer.code == INCOMPATIBLE


@pytest.mark.parametrize("channel", [0, 1, 9, -5])
def test_a_session_needs_a_channel_of_its_own(server: Server, channel: int) -> None:
    answer = server.greeted().open_session(channel, "admin", "admin")
    assert isinstance(answer, ExceptionResponse) and answer.code == SESSION_CREATION_REJECTED


def test_several_sessions_live_on_one_connection(server: Server) -> None:
    client = server.login()
    client.open_session(11, "admin", "admin")
    again = client.open_session(11, "admin", "admin")
    assert isinstance(again, ExceptionResponse) and again.code == SESSION_CREATION_REJECTED
    client.create_queue("orders")
    client.consume("orders", channel=11)
    client.publish("orders", "a")
    server.settle()
    assert client.bodies(11) == ["a"]
    client.succeeds(SessionClose(), 11)
    client.consume("orders")
    server.settle()
    assert client.bodies(10) == ["a"]


# -- cluster credentials ------------------------------------------------------------------------
def test_only_a_cluster_member_may_announce_a_node() -> None:
    announce = NodeAnnounce(node_id="node-b", event_id=1, connector=sample_transport())
    server = Server()
    for login in (None, "admin"):
        client = server.greeted() if login is None else server.login(login)
        client.send(announce, 3)
        assert client.closed is not None
    member = server.greeted()
    member.send(ClusterConnect("cluster", "secret"), 3)
    member.send(announce, 3)
    assert member.closed is None
    assert [packet.authorized for packet in member.packets(ClusterConnectReply)] == [True]


def test_wrong_cluster_credentials_open_nothing(server: Server) -> None:
    client = server.greeted()
    client.send(ClusterConnect("cluster", "guess"), 3)
    assert [packet.authorized for packet in client.packets(ClusterConnectReply)] == [False]
    client.send(QueueQuery("orders"))
    assert client.closed is not None


def test_a_member_without_a_session_cannot_touch_queues(server: Server) -> None:
    server.settle()
    records = len(server.journal.records)
    client = server.greeted()
    client.send(ClusterConnect("cluster", "secret"), 3)
    client.receive()
    client.send(queue_request("mine"), 10)
    client.send(
        SendMessage(
            text_message("orders", "x"), requires_response=True, correlation=-7, sender_id=0
        ),
        10,
    )
    server.settle()
    assert client.receive() == []
    assert "mine" not in server.broker.queues
    assert len(server.journal.records) == records
