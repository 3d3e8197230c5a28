"""Pairs with a shared store, real ones and ours, in one cluster with a node of ours: it follows their failover."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.client import Message
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import KINDS, Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.shared_store import SHARED, opened, ports, serves, share

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

ADDRESS = '<address name="prices"><multicast>{queue}</multicast></address>'
REPORTS = ADDRESS.format(queue='<queue name="reports"/>')
REPLICA = "<ha-policy><replication><backup><vote-retries>1</vote-retries></backup></replication></ha-policy>"
REGISTRATION_SECONDS = 60.0


def send(node: BrokerProcess, numbers: range) -> None:
    """Sends the numbers to the address, each confirmed."""
    with opened(node) as connection, connection.producer("prices", routing="multicast") as producer:
        for number in numbers:
            producer.send(Message(text=str(number)))


def take(node: BrokerProcess, count: int) -> list[int]:
    """The next numbers of the pair's subscription, and a repeat or a surplus if there is one."""
    found: list[int] = []
    with opened(node) as connection, connection.consumer("reports") as consumer:
        while len(found) < count:
            message = consumer.receive(20.0)
            assert message is not None and message.text is not None, f"only {found}"
            found.append(int(message.text))
            message.acknowledge()
        surplus = consumer.receive(1.0)
        assert surplus is None, surplus
    return found


class StorePair:
    """A primary and a backup of that kind with one data folder, and a node of ours."""

    def __init__(self, brokers: Lineup, kind: str) -> None:
        def shaping(index: int, ports: list[int]) -> Shape:
            pair, ours = ports[:2], ports[2]
            if index == 2:
                return Shape(Cluster(tuple(pair)), addresses=ADDRESS.format(queue=""))
            core = SHARED.format(role=("primary", "backup")[index])
            return Shape(Cluster((ours, pair[1 - index])), core=core, addresses=REPORTS)

        self.primary, self.backup, self.ours = brokers.cluster(
            f"{kind}+{kind}+atalanta", shaping
        )
        share(self.primary.folder / "data", self.backup.folder / "data")

    def start(self) -> None:
        self.ours.start()
        self.primary.start()
        self.backup.launch()  # it accepts nothing as long as the other one serves
        until("the pair is known", lambda: self.names(self.primary, self.backup) in ports(self.ours), 40)

    def names(self, *nodes: BrokerProcess) -> tuple[str, ...]:
        return tuple(str(node.port) for node in nodes)

    def close(self) -> None:
        for node in (self.primary, self.backup, self.ours):
            node.close()


@pytest.fixture(params=KINDS)
def pair(brokers: Lineup, request: pytest.FixtureRequest) -> Iterator[StorePair]:
    """A running pair that our node knows."""
    made = StorePair(brokers, request.param)
    made.start()
    yield made
    made.close()


def test_messages_stored_for_a_pair_reach_its_backup_and_then_its_primary_once(pair: StorePair) -> None:
    send(pair.ours, range(50))
    until("the first have arrived", lambda: waiting(pair.primary) == 50)
    pair.primary.kill()
    send(pair.ours, range(50, 150))  # some are under way, others wait here
    until("the backup serves", lambda: serves(pair.backup), 60)
    assert take(pair.backup, 150) == list(range(150))
    until("the backup is the primary", lambda: pair.names(pair.backup) in ports(pair.ours))
    pair.primary.launch()  # it gets its place again
    send(pair.ours, range(150, 200))
    until("the primary serves", lambda: serves(pair.primary), 60)
    send(pair.ours, range(200, 250))
    assert take(pair.primary, 100) == list(range(150, 250))
    until("it has its place again", lambda: pair.names(pair.primary) in {each[:1] for each in ports(pair.ours)})
    log = pair.ours.log.read_text()
    assert "node_id_shared" not in log and "duplicate_node_id" not in log, log


def waiting(node: BrokerProcess) -> int:
    """The messages of the pair's subscription."""
    with opened(node) as connection:
        return connection.query_queue("reports").message_count


def test_a_real_replica_that_finds_only_our_node_is_refused_at_once(brokers: Lineup) -> None:
    def shaping(index: int, ports: list[int]) -> Shape:
        core = REPLICA if index == 0 else ""
        return Shape(Cluster((ports[1 - index],)), core=core)

    backup, ours = brokers.cluster("artemis+atalanta", shaping)
    ours.start()
    backup.launch()
    until(
        "it is refused", lambda: "backup_refused" in ours.log.read_text(), REGISTRATION_SECONDS
    )
    with opened(ours) as connection, connection.producer("orders", routing="anycast") as producer:
        producer.send(Message(text="still serving"))
    log = ours.log.read_text()
    assert log.count("backup_refused") == 1, log
    assert "protocol_error" not in log, log
    assert backup.running
    backup.close()
    ours.close()
