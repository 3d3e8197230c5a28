"""The gateway over the real client and a real node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from atalanta.client import Chunk
from atalanta.client.log.log_entries import Message, entries_of
from atalanta.spark.errors import (
    Fenced,
    GatewayError,
    IncarnationChanged,
    LoginRefused,
    NodeUnavailable,
    QueueMissing,
    RangeLost,
)
from atalanta.spark.gateway.core_gateway import connect, url_of
from atalanta.spark.gateway.gateway import Credentials, Gateway, OutMessage
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster, free_ports

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

LOGIN = Credentials(USER, PASSWORD, 5.0, 10.0)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path_factory.mktemp("brokers"), 1) as cluster:
        yield cluster


@pytest.fixture
def gateway(brokers: BrokerCluster) -> Iterator[Gateway]:
    made = connect(brokers.servers, LOGIN)
    yield made
    made.close()


def text(what: str, duplicate_id: str | None = None) -> OutMessage:
    return OutMessage(
        address="out", routing="anycast", body=None, text=what, kind=3, durable=True, priority=4,
        expiration_ms=0, timestamp_ms=5000, properties={"n": 1}, group_id="g",
        correlation_id="c", reply_to="queue://back", duplicate_id=duplicate_id,
    )  # fmt: skip


def messages_of(chunks: Sequence[Chunk]) -> list[Message]:
    return [entry.message for chunk in chunks for entry in entries_of(chunk.count, chunk.entries)]


def test_a_range_is_read_again_until_it_is_acknowledged(
    brokers: BrokerCluster, gateway: Gateway
) -> None:
    brokers.nodes[0].publish([f"m{number}" for number in range(50)])
    position = gateway.position(QUEUE)
    assert (position.last - position.first + 1, position.messages) == (50, 50)
    start, incarnation = position.first - 1, position.incarnation
    for _ in range(2):
        chunks = list(gateway.read(QUEUE, incarnation, start, position.last, 1000, None))
        assert len(chunks) > 1 and chunks[-1].last
        read = [message.text() for message in messages_of(chunks)]
        assert read == [f"m{number}" for number in range(50)]
    chosen = list(gateway.read(QUEUE, incarnation, start, position.last, 1 << 20, "initial = 'x'"))
    assert [chunk.count for chunk in chosen] == [0]
    plan = gateway.plan(QUEUE, incarnation, start, 20, -1)
    assert (plan.messages, plan.end) == (20, start + 20)
    assert gateway.seek(QUEUE, 0) == start
    assert list(gateway.lost_ranges(QUEUE, incarnation, start, position.last)) == []
    old = gateway.lease(QUEUE, "g", "one", 60_000, 0)
    new = gateway.lease(QUEUE, "g", "another", 60_000, 0)
    assert new.epoch > old.epoch
    with pytest.raises(Fenced, match="another"):
        gateway.ack_through(QUEUE, incarnation, "g", old.epoch, position.last)
    assert gateway.ack_through(QUEUE, incarnation, "g", new.epoch, position.last) == 50
    assert gateway.ack_through(QUEUE, incarnation, "g", new.epoch, position.last) == 0
    with pytest.raises(RangeLost):
        list(gateway.read(QUEUE, incarnation, start, position.last, 1000, None))
    with pytest.raises(IncarnationChanged):
        gateway.plan(QUEUE, "another", start, 1, -1)


def test_a_transaction_happens_once_for_an_id(gateway: Gateway) -> None:
    before = gateway.position("out")
    assert gateway.send_transaction([text("a"), text("b")], "query", 0, 0) is True
    assert gateway.send_transaction([text("a"), text("b")], "query", 0, 0) is False
    assert gateway.send_transaction([text("c")], "query", 1, 0) is True
    assert gateway.send_transaction([text("b")], "query", 0, 0) is False
    assert gateway.send_transaction([text("d")], "query", 1, 1) is True
    after = gateway.position("out")
    chunks = gateway.read("out", after.incarnation, before.last, after.last, 1 << 20, None)
    messages = messages_of(list(chunks))
    assert [message.text() for message in messages] == ["a", "b", "c", "d"]
    first = messages[0]
    assert (first.timestamp, first.group_id, first.routing_type) == (5000, "g", 1)
    assert first.property_value("JMSCorrelationID") == "c"


def test_a_message_refused_for_its_own_duplicate_id_is_no_repeated_commit(
    gateway: Gateway,
) -> None:
    assert gateway.send_transaction([text("a", "id-1")], "own", 0, 0) is True
    with pytest.raises(GatewayError):
        gateway.send_transaction([text("a", "id-1")], "own", 1, 0)


def test_errors_have_classes_of_their_own(gateway: Gateway, brokers: BrokerCluster) -> None:
    with pytest.raises(QueueMissing, match="flights::none"):
        gateway.position("flights::none")
    with pytest.raises(LoginRefused):
        connect(brokers.servers, Credentials(USER, "wrong", 5.0, 10.0))
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(NodeUnavailable, match=nobody):
        connect(nobody, LOGIN)
    assert [member.server for member in gateway.topology()] == [brokers.servers]


def test_a_killed_node_is_unavailable_until_it_is_back(
    brokers: BrokerCluster, gateway: Gateway
) -> None:
    before = gateway.position("out")
    brokers.kill()
    with pytest.raises(NodeUnavailable):
        gateway.position("out")
    brokers.start()
    with pytest.raises(NodeUnavailable):
        gateway.position("out")
    again = connect(brokers.servers, LOGIN)
    assert again.position("out") == before
    again.close()


def test_urls_keep_their_own_options() -> None:
    assert url_of("a:1", LOGIN).startswith("tcp://a:1?stay=true&reconnectAttempts=0&")
    assert url_of("tcp://a:1?user=x", LOGIN).startswith("tcp://a:1?user=x&stay=true")
