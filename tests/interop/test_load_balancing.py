"""How a pair shares messages: STRICT, OFF, OFF_WITH_REDISTRIBUTION, redistribution and its delay, diverts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.jms_client import Client, Pair, start

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ADDRESSES = "".join(
    f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>'
    for name in ("even", "still", "near", "kept", "later", "diverted.copy", "diverted.late")
)
DELAY_MS = 4_000
SETTINGS = "".join(
    f'<address-setting match="{name}"><redistribution-delay>{delay}</redistribution-delay></address-setting>'
    for name, delay in (("kept", -1), ("later", DELAY_MS))
)


def running(lineup: str, brokers: Lineup, jms: Jms, load_balancing: str) -> Pair:
    """A started pair whose nodes have the same queues; redistribution at once but for two addresses."""

    def shaping(index: int, ports: list[int]) -> Shape:
        cluster = Cluster((ports[1 - index],), load_balancing=load_balancing)
        return Shape(cluster, addresses=ADDRESSES, settings=SETTINGS)

    first, second = brokers.cluster(lineup, shaping)
    start(jms, (first, second))
    return first, second


def pair_of(load_balancing: str) -> Any:
    """A fixture, one for all tests of the module."""

    @pytest.fixture(scope="module")
    def pair(lineup: str, brokers: Lineup, jms: Jms) -> Iterator[Pair]:
        nodes = running(lineup, brokers, jms, load_balancing)
        yield nodes
        for node in nodes:
            node.close()

    return pair


strict_pair = pair_of("STRICT")
off_pair = pair_of("OFF")
moving_pair = pair_of("OFF_WITH_REDISTRIBUTION")
demand_pair = pair_of("ON_DEMAND")
WAYS = ["first-to-second", "second-to-first"]


def both_ways(nodes: Pair, request: pytest.FixtureRequest) -> Pair:
    return nodes if request.param == "first-to-second" else (nodes[1], nodes[0])


@pytest.fixture(params=WAYS)
def strict(request: pytest.FixtureRequest, strict_pair: Pair) -> Pair:
    return both_ways(strict_pair, request)


@pytest.fixture(params=WAYS)
def off(request: pytest.FixtureRequest, off_pair: Pair) -> Pair:
    return both_ways(off_pair, request)


@pytest.fixture(params=WAYS)
def moving(request: pytest.FixtureRequest, moving_pair: Pair) -> Pair:
    return both_ways(moving_pair, request)


@pytest.fixture(params=WAYS)
def demand(request: pytest.FixtureRequest, demand_pair: Pair) -> Pair:
    return both_ways(demand_pair, request)


def nothing_comes(client: Client, consumer: str, ms: int = 1_500) -> bool:
    return [text for text in client.jms.receive(consumer, 1, ms) if not text.startswith("-")] == []


def test_strict_shares_evenly_without_any_consumer(client: Client, strict: Pair) -> None:
    producer = client.producer(strict[0], "queue:even")

    def known() -> bool:
        client.jms.send(producer, range(-1, 0))
        return client.jms.queue(strict[1], "even")[1] > 0

    until("the queue there is known here", known)
    for node in strict:
        consumer = client.consumer(node, "queue:even")
        client.jms.receive(consumer, 1000, 500)
        client.leave(consumer)
    client.jms.send(producer, range(20))
    until("ten cross", lambda: client.jms.queue(strict[1], "even")[1] == 10)
    assert client.jms.queue(strict[0], "even")[1] == 10
    for node in strict:
        consumer = client.consumer(node, "queue:even")
        assert len(client.numbers([consumer], 10)[0]) == 10
        client.leave(consumer)


def test_off_leaves_messages_where_they_are_sent(client: Client, off: Pair) -> None:
    """Nor are they redistributed, though the delay is 0."""
    elsewhere = client.consumer(off[1], "queue:still")
    client.jms.send(client.producer(off[0], "queue:still"), range(10))
    assert nothing_comes(client, elsewhere)
    assert client.numbers([client.consumer(off[0], "queue:still")], 10) == [list(range(10))]


def test_off_with_redistribution_prefers_consumers_here(client: Client, moving: Pair) -> None:
    here, elsewhere = (client.consumer(node, "queue:near") for node in moving)
    producer = client.producer(moving[0], "queue:near")
    client.jms.send(producer, range(20))
    assert client.numbers([here, elsewhere], 20) == [list(range(20)), []]
    client.leave(here)
    client.jms.send(producer, range(20, 40))
    assert client.numbers([elsewhere], 20) == [list(range(20, 40))]


def test_without_redistribution_a_backlog_stays(client: Client, demand: Pair) -> None:
    client.jms.send(client.producer(demand[0], "queue:kept"), range(10))
    elsewhere = client.consumer(demand[1], "queue:kept")
    assert nothing_comes(client, elsewhere)
    assert client.numbers([client.consumer(demand[0], "queue:kept")], 10) == [list(range(10))]


def test_a_consumer_here_in_time_cancels_redistribution(client: Client, demand: Pair) -> None:
    client.jms.send(client.producer(demand[0], "queue:later"), range(10))
    elsewhere = client.consumer(demand[1], "queue:later")
    here = client.consumer(demand[0], "queue:later")
    assert client.numbers([here, elsewhere], 10) == [list(range(10)), []]
    assert nothing_comes(client, elsewhere, DELAY_MS + 1_000)


def test_after_the_delay_a_backlog_is_redistributed(client: Client, demand: Pair) -> None:
    client.jms.send(client.producer(demand[0], "queue:later"), range(10))
    elsewhere = client.consumer(demand[1], "queue:later")
    assert nothing_comes(client, elsewhere, DELAY_MS // 2)
    assert client.numbers([elsewhere], 10) == [list(range(10))]


def test_a_copy_of_a_divert_goes_to_the_consumer(client: Client, demand: Pair) -> None:
    consumer = client.consumer(demand[1], "queue:diverted.copy")
    producer = client.producer(demand[0], "queue:diverted")
    client.warm(producer, consumer)
    client.jms.send(producer, range(10))
    assert client.numbers([consumer], 10) == [list(range(10))]
    original = client.consumer(demand[0], "queue:diverted")
    assert client.numbers([original], 10) == [list(range(10))]


def test_what_an_exclusive_divert_takes_goes_to_the_consumer(client: Client, demand: Pair) -> None:
    consumer = client.consumer(demand[1], "queue:diverted.late")
    producer = client.producer(demand[0], "queue:diverted.kinds")
    client.warm(producer, consumer, kind="late")
    for n in range(10):
        client.jms.send(producer, range(n, n + 1), kind="late" if n % 2 else "early")
    assert client.numbers([consumer], 5) == [[1, 3, 5, 7, 9]]
    assert client.numbers([client.consumer(demand[0], "queue:diverted.kinds")], 5) == [[0, 2, 4, 6, 8]]
