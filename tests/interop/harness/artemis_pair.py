"""A real Artemis pair with a shared store, for queries that go on over its failovers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.shared_store import SHARED, ports, serves, share


class ArtemisPair:
    """Two members, the first of which serves."""

    def __init__(self, members: list[BrokerProcess]) -> None:
        self.members = members
        self.servers = [f"127.0.0.1:{node.port}" for node in members]

    def fail_over(self) -> None:
        """Kills the primary, and waits until the backup serves."""
        self.members[0].kill()
        until("the backup serves", lambda: serves(self.members[1]), 60)


@contextmanager
def artemis_pair(brokers: Lineup, *queues: str) -> Iterator[ArtemisPair]:
    """A primary and a backup with one data folder, whose topology shows both. The queues are anycast."""
    addresses = "\n".join(
        f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in queues
    )

    def shaping(index: int, ports: list[int]) -> Shape:
        core = SHARED.format(role=("primary", "backup")[index])
        return Shape(Cluster((ports[1 - index],)), core=core, addresses=addresses)

    members = brokers.cluster("artemis+artemis", shaping)
    try:
        share(members[0].folder / "data", members[1].folder / "data")
        members[0].start()
        members[1].launch()
        names = tuple(str(node.port) for node in members)
        until("the pair is known", lambda: names in ports(members[0]), 60)
        yield ArtemisPair(members)
    finally:
        for node in members:
            node.close()
