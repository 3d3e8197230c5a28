"""A replicated group in one cluster with a real Artemis and a node of ours: links and bridges follow its failover."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.harness.broker_xml import USERS
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.replicated_group import ReplicatedGroup, kill_broker, role

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

KINDS = ("artemis", "atalanta")
# Two consumers acknowledge one by one: what was not confirmed when their node died comes again.
AGAIN_MAX = 2
QUEUE = '<address name="{name}"><anycast><queue name="{name}"/></anycast></address>'
NAMES = [f"{word}.{kind}" for kind in KINDS for word in ("to", "from", "out", "in")]
BRIDGE = """<bridges><bridge name="bridge-{kind}">
   <queue-name>out.{kind}</queue-name><forwarding-address>in.{kind}</forwarding-address><ha>true</ha>
   <retry-interval>300</retry-interval><reconnect-attempts>-1</reconnect-attempts>
   <user>admin</user><password>{password}</password>
   <static-connectors><connector-ref>group</connector-ref></static-connectors>
</bridge></bridges>"""


@pytest.fixture
def manager(tmp_path: Path) -> str:
    (tmp_path / "locks").mkdir()
    return f'kind = "file"\nlocks-folder = "{tmp_path / "locks"}"\n'


class Traffic:
    """Messages between the group and each neighbour: by the links of the cluster both ways, and by its core bridge."""

    def __init__(self, jms: Jms, group: ReplicatedGroup) -> None:
        self._jms = jms
        self._next = 0
        jms("open", "group", f"{group.url}&blockOnAcknowledge=true", USER, PASSWORD)
        for kind, node in zip(KINDS, group.others, strict=True):
            jms.open(kind, node, "blockOnAcknowledge=true")
            for word, source, target in (("to", kind, "group"), ("from", "group", kind)):
                jms.consumer(f"{word}.{kind}.c", target, f"queue:{word}.{kind}", mode="each")
                jms.producer(f"{word}.{kind}.p", source, f"queue:{word}.{kind}")
            jms.consumer(f"bridge.{kind}.c", "group", f"queue:in.{kind}", mode="each")
            jms.producer(f"bridge.{kind}.p", kind, f"queue:out.{kind}")
        self.ways = [f"{word}.{kind}" for kind in KINDS for word in ("to", "from", "bridge")]

    def send(self, count: int) -> range:
        """Sends the next numbers each way."""
        numbers = range(self._next, self._next + count)
        for way in self.ways:
            self._jms.send(f"{way}.p", numbers, dup=f"{way}/")
        self._next += count
        return numbers

    def arrive(self, numbers: range) -> None:
        """Every number arrives each way. Those that come again are few, and follow a failover."""
        for way in self.ways:
            (texts,) = self._jms.collect([f"{way}.c"], len(numbers), 60)
            got = [int(text.rstrip("!")) for text in texts]
            new = sorted({number for number in got if number >= numbers.start})
            assert new == list(numbers), f"{way}: {sorted(set(numbers) - set(new))} are lost"
            assert len(got) - len(new) <= AGAIN_MAX, f"{way}: {got}"

    def close(self) -> None:
        self._jms.close_all("group", *KINDS)


def test_links_and_bridges_follow_a_group_through_kills_a_handover_and_a_failback(
    jms: Jms, brokers: Lineup, manager: str
) -> None:
    addresses = "".join(QUEUE.format(name=name) for name in NAMES)
    bridges = {
        2 + index: BRIDGE.format(kind=kind, password=USERS["admin"][0]) for index, kind in enumerate(KINDS)
    }
    with ReplicatedGroup(
        brokers, manager, others=KINDS, failback=True, addresses=addresses, core=bridges, connectors=True
    ) as group:
        group.start()
        nodes = [group.members[0], *group.others]
        until("all know all", lambda: all(len(jms.topology(node)) == len(nodes) for node in nodes), 60)
        traffic = Traffic(jms, group)
        traffic.arrive(traffic.send(50))
        primary, backup = group.members
        ends: list[Callable[[BrokerProcess], None]] = [kill_broker, BrokerProcess.kill, BrokerProcess.stop]
        for end in ends:
            half = traffic.send(25)
            end(primary)
            group.active(other_than=primary)
            rest = traffic.send(25)
            traffic.arrive(range(half.start, rest.stop))
            primary.launch()
            until("the primary serves", lambda: role(primary) == "active", 60)
            group.until_synced()
            traffic.arrive(traffic.send(25))
        traffic.close()
        for node in group.others:
            log = node.log.read_text(errors="replace")
            assert "duplicate_node_id" not in log and "node_id_shared" not in log, log
        assert role(backup) == "passive"
