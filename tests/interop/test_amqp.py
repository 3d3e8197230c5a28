"""A qpid-jms client sends at a real node in AMQP; CORE clients at the other node of the pair receive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.client.blocking import connect
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SMALL, LARGE = 20, 400_000
WORD = "säge € 𝄞 "
BYTES = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]"
SCALARS = "Boolean:true,Byte:-1,Short:-2,Integer:-3,Long:-4,Float:0.5,Double:0.1,Character:ß,null"
# Longer values are told by their length and a checksum of their text (Kinds.java).
LONG_TEXT = "String:400010 long, sum 3930676830"
LONG_BYTES = "byte[]:1864514 long, sum 392127812"
MAP = (
    "map boolean=Boolean:true,byte=Byte:-1,bytes={bytes},char=Character:ß,double=Double:0.1,"
    "float=Float:0.5,int=Integer:-3,long=Long:-4,short=Short:-2,string=String:" + WORD
)
BODIES = {
    ("text", SMALL): f"text String:{WORD * 3}",
    ("text", LARGE): f"text {LONG_TEXT}",
    ("bytes", SMALL): f"bytes byte[]:{BYTES}",
    ("bytes", LARGE): f"bytes {LONG_BYTES}",
    ("map", SMALL): MAP.format(bytes=f"byte[]:{BYTES}"),
    ("map", LARGE): MAP.format(bytes=LONG_BYTES),
    ("stream", SMALL): f"stream String:{WORD * 3},{SCALARS}",
    ("stream", LARGE): f"stream {LONG_TEXT},{SCALARS}",
    ("object", SMALL): f"object ArrayList:[{WORD}, {'x' * SMALL}]",
    ("object", LARGE): "object ArrayList:400014 long, sum 1032409750",
    ("empty", SMALL): "bytes byte[]:[]",
}
PROPERTIES = (
    "boolean=Boolean:true,byte=Byte:-1,double=Double:0.1,float=Float:0.5,int=Integer:-3,long=Long:-4,"
    "number=Integer:{number},short=Short:-2,string=String:säge"
)


class Pair:
    """Two nodes of a cluster; the first has an acceptor for AMQP."""

    def __init__(self, jms: Jms, first: BrokerProcess, second: BrokerProcess, port: int) -> None:
        self.jms = jms
        self.first = first
        self.second = second
        self.amqp_url = f"amqp://127.0.0.1:{port}"

    def open_amqp(self, name: str) -> str:
        """A connection of the qpid-jms client to the first node."""
        self.jms("open", name, self.amqp_url, USER, PASSWORD)
        return name

    def receive_kinds(self, consumer: str, count: int) -> list[str]:
        """The next messages, at most one more than `count`: all a receiver sees of each, as a line."""
        found: list[str] = []
        while len(found) < count:
            got = self.jms("receive kinds", consumer, 1, 10_000)
            if not got:
                break
            found += got
        return found + self.jms("receive kinds", consumer, 1, 500)


@pytest.fixture(scope="module")
def pair(lineup: str, brokers: Lineup, jms: Jms) -> Iterator[Pair]:
    """A running pair with static connectors, redistribution at once."""
    if not lineup.startswith("artemis"):
        pytest.skip("nodes of ours have no acceptor for AMQP")
    port = free_port()

    def shaping(index: int, ports: list[int]) -> Shape:
        acceptor = f'<acceptor name="amqp">tcp://127.0.0.1:{port}?protocols=AMQP</acceptor>'
        cluster = Cluster(peers=(ports[1 - index],))
        return Shape(cluster, 0, acceptors=acceptor if index == 0 else "")

    first, second = nodes = brokers.cluster(lineup, shaping)
    for node in nodes:
        node.start()
    for node in nodes:
        until(f"{node.name} knows both", lambda node=node: len(jms.topology(node)) == 2)  # type: ignore[misc]
    yield Pair(jms, first, second, port)
    for node in nodes:
        node.close()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of this test's own."""
    return "amqp." + str(request.node.name).replace("[", ".").replace("]", "").replace(" ", ".")


@pytest.fixture
def producer(pair: Pair, name: str) -> Iterator[str]:
    """A producer of the qpid-jms client at the first node, for the queue of the test's name."""
    connection = pair.open_amqp(f"{name}.sender")
    yield pair.jms.producer(f"{connection}.p", connection, f"queue:{name}")
    pair.jms.close_all(connection)


@pytest.fixture
def consumer(pair: Pair, name: str) -> Iterator[str]:
    """A consumer of the CORE client at the second node; made before the producer, and known at the first node."""
    yield from consuming(pair, name, f"queue:{name}")


def consuming(pair: Pair, name: str, source: str) -> Iterator[str]:
    """A consumer that acknowledges each message, and its connection's end."""
    connection = pair.jms.open(f"{name}.receiver", pair.second)
    line = pair.jms.consumer(f"{connection}.c", connection, source, mode="each")
    yield line
    pair.jms.close_all(connection)


def known_there(pair: Pair, consumer: str, producer: str) -> None:
    """Waits until a probe arrives: from then on the consumer is known where one sends."""

    def arrived() -> bool:
        pair.jms("send kind", producer, "text", -1, 1)
        return bool(pair.jms("receive kinds", consumer, 1, 300))

    until("a probe arrives", arrived)
    while pair.jms("receive kinds", consumer, 100, 500):
        pass


def whole(kind: str, size: int, number: int) -> str:
    """The line of such a message: body, headers and properties."""
    return "|".join(
        (
            BODIES[kind, size],
            f"type type of {kind}",
            f"correlation correlated {number}",
            "reply to ActiveMQQueue[answers]",
            "priority 7",
            "mode 2",
            "expires true",
            "redelivered false",
            "JMSXDeliveryCount=Integer:1," + PROPERTIES.format(number=number),
        )
    )


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_every_kind_of_message_arrives_once_and_whole(
    pair: Pair, consumer: str, producer: str, size: int
) -> None:
    known_there(pair, consumer, producer)
    kinds = [kind for kind, each in BODIES if each == size]
    for number, kind in enumerate(kinds):
        pair.jms("send kind", producer, kind, number, size)
    wanted = [whole(kind, size, number) for number, kind in enumerate(kinds)]
    assert pair.receive_kinds(consumer, len(kinds)) == wanted


@pytest.mark.differs(
    "artemis", "a real node closes the consumer: its streams cannot hold the bytes of AMQP"
)
def test_streams_with_bytes_arrive(pair: Pair, consumer: str, producer: str) -> None:
    known_there(pair, consumer, producer)
    pair.jms("send kind", producer, "streamed bytes", 1, SMALL)
    (got,) = pair.receive_kinds(consumer, 1)
    assert got.split("|")[0] == f"stream Integer:5,byte[]:{BYTES}"


def test_subscribers_of_a_topic_get_a_copy_each(pair: Pair, name: str) -> None:
    jms = pair.jms
    connection = jms.open(f"{name}.receiver", pair.second)
    lines = [
        jms.consumer(f"{connection}.{n}", connection, f"topic:{name}", mode="each")
        for n in range(2)
    ]
    sender = pair.open_amqp(f"{name}.sender")
    producer = jms.producer(f"{sender}.p", sender, f"topic:{name}")
    for line in lines:
        known_there(pair, line, producer)
    jms("receive kinds", lines[0], 1000, 500)
    jms("send kind", producer, "text", 5, SMALL)
    for line in lines:
        (got,) = pair.receive_kinds(line, 1)
        assert got == whole("text", SMALL, 5)
    jms.close_all(connection, sender)


def test_the_python_client_reads_them(pair: Pair, name: str, producer: str) -> None:
    with connect(f"tcp://127.0.0.1:{pair.second.port}", user=USER, password=PASSWORD) as client:
        pair.jms.create(pair.second, name, name, "ANYCAST")
        consumer = client.consumer(name, ack="auto")

        def arrived() -> bool:
            pair.jms("send kind", producer, "text", -1, 1)
            return consumer.receive(0.3) is not None

        until("a probe arrives", arrived)
        while consumer.receive(0.5) is not None:
            pass
        for number, kind in enumerate(("text", "bytes", "map")):
            pair.jms("send kind", producer, kind, number, SMALL)
        found = [consumer.receive(10.0) for _ in range(3)]
        assert consumer.receive(0.5) is None
    messages = [message for message in found if message is not None]
    assert [message.properties["number"] for message in messages] == [0, 1, 2]
    assert messages[0].text == WORD * 3
    assert messages[1].body == bytes(range(SMALL))
    assert (messages[2].map or {})["bytes"] == bytes(range(SMALL))
    assert (
        messages[0].properties["string"] == "säge" and messages[0].correlation_id == "correlated 0"
    )


def test_an_amqp_client_reads_what_has_been_at_the_other_node(
    pair: Pair, name: str, producer: str
) -> None:
    """To the second node for a consumer that takes nothing, and back to an AMQP client at the first."""
    jms = pair.jms
    connection = jms.open(f"{name}.receiver", pair.second, "consumerWindowSize=0")
    consumer = jms.consumer(f"{connection}.c", connection, f"queue:{name}", mode="each")
    known_there(pair, consumer, producer)
    kinds = [kind for kind, size in BODIES if size == SMALL]
    for number, kind in enumerate(kinds):
        jms("send kind", producer, kind, number, SMALL)
    until("they are at the second", lambda: jms.queue(pair.second, name)[1] == len(kinds))
    jms.close_all(connection)
    receiver = pair.open_amqp(f"{name}.amqp")
    back = jms.consumer(f"{receiver}.c", receiver, f"queue:{name}", mode="each")
    found = pair.receive_kinds(back, len(kinds))
    jms.close_all(receiver)
    wanted = [whole(kind, SMALL, number) for number, kind in enumerate(kinds)]
    wanted = [line.replace("ActiveMQQueue[answers]", "answers") for line in wanted]
    # The client's own kind of message without a body, which is no other kind in CORE.
    wanted = [line.replace("bytes byte[]:[]|", "empty|") for line in wanted]
    assert found == wanted


def test_all_arrive_once_though_the_node_of_the_consumer_is_killed(pair: Pair, name: str) -> None:
    jms = pair.jms
    options = "reconnectAttempts=-1&retryInterval=100&blockOnAcknowledge=true"
    connection = jms.open(f"{name}.receiver", pair.second, options)
    consumer = jms.consumer(f"{connection}.c", connection, f"queue:{name}", mode="each")
    sender = pair.open_amqp(f"{name}.sender")
    producer = jms.producer(f"{sender}.p", sender, f"queue:{name}")
    known_there(pair, consumer, producer)
    jms.send(producer, range(100))
    got = jms.receive(consumer, 30, 5_000)
    pair.second.kill()
    jms.send(producer, range(100, 200))
    pair.second.start()
    jms.send(producer, range(200, 300))
    (rest,) = jms.collect([consumer], 270, 60.0)
    numbers: list[int] = []
    for text in got + rest:
        number = int(text.rstrip("!"))
        # The acknowledgement of the last before the end may have died with the node.
        if not (text.endswith("!") and number in numbers):
            numbers.append(number)
    assert sorted(numbers) == list(range(300))
    jms.close_all(connection, sender)
