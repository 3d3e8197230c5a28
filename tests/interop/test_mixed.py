"""Two nodes in one cluster, JMS clients that stay where they connect: messages cross both ways."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.jms_client import Client, Pair, start

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def pair(lineup: str, brokers: Lineup, jms: Jms) -> Iterator[Pair]:
    """A running pair with static connectors, redistribution at once."""
    nodes = brokers.pair(lineup)
    start(jms, nodes)
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture(params=["first-to-second", "second-to-first"])
def way(request: pytest.FixtureRequest, pair: Pair) -> Pair:
    """The pair as (where messages are sent, where they are consumed)."""
    return pair if request.param == "first-to-second" else (pair[1], pair[0])


def test_both_tell_clients_the_same_topology(jms: Jms, pair: Pair) -> None:
    wanted = sorted(f"127.0.0.1:{node.port}" for node in pair)
    until("the first tells both", lambda: sorted(jms.topology(pair[0]).values()) == wanted)
    until("both tell the same", lambda: jms.topology(pair[0]) == jms.topology(pair[1]))


def test_queue_messages_go_to_the_consumer(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(200))
    assert client.numbers([consumer], 200) == [list(range(200))]


def test_consumers_on_both_sides_share(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumers = [client.consumer(node, queue) for node in way]
    producer = client.producer(way[0], queue)
    client.warm(producer, consumers[1])
    client.jms.receive(consumers[0], 1000, 300)
    client.jms.send(producer, range(100))
    shares = client.numbers(consumers, 100)
    assert [len(share) for share in shares] == [50, 50]
    assert sorted(shares[0] + shares[1]) == list(range(100))


def test_without_any_consumer_messages_stay_where_they_were_sent(client: Client, way: Pair) -> None:
    name = client.name("q")
    client.leave(client.producer(way[1], "queue:" + name))  # the queue exists on both sides
    producer = client.producer(way[0], "queue:" + name)
    client.jms.send(producer, range(30))
    assert client.jms.queue(way[0], name)[1] == 30
    assert client.numbers([client.consumer(way[0], "queue:" + name)], 30) == [list(range(30))]


def test_every_topic_subscriber_gets_every_message(client: Client, pair: Pair) -> None:
    topic = "topic:" + client.name("t")
    consumers = [client.consumer(node, topic) for node in pair]
    producers = [client.producer(node, topic) for node in pair]
    client.warm(producers[0], consumers[1])
    client.warm(producers[1], consumers[0])
    for consumer in consumers:
        client.jms.receive(consumer, 1000, 300)
    client.jms.send(producers[0], range(50))
    client.jms.send(producers[1], range(50, 100), persistent="false")
    for got in client.numbers(consumers, 200):
        assert sorted(got) == list(range(100))
        assert [n for n in got if n < 50] == list(range(50))
        assert [n for n in got if n >= 50] == list(range(50, 100))


@pytest.mark.parametrize("where", ["there", "here", "both"])
def test_subscribers_whose_topics_overlap_get_every_message(client: Client, way: Pair, where: str) -> None:
    base = client.name("t")
    nodes = {"there": way[1:], "here": way[:1], "both": way}[where]
    consumers = [client.consumer(node, f"topic:{base}.{last}") for node in nodes for last in ("eu", "#", "*")]
    producer = client.producer(way[0], f"topic:{base}.eu")
    for consumer in consumers:
        client.warm(producer, consumer)
    for consumer in consumers:
        client.jms.receive(consumer, 1000, 300)
    client.jms.send(producer, range(40))
    assert client.numbers(consumers, 40 * len(consumers)) == [list(range(40))] * len(consumers)


def test_durable_subscription_elsewhere_keeps_messages(client: Client, way: Pair) -> None:
    topic = client.name("t")
    consumer = client.durable(way[1], topic, "sub")
    producer = client.producer(way[0], "topic:" + topic)
    client.warm(producer, consumer)
    client.leave(consumer)
    client.jms.send(producer, range(40))
    again = client.durable(way[1], topic, "sub")
    assert client.numbers([again], 40) == [list(range(40))]


def test_queue_filter_elsewhere(client: Client, way: Pair) -> None:
    address, queue = client.name("flights"), client.name("alerts")
    client.jms.create(way[1], address, queue, "MULTICAST", "kind = 'late'")
    consumer = client.consumer(way[1], f"queue:{address}::{queue}")
    producer = client.producer(way[0], "topic:" + address)
    client.warm(producer, consumer, kind="late")
    for n in range(40):
        client.jms.send(producer, range(n, n + 1), kind="late" if n % 4 == 0 else "early")
    assert client.numbers([consumer], 10) == [list(range(0, 40, 4))]


def test_selector_of_a_consumer_elsewhere(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    red = client.consumer(way[1], queue, "colour = 'red'")
    producer = client.producer(way[0], queue)
    client.warm(producer, red, colour="red")
    for n in range(40):
        client.jms.send(producer, range(n, n + 1), colour="red" if n % 2 == 0 else "blue")
    assert client.numbers([red], 20) == [list(range(0, 40, 2))]
    assert client.numbers([client.consumer(way[0], queue)], 20) == [list(range(1, 40, 2))]


def test_backlog_follows_a_consumer_that_appears_elsewhere(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    client.jms.send(client.producer(way[0], queue), range(150))
    got = client.numbers([client.consumer(way[1], queue)], 150)
    assert sorted(got[0]) == list(range(150))


def test_backlog_follows_a_consumer_that_moves(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    first = client.consumer(way[0], queue)
    client.jms.send(client.producer(way[0], queue), range(100))
    taken = [int(text) for text in client.jms.receive(first, 30, 2000)]
    assert taken == list(range(30))
    client.leave(first)
    moved = client.consumer(way[1], queue)
    (rest,) = client.numbers([moved], 70)
    assert sorted(rest) == list(range(30, 100))
    client.leave(moved)
    client.jms.send(client.producer(way[0], queue), range(100, 120))
    back = client.consumer(way[0], queue)
    assert sorted(client.numbers([back], 20)[0]) == list(range(100, 120))


def test_backlog_of_unwanted_messages_is_left(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    producer = client.producer(way[0], queue)
    client.jms.send(producer, range(10), colour="red")  # a real Artemis looks no further than
    client.jms.send(producer, range(10, 20), colour="blue")  # the first that nobody wants
    red = client.consumer(way[1], queue, "colour = 'red'")
    assert sorted(client.numbers([red], 10)[0]) == list(range(10))
    blue = client.consumer(way[1], queue, "colour = 'blue'")
    assert sorted(client.numbers([blue], 10)[0]) == list(range(10, 20))


def test_large_messages_cross(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(5), length=250_000)
    assert client.numbers([consumer], 5) == [list(range(5))]


def test_large_backlog_is_redistributed(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    client.jms.send(client.producer(way[0], queue), range(5), length=250_000)
    got = client.numbers([client.consumer(way[1], queue)], 5)
    assert sorted(got[0]) == list(range(5))


def test_transactions_cross_whole(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    transacted = client.transacted(way[0], queue)
    client.jms.send(transacted, range(20))
    client.jms("rollback", transacted)
    client.jms.send(transacted, range(20, 40))
    assert client.jms.receive(consumer, 1, 300) == []
    client.jms("commit", transacted)
    assert client.numbers([consumer], 20) == [list(range(20, 40))]


def test_duplicates_are_dropped_where_they_are_sent(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    for _ in range(2):
        client.jms.send(producer, range(20), dup="d")
    assert client.numbers([consumer], 20) == [list(range(20))]


def test_reply_to_a_temporary_queue_elsewhere(client: Client, way: Pair) -> None:
    replies, name = client.temporary(way[1])
    until(
        "the temporary queue is known at the other node",
        lambda: any(bound.startswith(name) for bound in client.jms.bindings(way[0], name)),
    )
    producer = client.producer(way[0], "queue:" + name)
    client.warm(producer, replies)
    client.jms.send(producer, range(10))
    assert client.numbers([replies], 10) == [list(range(10))]


def test_fully_qualified_queue_elsewhere(client: Client, way: Pair) -> None:
    address, queue = client.name("a"), client.name("q")
    for node in way:
        client.jms.create(node, address, queue, "ANYCAST")
    consumer = client.consumer(way[1], f"queue:{address}::{queue}")
    producer = client.producer(way[0], f"queue:{address}::{queue}")
    client.warm(producer, consumer)
    client.jms.send(producer, range(50))
    assert client.numbers([consumer], 50) == [list(range(50))]


def test_subscription_shared_by_consumers_on_both_sides(client: Client, way: Pair) -> None:
    topic, subscription = client.name("t"), client.name("team")
    consumers = [client.consumer(node, f"shared:{topic}:{subscription}") for node in way]
    producer = client.producer(way[0], "topic:" + topic)
    client.warm(producer, consumers[1])
    client.jms.receive(consumers[0], 1000, 300)
    client.jms.send(producer, range(60))
    shares = client.numbers(consumers, 60)
    assert [len(share) for share in shares] == [30, 30]
    assert sorted(shares[0] + shares[1]) == list(range(60))


def test_priority_is_kept_on_the_way(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue, "JMSPriority = 7")
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer, priority=7)
    client.jms.send(producer, range(10), priority=6)
    client.jms.send(producer, range(10, 20), priority=7)
    assert client.numbers([consumer], 10) == [list(range(10, 20))]


def test_a_wildcard_subscriber_hears_of_topics_at_the_other_node(client: Client, way: Pair) -> None:
    topic = "topic:" + client.name("t")
    consumer = client.consumer(way[1], topic + ".#")
    producer = client.producer(way[0], topic + ".eu")
    client.warm(producer, consumer)
    other = client.producer(way[0], topic + ".us.today")
    client.jms.send(producer, range(10))
    client.jms.send(other, range(10, 20))
    assert client.numbers([consumer], 20) == [list(range(20))]


def test_a_delayed_message_is_not_early_at_the_other_node(client: Client, way: Pair) -> None:
    queue = "queue:" + client.name("q")
    consumer = client.consumer(way[1], queue)
    producer = client.producer(way[0], queue)
    client.warm(producer, consumer)
    client.jms.send(producer, range(5), delay=2000)
    assert client.jms.receive(consumer, 1, 1000) == []
    # Artemis' own order of messages with different times is not theirs.
    assert sorted(client.numbers([consumer], 5)[0]) == list(range(5))
