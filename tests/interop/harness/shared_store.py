"""A pair with a shared store: its policy, its data folder, and who serves."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from atalanta.client.blocking import Connection, connect
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.node import BrokerProcess

SHARED = "<ha-policy><shared-store><{role}/></shared-store></ha-policy>"


def share(data: Path, other: Path) -> None:
    """Both instances have one data folder."""
    data.mkdir(exist_ok=True)
    if other.exists():
        for path in sorted(other.rglob("*"), reverse=True):
            path.rmdir()
        other.rmdir()
    other.symlink_to(data)


def opened(node: BrokerProcess) -> Connection:
    """A connection to that node alone."""
    return connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD)


def ports(node: BrokerProcess) -> set[tuple[str, ...]]:
    """The members as the node's management shows them: the ports of primary and backup."""
    with opened(node) as connection:
        text = connection.management().call("broker", "listNetworkTopology")
    members = json.loads(str(text))
    return {
        tuple(each[half].rpartition(":")[2] for half in ("primary", "backup") if half in each)
        for each in members
    }


def serves(node: BrokerProcess) -> bool:
    """Whether it accepts connections; a passive node does not."""
    try:
        socket.create_connection(("127.0.0.1", node.port), timeout=1).close()
    except OSError:
        return False
    return True
