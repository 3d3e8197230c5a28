"""The cluster that the tests of `atalanta rebalance` use."""

from __future__ import annotations

import json

from tests.cli.calls import Cli

CLUSTER = """
    <cluster-user>nodes</cluster-user>
    <cluster-password>of one cluster</cluster-password>
    <connectors>
      <connector name="own">tcp://127.0.0.1:{own}</connector>
      <connector name="other">tcp://127.0.0.1:{other}</connector>
    </connectors>
    <cluster-connections>
      <cluster-connection name="cluster">
        <connector-ref>own</connector-ref>
        <message-load-balancing>OFF</message-load-balancing>
        <static-connectors><connector-ref>other</connector-ref></static-connectors>
      </cluster-connection>
    </cluster-connections>
"""


def members(cli: Cli, node: str) -> list[object]:
    """Those that the node knows the counts of."""
    shown = json.loads(cli("rebalance", node, "--dry-run", "--json"))
    found: list[object] = shown["members"][0]["members"]
    return found
