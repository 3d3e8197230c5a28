"""The two nodes that the tests of `atalanta rebalance` use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.broker_xml import cluster, write_broker_xml
from tests.cli.calls import Cli
from tests.ports import free_port


@contextmanager
def two_nodes(folder: Path, load_balancing: str) -> Iterator[tuple[int, int]]:
    """The ports of two nodes that do not balance clients by themselves."""
    first, second = free_port(), free_port()
    with ExitStack() as stack:
        for name, own, other in (("a", first, second), ("b", second, first)):
            more = cluster(
                own, [other], f"<message-load-balancing>{load_balancing}</message-load-balancing>"
            )
            path = write_broker_xml(folder / name, own, name, more, own="rebalance = false\n")
            stack.enter_context(BrokerProcess(path))
        yield first, second


def members(cli: Cli, node: str) -> list[object]:
    """Those that the node knows the counts of."""
    shown = json.loads(cli("rebalance", node, "--dry-run", "--json"))
    found: list[object] = shown["members"][0]["members"]
    return found
