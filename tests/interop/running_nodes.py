"""The start of nodes that know each other, and the clients that they have."""

from __future__ import annotations

import json

from atalanta.client import connect, run
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
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


def clients(node: BrokerProcess) -> int:
    """Returns the number of its clients, ours not counted."""

    async def ask() -> int:
        async with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as asking:
            found = await asking.management().get("broker", "ClientBalance")
            count: int = json.loads(str(found))["clients"]
            return count

    return run(ask())
