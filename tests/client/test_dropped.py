"""A confirmed message that no queue has: the client says so, in every way of sending."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atalanta.client import AddressFull, Message, MessageDropped, QueueDoesNotExist, SendFailed, Xid
from atalanta.client.blocking import Connection, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port

pytestmark = pytest.mark.process

SETTINGS = """<address-settings>
  <address-setting match="small.#"><max-size-bytes>10000</max-size-bytes>
    <address-full-policy>DROP</address-full-policy></address-setting></address-settings>
<addresses><address name="news"><multicast/></address></addresses>"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder, port = tmp_path_factory.mktemp("node"), free_port()
    with (
        BrokerProcess(write_broker_xml(folder, port, more=SETTINGS)),
        connect(f"tcp://127.0.0.1:{port}") as client,
    ):
        yield client


def filled(client: Connection, name: str) -> str:
    """Fills an address that drops what it has no room for."""
    producer = client.producer(name, "anycast")
    while True:
        try:
            producer.send(Message(bytes(2_000)))
        except MessageDropped:
            return name


def count(client: Connection, queue: str) -> int:
    return client.query_queue(queue).message_count


def test_a_full_address_that_drops(node: Connection, tmp_path: Path) -> None:
    name = filled(node, "small.one")
    before = count(node, name)
    for routing in ("anycast", None):
        producer = node.producer(name, routing)
        with pytest.raises(MessageDropped, match=rf"address {name} is full") as refused:
            producer.send(Message(b"x"))
        assert refused.value.code == 210
        with pytest.raises(MessageDropped, match="is full"):
            producer.send(Message(stream=[bytes(100_000), bytes(100_000)]))
        for _ in range(3):
            producer.send_soon(Message(b"x"))
        with pytest.raises(SendFailed, match=r"3 messages .* is full") as failed:
            producer.drain()
        assert isinstance(failed.value.errors[0], MessageDropped)
    assert count(node, name) == before


def test_a_transaction_with_a_dropped_message_is_rolled_back(node: Connection) -> None:
    name = filled(node, "small.two")
    before = count(node, name)
    node.create_queue("other", routing="anycast")
    with pytest.raises(AddressFull, match=f"{name} is full"), node.transaction() as transaction:
        transaction.send("other", Message(b"x"))
        transaction.send(name, Message(b"x"))
    with pytest.raises(AddressFull, match=f"{name} is full"):
        with node.xa_resource.branch(Xid(1, b"b", b"g")) as branch:
            branch.send("other", Message(b"x"))
            branch.send(name, Message(b"x"))
            branch.prepare()
    with pytest.raises(QueueDoesNotExist, match="no queue of address unheard takes"):
        with node.xa_resource.branch(Xid(1, b"b", b"h")) as branch:
            branch.send("unheard", Message(b"x"))
            branch.prepare()
    assert (count(node, "other"), count(node, name)) == (0, before)
    assert node.xa_resource.recover() == []


def test_the_command_line_says_so(node: Connection) -> None:
    cli = Cli(str(node.server))
    name = filled(node, "small.three")
    cli("produce", name, "--text", "x", status=1)
    assert f"address {name} is full" in cli.errors
    cli("produce", "topic://fresh.topic", "--text", "x")
    cli("produce", "fresh.topic", "--count", "3", status=1)
    assert "3 messages were refused" in cli.errors and "no queue of address fresh.topic takes it" in cli.errors
    cli("produce", "news", "--text", "x")
    cli("produce", "x", "--ttl", "100", "--delay", "100", status=2)
    assert "--ttl ends before --delay" in cli.errors


def nobody(client: Connection) -> str:
    return "nowhere"


def filtering(client: Connection) -> str:
    client.create_queue("picky", routing="anycast", filter="colour = 'red'", ignore_existing=True)
    return "picky"


@pytest.mark.parametrize("made", [nobody, filtering])
def test_no_queue_takes_the_message(node: Connection, made: Callable[[Connection], str]) -> None:
    name = made(node)
    producer = node.producer(name)
    for _ in range(2):
        with pytest.raises(MessageDropped, match=f"no queue of address {name} takes it") as refused:
            producer.send(Message(b"x"))
        assert refused.value.code == 100
    with (
        pytest.raises(QueueDoesNotExist, match=f"no queue of address {name} takes"),
        node.transaction() as transaction,
    ):
        transaction.send(name, Message(b"x"))
    if made is filtering:
        producer.send(Message(b"x", properties={"colour": "red"}))


def test_a_topic_may_be_without_subscribers(node: Connection) -> None:
    for name, routing in (("news", None), ("news", "multicast"), ("fresh", "multicast")):
        node.producer(name, routing).send(Message(b"x"))
        with node.transaction() as transaction:
            transaction.send(name, Message(b"x"), routing)


def test_a_repeat_is_counted_and_no_error(node: Connection) -> None:
    producer = node.producer("once", "anycast")
    for _ in range(3):
        producer.send(Message(b"x", duplicate_id="same"))
    assert producer.repeats == 2 and count(node, "once") == 1


def test_times_and_priority_are_those_of_the_send(node: Connection) -> None:
    consumer = node.consumer("times", routing="anycast")
    producer = node.producer("times", "anycast")
    message = Message("first", priority=2, properties={"n": 1})
    producer.send(message, ttl_s=3_600, priority=9)
    got = consumer.receive(10)
    assert got is not None and got.priority == 9 and got.properties == {"n": 1}
    assert 3_590_000 < got.expires_at_ms - got.timestamp_ms <= 3_600_001
    assert (message.priority, message.expires_at_ms, message.properties) == (2, 0, {"n": 1})
    producer.send_soon(message, delay_s=0.3)
    with node.transaction() as transaction:
        transaction.send("times", Message("second"), delay_s=0.01, priority=0)
    got = consumer.receive(10)
    assert got is not None and got.text == "second" and got.priority == 0
    got = consumer.receive(10)
    assert got is not None and got.text == "first"
    for wrong in ({"ttl_s": 0}, {"ttl_s": 1, "delay_s": 1}, {"delay_s": -1}, {"delay_s": float("inf")}):
        with pytest.raises(ValueError, match="_s="):
            producer.send(message, **wrong)
