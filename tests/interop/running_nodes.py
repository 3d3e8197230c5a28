"""The start of nodes that know each other."""

from __future__ import annotations

from tests.interop.harness.jms import Jms, until
from tests.interop.harness.lineup import Lineup, Shaping
from tests.interop.harness.node import BrokerProcess

Nodes = list[BrokerProcess]


def running(jms: Jms, brokers: Lineup, kinds: str, shaping: Shaping, members: int) -> Nodes:
    """The started nodes; each tells of at least `members` members."""
    nodes = brokers.cluster(kinds, shaping)
    for node in nodes:
        node.launch()
    for node in nodes:
        node.await_ready()
    until("all know all", lambda: all(len(jms.topology(node)) >= members for node in nodes))
    return nodes
