"""Master and slave from one activemq.xml: brokers of ActiveMQ Classic and ours, from the same files.

The clients are those of activemq-client with `failover:`. Nothing that was confirmed is lost, the order of groups and
of subscriptions stays, nothing comes before its time, and never two brokers serve.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.harness.classic_pair import KINDS, ClassicPair
from tests.interop.harness.instants import Instants
from tests.interop.harness.jms import until
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]

STEP = 100  # messages that are confirmed between two ends of brokers
PAUSE_MS = 20
ENDS: dict[str, Callable[[BrokerProcess], None]] = {"killed": BrokerProcess.kill, "stopped": BrokerProcess.stop}
CONNECTOR = '<networkConnector name="to-{name}" uri="masterslave:({servers})" userName="admin" password="admin"/>'


def clients(pair: ClassicPair, receiving: ClassicPair | None = None, version: str = CLIENTS[0]) -> Instants:
    """Clients of a pair; the consumers are those of another one if it is given."""
    return Instants(version, pair.url, PAUSE_MS, (receiving or pair).url)


def over(load: Instants, kind: str) -> None:
    """Ends the load. Ours repeats nothing that was taken.

    Classic promises no more than that nothing is lost: sometimes one message comes again after a takeover, and it
    takes again what a bridge repeats. With `auditNetworkProducers` it does not take that, but then it drops scheduled
    messages that come over a bridge in another order than they were sent.
    """
    load.over(repeats=kind != "atalanta")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    ("kind", "version"),
    [("classic", "5.18.6"), ("atalanta", "5.18.6"), ("classic-6", "6.1.4"), ("atalanta", "6.1.4")],
)
def test_the_slave_serves_when_its_master_is(end: str, kind: str, version: str, tmp_path: Path) -> None:
    with ClassicPair(kind, tmp_path) as pair:
        pair.start()
        first, second = pair.brokers
        with clients(pair, version=version) as load:
            for leaves, follows in ((first, second), (second, first)):
                load.working(STEP)
                ENDS[end](leaves)
                assert pair.serving() is follows
                load.working(STEP)
                pair.restart(leaves)  # nobody gives back
            over(load, kind)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_both_start_again_after_both_were(end: str, kind: str, tmp_path: Path) -> None:
    with ClassicPair(kind, tmp_path) as pair:
        pair.start()
        with clients(pair) as load:
            load.working(STEP)
            for each in reversed(pair.brokers):  # the slave first: nobody takes over
                ENDS[end](each)
            for each in pair.brokers:
                each.launch()
            (waits,) = {*pair.brokers} - {pair.serving()}
            until(f"{waits.name} waits", lambda: pair.waits(waits), 60)
            load.working(STEP)
            over(load, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_three_brokers_follow_each_other(kind: str, tmp_path: Path) -> None:
    with ClassicPair(kind, tmp_path, count=3) as pair:
        pair.start()
        with clients(pair) as load:
            load.working(STEP)
            for end in ENDS.values():
                leaves = pair.serving()
                end(leaves)
                pair.serving()
                load.working(STEP)
            serves = pair.serving()
            away = [each for each in pair.brokers if each is not serves]
            for each in away:
                pair.restart(each)
            away[0].kill()  # one that waits: nobody notices
            assert pair.serving() is serves
            serves.kill()
            assert pair.serving() is away[1]
            load.working(STEP)
            over(load, kind)


@pytest.mark.parametrize("west_kind", KINDS)
@pytest.mark.parametrize("east_kind", KINDS)
def test_messages_cross_a_network_of_two_pairs(east_kind: str, west_kind: str, tmp_path: Path) -> None:
    """They are sent in the east and taken in the west, while the master of each pair is killed and comes back."""
    with ClassicPair(east_kind, tmp_path, "east") as east, ClassicPair(west_kind, tmp_path, "west") as west:
        east.write_files(CONNECTOR.format(name=west.name, servers=west.servers))
        west.start()
        east.start()
        with clients(east, west) as load:
            for pair in (west, east):
                load.working(STEP)
                leaves = pair.serving()
                leaves.kill()
                assert pair.serving() is not leaves
                load.working(STEP)
                pair.restart(leaves)
            over(load, west_kind)
