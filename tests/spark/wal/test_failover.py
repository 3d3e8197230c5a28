"""A pair without the log view as a source: its node is one, whichever member serves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from atalanta.spark.errors import NodeTimeout
from atalanta.spark.gateway.gateway import GatewayMember
from tests.spark.wal.fake_broker import FakeBroker, FakeServers, Killed
from tests.spark.wal.query_rig import Query

ROWS = [f"node-1/orders/{number}" for number in range(1, 13)]


class Pair(FakeServers):
    """One node at a:1 with a backup at b:1."""

    def __init__(self, servers: str) -> None:
        self.broker = FakeBroker()
        super().__init__(a=self.broker)
        self.broker.members = [GatewayMember("node-1", "a:1", "b:1")]
        self.servers = servers

    @property
    def names(self) -> str:
        return self.servers

    def fail_over(self) -> None:
        """Ends the member at a:1 for good. What its driver held open returns to the queue."""
        self.brokers = {"b:1": self.broker}
        self.broker.members = [GatewayMember("node-1", "b:1")]


def failing(pair: Pair, at: str) -> Callable[[str], None]:
    def kill(step: str) -> None:
        if step == at and "a:1" in pair.brokers:
            pair.fail_over()
            raise Killed

    return kill


@pytest.mark.parametrize("servers", ["a:1", "a:1,b:1", "b:1,a:1", "a:1|b:1"])
@pytest.mark.parametrize(
    "step", ["before prepare", "after prepare", "before commit", "after commit", "after batch commit"]
)
def test_a_driver_that_starts_again_goes_on_at_the_backup(servers: str, step: str, tmp_path: Path) -> None:
    pair = Pair(servers)
    query = Query(str(tmp_path), pair)
    pair.broker.add(12)
    pair.kill = failing(pair, step)
    with pytest.raises(Killed):
        query.run()
    found = servers
    if step in {"before prepare", "after prepare"} and servers != "a:1|b:1":
        found = "a:1|b:1"  # no file names the pair yet, and no topology shows the member that has ended
    query.run(servers=found)
    assert sorted(query.rows) == sorted(ROWS)


def test_a_server_that_is_not_known_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    pair = Pair("a:1,b:1")
    pair.fail_over()
    with pytest.raises(NodeTimeout, match="write the members of a pair as one node: a:61616|b:61616"):
        Query(str(tmp_path), pair).run(nodeTimeout="300ms")
