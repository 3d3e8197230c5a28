"""A client whose socket is lost goes on with its sessions: nothing lost, nothing twice, and only for itself."""

from __future__ import annotations

import json
from collections import deque

import pytest

from atalanta.kernel.sessions.session import Session
from atalanta.wire.core.packet_types import HANDSHAKE, NOT_COUNTED
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse, PacketsConfirmed, Ping
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.producer import CreateProducer
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import (
    CreateSessionV2,
    ReattachSession,
    ReattachSessionResponse,
    SessionClose,
    SessionStart,
    UniqueAddMetadata,
)
from atalanta.wire.core.server.redirect import CoreRedirect
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import AcceptorConfig
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client, Server, queue_request, text_message

SECRET = "5b8f4f3e-c1a2-11f0-9d3c-0242ac120002"  # as a Java client names its session


class Patient:
    """The client's half of A1.c: numbers what it gets, keeps what it sent until that is confirmed."""

    def __init__(self, server: Server, name: str, window: int = 2_000, user: str = "admin") -> None:
        self.server = server
        self.name = name
        self.got: list[Packet] = []
        self.last = -1
        self.first = 0
        self.kept: deque[Packet] = deque()
        self.client = server.greeted()
        self.client.send(
            CreateSessionV2(
                name=name,
                session_channel=10,
                version=136,
                user=user,
                password=user,
                confirmation_window=window,
            ),
            1,
        )
        self.client.receive()
        self.send(SessionStart())

    def send(self, packet: Packet, arrives: bool = True) -> None:
        self.kept.append(packet)
        if arrives:
            self.client.send(packet)

    def take(self) -> list[Packet]:
        """Returns what came on the session's channel, and the answer to a reattachment if there was one."""
        new: list[Packet] = []
        for channel, packet in self.client.receive():
            if isinstance(packet, PacketsConfirmed):
                self._confirmed(packet.command_id)
            elif channel == 10 and packet.type not in NOT_COUNTED:
                self.last += 1
                new.append(packet)
            elif isinstance(packet, ReattachSessionResponse):
                new.append(packet)
        self.got.extend(new)
        return new

    def _confirmed(self, number: int) -> None:
        while self.kept and self.first <= number:
            self.kept.popleft()
            self.first += 1

    def lose(self, noticed: bool = True) -> None:
        """The socket breaks; what was written and not read is gone."""
        self.server.turn()
        self.server.wire.written.pop(self.client.conn, None)
        if noticed:
            self.server.lost(self.client.conn)

    def come_back(self) -> bool:
        self.client = self.server.greeted()
        self.client.send(ReattachSession(self.name, self.last), 1)
        self.server.settle()
        (answer,) = [one for one in self.take() if isinstance(one, ReattachSessionResponse)]
        if answer.reattached:
            self._confirmed(answer.last_confirmed_command_id)
            for packet in list(self.kept):
                self.client.send(packet)
        return answer.reattached

    def bodies(self) -> list[str]:
        """Of all messages so far."""
        return [one.message.text() or "" for one in self.got if isinstance(one, ReceiveMessage)]


def consuming(server: Server, window: int = 2_000) -> Patient:
    patient = Patient(server, "receiver", window)
    patient.send(queue_request("q"))
    patient.send(CreateConsumer(consumer_id=0, queue="q", priority=4))
    patient.send(FlowToken(0, -1))
    server.settle()
    patient.take()
    return patient


def publish(server: Server, *texts: str) -> None:
    sender = server.login()
    for text in texts:
        sender.publish("q", text, wait=False)
    server.settle()
    server.lost(sender.conn)


@pytest.mark.parametrize("noticed", [True, False])
def test_what_was_on_the_way_is_sent_again_and_only_that(server: Server, noticed: bool) -> None:
    patient = consuming(server)
    publish(server, "a", "b")
    patient.take()
    publish(server, "c", "d")
    patient.lose(noticed)
    publish(server, "e")
    assert patient.come_back()
    patient.take()
    assert patient.bodies() == ["a", "b", "c", "d", "e"]
    counts = [one.delivery_count for one in patient.got if isinstance(one, ReceiveMessage)]
    assert counts == [1] * 5
    for one in list(patient.got):
        if isinstance(one, ReceiveMessage):
            patient.send(IndividualAcknowledge(0, one.message.id, False))
    server.settle()
    assert server.broker.queues["q"].message_count == 0
    assert len(server.connections) == 1


def test_an_answer_that_was_lost_with_the_socket_is_given_again(server: Server) -> None:
    patient = consuming(server)
    patient.send(
        SendMessage(text_message("q", "once"), requires_response=True, correlation=-9, sender_id=0)
    )
    patient.lose()
    server.settle()
    assert patient.come_back()
    patient.take()
    answers = [one for one in patient.got if isinstance(one, NullResponse) and one.correlation == -9]
    assert len(answers) == 1
    assert patient.bodies() == ["once"]


def test_the_answer_waits_for_what_the_client_will_hold_for_confirmed(server: Server) -> None:
    patient = consuming(server)
    patient.send(SendMessage(text_message("q", "not on disk yet"), sender_id=0))
    server.check_alive()
    assert not any(isinstance(one, PacketsConfirmed) for _, one in patient.client.receive())
    patient.lose()
    again = server.greeted()
    again.send(ReattachSession("receiver", patient.last), 1)
    assert again.packets(ReattachSessionResponse) == []
    server.settle()
    assert len(again.packets(ReattachSessionResponse)) == 1


def test_a_client_that_does_not_come_back_is_gone_after_its_time_to_live(server: Server) -> None:
    patient = consuming(server)
    patient.client.send(Ping(10_000), 0)
    publish(server, "a")
    patient.lose()
    assert server.broker.queues["q"].consumer_count() == 1
    server.now += 9 * SECOND
    server.check_alive()
    assert server.broker.queues["q"].consumer_count() == 1
    server.now += 2 * SECOND
    server.check_alive()
    assert server.broker.queues["q"].consumer_count() == 0
    assert not patient.come_back()
    other = server.login()
    other.consume("q")
    assert other.bodies() == ["a"]


def test_a_session_without_a_window_goes_with_its_socket(server: Server) -> None:
    patient = consuming(server, window=-1)
    patient.lose()
    assert server.broker.queues["q"].consumer_count() == 0
    assert not patient.come_back()


def test_a_session_closed_in_good_order_or_made_anew_is_not_reattached(server: Server) -> None:
    patient = consuming(server)
    patient.lose()
    assert Patient(server, "receiver").client.closed is None
    assert server.broker.queues["q"].consumer_count() == 0
    second = Patient(server, "second")
    second.send(SessionClose())
    server.settle()
    second.take()
    assert not second.come_back()


def test_temporary_queues_and_the_client_id_come_along(server: Server) -> None:
    patient = Patient(server, "owner")
    patient.send(UniqueAddMetadata("jms-client-id", "me", True))
    temporary = CreateQueueV2(address="t", queue="t", durable=False, temporary=True)
    patient.send(temporary)
    server.settle()
    patient.take()
    patient.lose()
    assert patient.come_back()
    server.check_alive()
    assert "t" in server.broker.queues
    assert server.login().fails(UniqueAddMetadata("jms-client-id", "me", True))[0] == 114
    server.close(patient.client.conn, "killed")
    assert "t" not in server.broker.queues
    server.login().succeeds(UniqueAddMetadata("jms-client-id", "me", True))


def test_management_sees_where_a_session_is_and_may_end_one_that_waits(server: Server) -> None:
    patient = consuming(server)
    first = patient.client.conn
    patient.lose()
    (name,) = [one.name for one in server.broker.clients.sessions()]
    assert patient.come_back()
    assert [one.name for one in server.broker.clients.sessions()] == [name]
    assert list(server.broker.clients.connected) == [patient.client.conn]
    patient.lose()
    server.protocol.resumable.end(server.now, first)
    assert server.broker.queues["q"].consumer_count() == 1
    server.protocol.resumable.end(server.now, patient.client.conn)
    assert server.broker.queues["q"].consumer_count() == 0
    assert not server.broker.clients.connected
    assert not patient.come_back()


def test_only_its_own_client_gets_a_session(server: Server) -> None:
    patient = consuming(server)
    patient.lose()
    stranger = server.login("guest")
    stranger.send(ReattachSession("receiver", patient.last), 1)
    (answer,) = stranger.packets(ReattachSessionResponse)
    assert not answer.reattached
    elsewhere = server.connect()
    elsewhere.feed(HANDSHAKE)
    server.core(elsewhere.conn).client.remote = "9.9.9.9:1"
    elsewhere.send(ReattachSession("receiver", patient.last), 1)
    (answer,) = elsewhere.packets(ReattachSessionResponse)
    assert not answer.reattached
    server.acceptor = AcceptorConfig("another door", "0.0.0.0", 1)
    assert not patient.come_back()
    server.acceptor = None
    assert patient.come_back()


def test_a_redirected_client_cannot_reattach_its_sessions(server: Server) -> None:
    patient = consuming(server)
    redirect = CoreRedirect(server.core(patient.client.conn), server.now, "elsewhere")
    redirect.begin()
    redirect.send(server.now, TransportConfiguration("there"), [])
    patient.lose(noticed=False)
    assert not patient.come_back()


def test_names_cannot_be_tried_without_end(server: Server) -> None:
    guesser = server.greeted()
    for number in range(30):
        guesser.send(ReattachSession(f"guess-{number}", 0), 1)
    assert guesser.closed is not None and "refused logins" in guesser.closed


LISTS = (
    ("listSessions", "CONNECTION"),
    ("listSessionsAsJSON", "CONNECTION"),
    ("listAllSessionsAsJSON",),
    ("listConsumersAsJSON", "CONNECTION"),
    ("listAllConsumersAsJSON",),
    ("listProducersInfoAsJSON",),
    ("listConnectionsAsJSON",),
    ("listConnections", "", 1, 50),
    ("listSessions", "", 1, 50),
    ("listConsumers", "", 1, 50),
    ("listProducers", "", 1, 50),
)


def published(server: Server, conn: int, ear: Client) -> str:
    """Everything that management, notifications and the log say about sessions."""
    operator = server.login()
    answers = f"answers-{operator.conn}"
    operator.create_queue(answers)
    operator.consume(answers)
    texts = []
    for name, *given in LISTS:
        values = [f"{conn:08x}" if one == "CONNECTION" else one for one in given]
        request = text_message(
            "activemq.management",
            json.dumps(values),
            JMSReplyTo=answers,
            _AMQ_ResourceName="broker",
            _AMQ_OperationName=name,
        )
        operator.send(SendMessage(request, sender_id=0))
        server.settle()
        (answer,) = operator.deliveries()
        assert answer.message.properties.get("_AMQ_OperationSucceeded") is True, name
        texts.append(answer.message.text() or "")
    texts += [repr(dict(one.message.properties.items())) for one in ear.deliveries()]
    texts.append(repr(server.trace.events))
    return "\n".join(texts)


def test_names_that_are_published_open_nothing(server: Server) -> None:
    ear = server.login()
    ear.create_queue("ear", "activemq.notifications", 0)
    ear.consume("ear")
    patient = Patient(server, SECRET)
    patient.send(queue_request("q"))
    patient.send(CreateConsumer(consumer_id=0, queue="q", priority=4))
    patient.send(CreateProducer(3, "q"))
    patient.send(CreateConsumer(consumer_id=0, queue="q", priority=4))  # refused: it exists
    patient.send(SendMessage(text_message("q::other", "refused, and nobody waits"), sender_id=0))
    server.settle()
    patient.take()
    for noticed in (False, True):
        patient.lose(noticed)
        text = published(server, patient.client.conn, ear)
        assert "CONSUMER_CREATED" in text and "SESSION_CREATED" in text
        assert SECRET not in text
        (known,) = [one.name for one in server.broker.clients.sessions() if "q" in consumed(one)]
        assert known in text
        for name in (known, known.upper(), f"{patient.client.conn:08x}", ""):
            stranger = server.greeted()
            stranger.send(ReattachSession(name, patient.last), 1)
            (answer,) = stranger.packets(ReattachSessionResponse)
            assert not answer.reattached
    assert patient.come_back()
    assert SECRET not in published(server, patient.client.conn, ear)


def consumed(session: Session) -> list[str]:
    return [consumer.queue.name for consumer in session.consumers.values()]


def test_an_operator_closes_a_session_by_its_published_id(server: Server) -> None:
    patient = consuming(server)
    (session,) = server.broker.clients.sessions()
    operator = server.login()
    for name, closed in ((patient.name, False), (session.name, True)):
        request = text_message(
            "activemq.management",
            json.dumps([f"{patient.client.conn:08x}", name]),
            _AMQ_ResourceName="broker",
            _AMQ_OperationName="closeSessionWithID",
        )
        operator.send(SendMessage(request, sender_id=0))
        server.settle()
        assert (server.broker.queues["q"].consumer_count() == 0) is closed


def test_two_sessions_of_one_name_are_two(server: Server) -> None:
    """The second takes nothing from the first, which is another user's."""
    patient = consuming(server)
    other = Patient(server, "receiver", user="guest")
    assert len(server.broker.clients.sessions()) == 2
    other.lose()
    publish(server, "a")
    patient.take()
    assert patient.bodies() == ["a"]


def test_names_are_not_tried_from_many_connections(server: Server) -> None:
    """Java's session names are made from the time: they must not be searched."""
    patient = consuming(server)
    patient.lose()
    for number in range(20):
        guesser = server.greeted()
        guesser.send(ReattachSession(f"guess-{number}", 0), 1)
        server.close(guesser.conn, "enough")
    assert not patient.come_back()
    server.close(patient.client.conn, "refused")
    elsewhere = server.connect()
    elsewhere.feed(HANDSHAKE)
    server.core(elsewhere.conn).client.remote = "9.9.9.9:1"
    elsewhere.send(ReattachSession("guess", 0), 1)
    assert len(elsewhere.packets(ReattachSessionResponse)) == 1
    for each in server.protocol.resumable.lost.values():
        each.ttl_ns = 3_600 * SECOND
    server.now += 601 * SECOND
    assert patient.come_back()


def test_another_certificate_is_another_client(server: Server) -> None:
    patient = consuming(server)
    server.core(patient.client.conn).client.certificate = "CN=one"
    patient.lose()
    assert not patient.come_back()


def test_what_waits_for_confirmation_is_bounded(server: Server) -> None:
    patient = consuming(server, window=1_000)
    for number in range(30):
        publish(server, f"{number}" + "x" * 40_000)
    session = server.core(patient.client.conn).sessions[10]
    assert session.replay is not None
    assert session.replay.bytes <= session.replay.limit_bytes
    assert session.replay.first > 0
    patient.lose()
    assert not patient.come_back()


@pytest.mark.parametrize("last", [-2, 1_000, 1 << 30, -(1 << 31)])
def test_a_number_that_cannot_be_is_refused(server: Server, last: int) -> None:
    patient = consuming(server)
    patient.lose()
    patient.last = last
    assert not patient.come_back()


def test_two_sessions_of_one_connection_come_back_one_by_one(server: Server) -> None:
    patient = consuming(server)
    patient.client.send(
        CreateSessionV2(
            name="other",
            session_channel=11,
            version=136,
            user="admin",
            password="admin",
            confirmation_window=500,
        ),
        1,
    )
    patient.client.receive()
    patient.client.send(
        SendMessage(
            text_message("q", "from the other"), requires_response=True, correlation=-9, sender_id=0
        ),
        11,
    )
    patient.lose()
    server.settle()
    assert patient.come_back()
    patient.client.send(ReattachSession("other", -1), 1)
    server.settle()
    seen = patient.client.receive()
    assert [packet.correlation for channel, packet in seen if isinstance(packet, NullResponse)] == [-9]
    assert "from the other" in patient.bodies()
    assert not server.protocol.resumable.lost
