"""The node id of a broker that the write-ahead source reads from, as its topology names it."""

from __future__ import annotations

from typing import Any, cast

from atalanta.client import blocking
from atalanta.spark.wal.wal_node import CoreNode
from atalanta.wire.core.client.topology import Member


class LateTopology:
    """A connection to a busy node: the members come only when it was asked several times."""

    def __init__(self) -> None:
        self.topology: tuple[Member, ...] = ()
        self._refreshed = 0

    def refresh(self) -> None:
        self._refreshed += 1
        if self._refreshed == 3:
            self.topology = (Member("the-node", None, None),)

    def management(self) -> Any:
        raise AssertionError("its user may not manage")


def test_members_that_come_late_are_waited_for() -> None:
    node = CoreNode("127.0.0.1:61616", cast(blocking.Connection, LateTopology()))

    assert node.node_id == "the-node"
