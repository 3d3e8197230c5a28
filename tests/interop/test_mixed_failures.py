"""Two nodes in one cluster: nodes that die, leave and come back; discovery by UDP."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.jms_client import Client, Pair, start

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

# A call of the JMS client that was under way at a failover is sometimes never answered, whatever
# the broker (a pair of real Artemis nodes shows it too): it waits for callTimeout.
RECONNECT = "reconnectAttempts=-1&retryInterval=100&failoverAttempts=-1&callTimeout=3000"


def pair_of(jms: Jms, brokers: Lineup, lineup: str, killed: str) -> Pair:
    """A new running pair as (the one that stays, the one that goes)."""
    first, second = brokers.pair(lineup)
    start(jms, (first, second))
    return (second, first) if killed == "first" else (first, second)


def end(nodes: Pair) -> None:
    """Ends both."""
    for node in nodes:
        node.close()


@pytest.mark.parametrize("killed", ["first", "second"])
def test_messages_for_a_killed_node_wait_for_it(
    jms: Jms, brokers: Lineup, lineup: str, client: Client, killed: str
) -> None:
    stays, goes = pair_of(jms, brokers, lineup, killed)
    queue = "queue:" + client.name("q")
    consumer = client.consumer(goes, queue, options=RECONNECT)
    producer = client.producer(stays, queue)
    client.warm(producer, consumer)
    jms.send(producer, range(50))
    assert client.numbers([consumer], 50) == [list(range(50))]
    goes.kill()
    jms.send(producer, range(50, 100))
    goes.start()
    (rest,) = client.numbers([consumer], 50, redeliveries=True)
    assert sorted(rest) == list(range(50, 100))
    jms.send(producer, range(100, 150))
    assert sorted(client.numbers([consumer], 50)[0]) == list(range(100, 150))
    client.close()
    end((stays, goes))


@pytest.mark.parametrize("killed", ["first", "second"])
def test_kill_between_sending_and_consuming(
    jms: Jms, brokers: Lineup, lineup: str, client: Client, killed: str
) -> None:
    """Messages forwarded to a subscription are there once when its node comes back."""
    stays, goes = pair_of(jms, brokers, lineup, killed)
    topic = client.name("t")
    consumer = client.durable(goes, topic, "sub")
    producer = client.producer(stays, "topic:" + topic)
    client.warm(producer, consumer)
    client.leave(consumer)
    jms.send(producer, range(100), dup="d")
    goes.kill()  # some of them have arrived there, some have not
    jms.send(producer, range(100, 130), dup="d")
    goes.start()
    again = client.durable(goes, topic, "sub")
    (got,) = client.numbers([again], 130)
    # While a node is away its subscriptions get nothing, unless the queue for it took them.
    assert sorted(got) == list(range(130))
    assert len(set(got)) == len(got)
    client.close()
    end((stays, goes))


@pytest.mark.parametrize("killed", ["first", "second"])
def test_subscriptions_that_overlap_survive_a_kill(
    jms: Jms, brokers: Lineup, lineup: str, client: Client, killed: str
) -> None:
    """Each of them gets what was sent while its node was away, and everything behind its restart, once."""
    stays, goes = pair_of(jms, brokers, lineup, killed)
    base = client.name("t")
    topics = [f"{base}.{last}" for last in ("eu", "#", "*")]
    consumers = [client.durable(goes, topic, "sub") for topic in topics]
    producer = client.producer(stays, f"topic:{base}.eu")
    for consumer in consumers:
        client.warm(producer, consumer)
    for consumer in consumers:
        jms.receive(consumer, 1000, 300)
        client.leave(consumer)
    goes.kill()
    jms.send(producer, range(40))
    goes.start()
    again = [client.durable(goes, topic, "sub") for topic in topics]
    assert [sorted(got) for got in client.numbers(again, 120)] == [list(range(40))] * 3
    jms.send(producer, range(40, 60))
    jms.send(client.producer(goes, f"topic:{base}.eu"), range(60, 80))
    assert [sorted(got) for got in client.numbers(again, 120)] == [list(range(40, 80))] * 3
    client.close()
    end((stays, goes))


@pytest.mark.parametrize("where", ["consuming", "sending"])
@pytest.mark.parametrize("killed", ["first", "second"])
def test_kill_in_the_middle_of_a_stream(
    jms: Jms, brokers: Lineup, lineup: str, client: Client, killed: str, where: str
) -> None:
    stays, goes = pair_of(jms, brokers, lineup, killed)
    sending, consuming = (stays, goes) if where == "consuming" else (goes, stays)
    queue = "queue:" + client.name("q")
    consumer = client.consumer(consuming, queue, options=RECONNECT)
    client.warm(client.producer(sending, queue, RECONNECT), consumer)
    count = 1500
    with Jms() as sender, ThreadPoolExecutor(1) as thread:
        producer = sender.producer("p", sender.open("o", sending, RECONNECT), queue)
        sent = thread.submit(sender.send, producer, range(count), dup="d")
        got = jms.receive(consumer, 200, 5000)
        goes.kill()
        goes.start()
        sent.result(60)
    got += jms.collect([consumer], count - len(got), 40)[0]
    numbers = [int(text.rstrip("!")) for text in got if not text.startswith("-1")]
    assert sorted(set(numbers)) == list(range(count))
    # The client does not wait for its acknowledgements (blockOnAcknowledge=false): the last few of them may not be on
    # the disk of the node that is killed.
    assert len(numbers) - count <= 10
    client.close()
    end((stays, goes))


@pytest.mark.parametrize("stopped", ["first", "second"])
def test_node_that_leaves_takes_no_messages_along(
    jms: Jms, brokers: Lineup, lineup: str, client: Client, stopped: str
) -> None:
    stays, goes = pair_of(jms, brokers, lineup, stopped)
    name = client.name("q")
    consumer = client.consumer(goes, "queue:" + name)
    producer = client.producer(stays, "queue:" + name)
    client.warm(producer, consumer)
    jms.send(producer, range(20))
    assert client.numbers([consumer], 20) == [list(range(20))]
    client.leave(consumer)
    until("nobody consumes", lambda: jms.queue(goes, name)[2] == 0)
    goes.stop()
    until("one member is left", lambda: len(jms.topology(stays)) == 1)
    jms.send(producer, range(20, 40))
    here = client.consumer(stays, "queue:" + name)
    assert client.numbers([here], 20) == [list(range(20, 40))]
    client.leave(here)
    jms.send(producer, range(40, 60))
    goes.start()
    until("both are members again", lambda: len(jms.topology(stays)) == 2)
    there = client.consumer(goes, "queue:" + name)
    assert sorted(client.numbers([there], 20)[0]) == list(range(40, 60))
    client.close()
    end((stays, goes))


def test_discovery_by_udp(jms: Jms, brokers: Lineup, lineup: str, client: Client) -> None:
    group = (f"231.7.7.{random.randrange(1, 255)}", random.randrange(20000, 30000))
    nodes = brokers.pair(lineup, group=group)
    start(jms, nodes)
    for sending, consuming in (nodes, nodes[::-1]):
        queue = "queue:" + client.name("q." + sending.name)
        consumer = client.consumer(consuming, queue)
        producer = client.producer(sending, queue)
        client.warm(producer, consumer)
        jms.send(producer, range(50))
        assert client.numbers([consumer], 50) == [list(range(50))]
    client.close()
    end(nodes)
