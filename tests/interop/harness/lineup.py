"""Brokers of both kinds, alone or as a cluster of two."""

from __future__ import annotations

from pathlib import Path

from .artemis import ArtemisNode
from .atalanta import AtalantaNode
from .broker_xml import Cluster
from .node import BrokerProcess, free_port

KINDS = ("atalanta", "artemis")


class Lineup:
    """Makes brokers in a folder and remembers them, so that none outlives the tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[BrokerProcess] = []

    def single(self, kind: str) -> BrokerProcess:
        """A configured broker, not started, in no cluster."""
        node = self._new(kind, free_port())
        node.configure()
        return node

    def pair(
        self,
        kinds: str,
        group: tuple[str, int] | None = None,
        redistribution_delay_ms: int = 0,
        load_balancing: str = "ON_DEMAND",
    ) -> tuple[BrokerProcess, BrokerProcess]:
        """Two configured brokers of one cluster, not started; `kinds` is "first+second"."""
        ports = [free_port(), free_port()]
        nodes = [self._new(kind, port) for kind, port in zip(kinds.split("+"), ports, strict=True)]
        for node, peer in zip(nodes, reversed(ports), strict=True):
            peers = () if group else (peer,)
            cluster = Cluster(peers=peers, group=group, load_balancing=load_balancing)
            node.configure(cluster, redistribution_delay_ms)
        return nodes[0], nodes[1]

    def close(self) -> None:
        """Ends every broker that still runs."""
        for node in self._made:
            node.close()

    def _new(self, kind: str, port: int) -> BrokerProcess:
        number = len(self._made) + 1
        classes: dict[str, type[BrokerProcess]] = {"artemis": ArtemisNode, "atalanta": AtalantaNode}
        node = classes[kind](self._folder / f"{kind}-{number}", f"{kind}-{number}", port)
        self._made.append(node)
        return node
