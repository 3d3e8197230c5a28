"""A Spark query at a real Artemis pair: source and sink go on over its failover, and every row arrives once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Message
from tests.interop.harness.artemis_pair import ArtemisPair, artemis_pair
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.shared_store import opened
from tests.spark.relay import Relay

USUAL_TARGET = "artemis"
MESSAGES = 100
pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture
def pair(brokers: Lineup) -> Iterator[ArtemisPair]:
    with artemis_pair(brokers, "orders", "out") as found:
        yield found


def send(node: BrokerProcess, prefix: str) -> list[str]:
    texts = [f"{prefix}-{number}" for number in range(MESSAGES)]
    with opened(node) as connection, connection.producer("orders", routing="anycast") as producer:
        for text in texts:
            producer.send_soon(Message(text=text))
        producer.drain()
    return texts


@pytest.mark.parametrize("form", ["active", ",", "|"])
@pytest.mark.parametrize("moment", ["before the tasks", "before the commit"])
def test_a_query_goes_on_over_a_failover(
    pair: ArtemisPair, form: str, moment: str, tmp_path: Path
) -> None:
    primary, backup = pair.members
    names = pair.servers[0] if form == "active" else form.join(pair.servers)
    relay = Relay(names, tmp_path / "wal", user=USER, password=PASSWORD)
    expected = send(primary, "first")
    start, end = relay.plan()
    if moment == "before the tasks":
        pair.fail_over()
    rows = relay.rows(start, end)
    written = relay.write(rows)
    if moment == "before the commit":
        pair.fail_over()
    relay.commit(end, written)
    if form == "active":  # a new process cannot know the member that serves
        relay.login["servers"] = "|".join(pair.servers)
    expected += send(backup, "second")
    start, end = relay.plan()
    relay.commit(end, relay.write(relay.rows(start, end)))
    assert relay.plan() == (end, end)
    arrived: Counter[str] = Counter()
    with opened(backup) as connection:
        with connection.consumer("out") as consumer:
            while (message := consumer.receive(2.0)) is not None:
                arrived[str(message.text)] += 1
                message.acknowledge()
        assert connection.xa_resource.recover() == []
        assert connection.query_queue("orders").message_count == 0
    assert arrived == Counter(expected)
