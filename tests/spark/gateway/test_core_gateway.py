"""The gateway over the real client and a real node."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence

import pytest

from atalanta.client import Chunk, blocking
from atalanta.client.log.log_entries import entries_of
from atalanta.message.message import Message
from atalanta.spark.errors import (
    GatewayError,
    LeaseTaken,
    LoginRefused,
    NodeUnavailable,
    QueueMissing,
    QueueRecreated,
    RangeIncomplete,
)
from atalanta.spark.gateway.core_gateway import connect, url_of
from atalanta.spark.gateway.gateway import Credentials, Gateway, OutMessage
from atalanta.spark.write.branch_name import BranchName
from tests.ports import free_port
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster

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
        expires_at_ms=0, timestamp_ms=5000, properties={"n": 1}, group_id="g",
        correlation_id="c", reply_to="queue://back", duplicate_id=duplicate_id,
    )  # fmt: skip


def messages_of(chunks: Sequence[Chunk]) -> list[Message]:
    return [entry.message for chunk in chunks for entry in entries_of(chunk.count, chunk.content)]


def test_a_range_is_read_again_until_it_is_acknowledged(
    brokers: BrokerCluster, gateway: Gateway
) -> None:
    brokers.nodes[0].publish([f"m{number}" for number in range(50)])
    position = gateway.position(QUEUE)
    assert (position.last - position.first + 1, position.messages) == (50, 50)
    start, incarnation = position.first - 1, position.incarnation
    for _ in range(2):
        chunks = list(gateway.read(QUEUE, incarnation, start, position.last, 1000, None, 1 << 20))
        assert len(chunks) > 1 and chunks[-1].last
        read = [message.text() for message in messages_of(chunks)]
        assert read == [f"m{number}" for number in range(50)]
    matching = gateway.read(
        QUEUE, incarnation, start, position.last, 1 << 20, "initial = 'x'", 1 << 20
    )
    chosen = list(matching)
    assert [chunk.count for chunk in chosen] == [0]
    plan = gateway.plan(QUEUE, incarnation, start, 20, -1)
    assert (plan.messages, plan.end) == (20, start + 20)
    assert gateway.seek(QUEUE, 0) == start
    assert list(gateway.lost_ranges(QUEUE, incarnation, start, position.last)) == []
    old = gateway.lease(QUEUE, "g", "one", 60_000, 0)
    new = gateway.lease(QUEUE, "g", "another", 60_000, 0)
    assert new.epoch > old.epoch
    with pytest.raises(LeaseTaken, match="another"):
        gateway.ack_through(QUEUE, incarnation, "g", old.epoch, position.last)
    assert gateway.ack_through(QUEUE, incarnation, "g", new.epoch, position.last) == 50
    assert gateway.ack_through(QUEUE, incarnation, "g", new.epoch, position.last) == 0
    with pytest.raises(RangeIncomplete):
        list(gateway.read(QUEUE, incarnation, start, position.last, 1000, None, 1 << 20))
    with pytest.raises(QueueRecreated):
        gateway.plan(QUEUE, "another", start, 1, -1)


def test_branches_are_committed_or_rolled_back_by_name(gateway: Gateway) -> None:
    before = gateway.position("out")
    first, second = BranchName.new("query", 0, 0), BranchName.new("query", 0, 1)
    gateway.prepare([text("a"), text("b")], str(first))
    gateway.prepare([text("c")], str(second))
    assert gateway.position("out").last == before.last
    assert sorted(gateway.prepared_branches()) == sorted([str(first), str(second)])
    assert [gateway.commit_branch(str(first)) for _ in range(2)] == [True, False]
    assert [gateway.roll_back_branch(str(second)) for _ in range(2)] == [True, False]
    assert gateway.prepared_branches() == []
    after = gateway.position("out")
    chunks = gateway.read(
        "out", after.incarnation, before.last, after.last, 1 << 20, None, 1 << 20
    )
    messages = messages_of(list(chunks))
    assert [message.text() for message in messages] == ["a", "b"]
    assert (messages[0].timestamp, messages[0].group_id, messages[0].routing_type) == (5000, "g", 1)
    assert messages[0].property_value("JMSCorrelationID") == "c"


def test_a_branch_that_an_operator_has_ended(
    gateway: Gateway, brokers: BrokerCluster
) -> None:
    names = [str(BranchName.new("operator", 0, number)) for number in range(4)]
    for name in names:
        gateway.prepare([text("a")], name)
    url = f"tcp://{brokers.servers}"
    with blocking.connect(url, user=USER, password=PASSWORD) as connection:
        management = connection.management()
        for end in ("commit", "commit", "rollback", "rollback"):
            listed = management.call("broker", "listPreparedTransactions")
            assert isinstance(listed, list)
            base64 = str(listed[0]).partition("base64: ")[2].partition(" ")[0]
            assert management.call("broker", f"{end}PreparedTransaction", base64)
    assert gateway.commit_branch(names[0]) and gateway.roll_back_branch(names[2])
    with pytest.raises(GatewayError, match=r"\(XA code 7\)"):
        gateway.roll_back_branch(names[1])
    with pytest.raises(GatewayError, match=r"\(XA code 6\)"):
        gateway.commit_branch(names[3])
    assert sorted(gateway.prepared_branches()) == sorted([names[1], names[3]])


def test_a_branch_with_a_duplicate_message_is_not_prepared(gateway: Gateway) -> None:
    first = str(BranchName.new("own", 0, 0))
    gateway.prepare([text("a", "id-1")], first)
    assert gateway.commit_branch(first)
    with pytest.raises(GatewayError):
        gateway.prepare([text("a", "id-1")], str(BranchName.new("own", 1, 0)))
    assert not [name for name in gateway.prepared_branches() if name.startswith("own/")]


def test_the_first_decision_of_a_batch_counts(gateway: Gateway) -> None:
    assert gateway.decisions("query") == {}
    for batch, decision in [(0, "one"), (0, "two"), (1, "three")]:
        gateway.decide("query", batch, decision)
    gateway.decide("other", 0, "four")
    assert gateway.decisions("query") == {0: "one", 1: "three"}
    gateway.forget_decisions("query", 1)
    gateway.decide("query", 0, "late")
    assert gateway.decisions("query") == {1: "three"}
    assert gateway.decisions("other") == {0: "four"}


def test_errors_have_classes_of_their_own(gateway: Gateway, brokers: BrokerCluster) -> None:
    with pytest.raises(QueueMissing, match="flights::none"):
        gateway.position("flights::none")
    with pytest.raises(LoginRefused):
        connect(brokers.servers, Credentials(USER, "wrong", 5.0, 10.0))
    nobody = f"127.0.0.1:{free_port()}"
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


def test_the_queues_of_a_node_that_match_a_pattern(gateway: Gateway) -> None:
    assert list(gateway.queues("arch*")) == ["archive"]
    assert {"archive", "out"} <= set(gateway.queues("#"))
    assert list(gateway.queues("flights.#")) == []


def test_a_node_of_activemq_classic_is_an_error_at_once() -> None:
    hello = (240).to_bytes(4, "big") + b"\x01ActiveMQ" + bytes(231)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def classic() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(hello)
                peer.recv(1)

        thread = threading.Thread(target=classic)
        thread.start()
        with pytest.raises(GatewayError, match="speaks OpenWire there, as ActiveMQ Classic") as caught:
            connect(f"127.0.0.1:{port}", LOGIN)
        thread.join()
    assert not isinstance(caught.value, NodeUnavailable)  # which is tried again for nodeTimeout
