"""The version that a dialer agrees on with a broker: recorded conversations, and brokers of every version in memory."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

import pytest

from atalanta.wire.core.client.errors import IncompatibleVersion
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.client.version_negotiation import VersionNegotiation
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse, CreateSessionV2
from atalanta.wire.core.packets.topology import ClusterTopologyV2
from tests.golden.frames import VECTORS
from tests.wire.core.client.engine_rig import Pair, encoded, taken

AGREED = {
    "2.6.4": 129, "2.16.0": 130, "2.28.0": 134, "2.36.0": 135, "2.37.0": 136, "2.44.0": 136, "2.56.0": 136,
}  # fmt: skip
WAYS = ("link", "client", "client-id")  # a link between nodes; a client; a dialer that sends a client id


def recorded(artemis: str, way: str) -> Iterator[tuple[str, bytes]]:
    for line in (VECTORS / "negotiations.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if (entry["artemis"], entry["way"]) == (artemis, way):
            yield entry["from"], bytes.fromhex(entry["frame"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("artemis", AGREED)
def test_the_conversation_with_a_real_broker(artemis: str, way: str) -> None:
    sent: list[bytes] = []
    negotiation = VersionNegotiation(lambda packet, channel: sent.append(codec.encode(packet, channel)))
    settings = SessionSettings(
        name=f"recorded-{way}", user="admin", password="admin", client_id="me" if way == "client-id" else None
    )
    if way == "client":
        negotiation.subscribe(False)
    negotiation.create(settings, 10, way == "client")
    ended = False
    for sender, data in recorded(artemis, way):
        if sender == "dialer":
            assert sent.pop(0) == data
            continue
        (frame,) = Framer(False).feed(data)
        packet = codec.decode_frame(frame, negotiation.version)
        again = negotiation.on_packet(packet, frame.channel)
        ended = isinstance(packet, CreateSessionResponse)
        assert again == (isinstance(packet, ExceptionResponse) and packet.code == 108)
    assert ended and not sent and negotiation.known
    assert negotiation.version == AGREED[artemis]


def negotiation() -> tuple[VersionNegotiation, list[Packet]]:
    sent: list[Packet] = []
    return VersionNegotiation(lambda packet, channel: sent.append(packet)), sent


def versions(sent: list[Packet]) -> list[tuple[int, int]]:
    return [(each.session_channel, each.version) for each in sent if isinstance(each, CreateSession)]


def test_a_peer_that_knows_no_version_is_told_so() -> None:
    dialer, sent = negotiation()
    dialer.create(SessionSettings("s"), 10)
    refusal = ExceptionResponse(108, "versions incompatible")
    assert [dialer.on_packet(refusal, 1) for _ in range(8)] == [True] * 7 + [False]
    assert [version for _, version in versions(sent)] == [136, 135, 134, 133, 132, 131, 130, 129]


@pytest.mark.parametrize("code", [105, 112, 212])
def test_another_refusal_is_not_about_the_version(code: int) -> None:
    dialer, sent = negotiation()
    dialer.create(SessionSettings("s"), 10)
    assert not dialer.on_packet(ExceptionResponse(code, "no"), 1)
    assert versions(sent) == [(10, 136)]


def test_sessions_that_are_requested_at_once_find_the_version_together() -> None:
    dialer, sent = negotiation()
    dialer.create(SessionSettings("a"), 10)
    dialer.create(SessionSettings("b"), 11)
    for _ in range(4):
        assert dialer.on_packet(ExceptionResponse(108, "versions incompatible"), 1)
    dialer.on_packet(CreateSessionResponse(134), 1)
    dialer.on_packet(CreateSessionResponse(134), 1)
    assert versions(sent) == [(10, 136), (11, 136), (10, 135), (11, 135), (10, 134), (11, 134)]
    assert dialer.version == 134


def test_the_form_in_which_members_leave_tells_no_version() -> None:
    dialer, sent = negotiation()
    dialer.create(SessionSettings("s", client_id="me"), 10)
    dialer.on_packet(ClusterTopologyV2(exit=True, node_id="gone"), 0)
    assert versions(sent) == []
    assert not dialer.known


# -- clients, and brokers of every version ------------------------------------------------------
OLD = (129, 130, 131, 132, 133, 134, 135)


def at(version: int, resume: bool = True) -> Pair:
    pair = Pair(resume)
    pair.broker.version = pair.link.version = version
    pair.dial()
    return pair


@pytest.mark.parametrize("subscribes", [True, False])
@pytest.mark.parametrize("version", OLD)
def test_a_client_speaks_the_version_of_its_broker(version: int, subscribes: bool) -> None:
    pair = Pair(subscribe_topology=subscribes)
    pair.broker.version = version
    pair.dial()
    pair.broker.queues["q"] = deque()
    session = pair.session()
    pair.run()
    assert session.open and pair.client.version == version
    assert (CreateSessionV2 in map(type, pair.link.packets(CreateSession))) == (subscribes and version >= 131)
    producer = session.producer("q")
    for text in ("a", "b"):
        producer.send_message(encoded(text))
    producer.send(b"x" * 300_000, encoded("").head, confirm=True)
    created = session.request(CreateQueueV2(address="other", queue="other"))
    consumer, opened = session.consumer("q")
    session.start()
    pair.run()
    assert (producer.confirmed, producer.unconfirmed) == (3, 0)
    assert created.done and created.error is None and opened.done
    bodies = [taken(consumer).message.body for _ in range(3)]
    assert [len(body) for body in bodies[2:]] == [300_000]


@pytest.mark.parametrize("version", OLD)
def test_a_commit_is_answered_whether_or_not_the_answer_has_its_id(version: int) -> None:
    pair = at(version)
    pair.broker.queues["q"] = deque()
    session = pair.session(transacted=True)
    pair.run()
    session.producer("q").send_message(encoded("a"))
    commit = session.commit()
    other = session.request(CreateQueueV2(address="other", queue="q"))  # exists: this one is refused
    pair.run()
    assert commit.done and commit.error is None
    assert other.error is not None
    assert len(pair.broker.queues["q"]) == 1


@pytest.mark.parametrize(("before", "after"), [(136, 129), (129, 136), (134, 130), (131, 136)])
def test_what_waits_is_written_anew_for_a_broker_of_another_version(before: int, after: int) -> None:
    pair = at(before)
    pair.broker.queues["q"] = deque()
    pair.broker.confirm = False
    session = pair.session()
    pair.run()
    producer = session.producer("q")
    producer.send_message(encoded("a"))
    producer.send(b"x" * 300_000, encoded("").head, confirm=True)
    pair.run()
    created = session.request(CreateQueueV2(address="other", queue="other"))
    pair.cut()
    pair.broker.version = after
    pair.broker.confirm = True
    pair.broker.queues["q"].clear()
    pair.dial()
    assert pair.client.version == after
    assert (producer.confirmed, producer.unconfirmed) == (2, 0)
    assert created.done and created.error is None
    assert [len(message.body) for message in pair.broker.queues["q"]][1:] == [300_000]


def test_a_broker_without_a_common_version_is_named() -> None:
    pair = at(128)
    session = pair.session()
    pair.run()
    assert isinstance(session.opened.error, IncompatibleVersion)
