"""One of three nodes stops or is killed, and comes back: the others keep each other, and it is a member again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.topology import TopologyWatch

pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(300)]

# With other versions a node of each kind goes in one line-up. Real nodes of 2.28 that know each other do not dial a
# newcomer that they hear by UDP any more: ours is there first.
TRIOS = (
    "artemis+artemis+atalanta", "atalanta+atalanta+artemis",
    "atalanta+artemis-2.28.0+artemis-2.28.0", "artemis-2.56.0+artemis-2.56.0+atalanta",
)  # fmt: skip


@contextmanager
def cluster_of_three(jms: Jms, brokers: Lineup, kinds: str, found_by: str) -> Iterator[list[BrokerProcess]]:
    """Three running nodes that know each other."""
    group = (f"231.7.7.{random.randrange(1, 255)}", random.randrange(20000, 30000))

    def shaping(index: int, ports: list[int]) -> Shape:
        if found_by == "udp":
            return Shape(Cluster(group=group))
        return Shape(Cluster(peers=tuple(port for port in ports if port != ports[index])))

    nodes = brokers.cluster(kinds, shaping)
    try:
        for node in nodes:
            node.start()
        complete(jms, nodes, 3)
        yield nodes
    finally:
        for node in nodes:
            node.close()


def knows(jms: Jms, node: BrokerProcess, count: int) -> bool:
    """Whether the node tells new clients of so many members."""
    return len(jms.topology(node)) == count


def complete(jms: Jms, nodes: list[BrokerProcess], count: int) -> None:
    """Waits until each node tells new clients of so many members."""
    for node in nodes:
        until(f"{node.name} knows {count}", partial(knows, jms, node, count), 40)


@pytest.mark.parametrize("restarts", TRIOS)
@pytest.mark.parametrize("found_by", ["static", "udp"])
@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("goes", ["last", "first"])
def test_a_restarted_node_is_a_member_again_and_nobody_else_was_said_to_have_left(
    jms: Jms, brokers: Lineup, restarts: str, goes: str, how: str, found_by: str
) -> None:
    with cluster_of_three(jms, brokers, restarts, found_by) as nodes:
        gone = nodes[-1] if goes == "last" else nodes[0]
        stay = [node for node in nodes if node is not gone]
        (gone_id,) = (key for key, place in jms.topology(gone).items() if place.endswith(f":{gone.port}"))
        watches = [TopologyWatch(node) for node in stay]
        try:
            until("the watches know all", lambda: all(len(each.listed) == 3 for each in watches))
            if how == "stop":
                gone.stop()
            else:
                gone.kill()
            complete(jms, stay, 2)
            gone.start()
            complete(jms, nodes, 3)
            assert [set(each.gone) - {gone_id} for each in watches] == [set(), set()]
            until("the watches know all again", lambda: all(len(each.listed) == 3 for each in watches))
        finally:
            for watch in watches:
                watch.close()


@pytest.mark.parametrize("kinds", ["artemis-2.56.0+artemis-2.56.0+atalanta"])
@pytest.mark.parametrize("found_by", ["static", "udp"])
def test_a_member_causes_no_failed_logins(jms: Jms, brokers: Lineup, kinds: str, found_by: str) -> None:
    """Artemis 2.54 and later log and count each one. A challenge before the first login is the only one."""
    with cluster_of_three(jms, brokers, kinds, found_by) as nodes:
        time.sleep(2)

        def failed_logins() -> list[int]:
            return [node.log.read_text(errors="replace").count("AMQ229031") for node in nodes if node.kind == "artemis"]

        before = failed_logins()
        assert max(before) <= 10, before
        time.sleep(10)  # at first there were some 200 a minute
        assert failed_logins() == before
