"""Brokers of both kinds, alone or as a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.ports import free_port

from .artemis import ArtemisNode
from .atalanta import AtalantaNode
from .broker_xml import Cluster, Shape
from .embedded import EmbeddedArtemis
from .node import BrokerProcess

Shaping = Callable[[int, list[int]], Shape]

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

    def openwire(self) -> BrokerProcess:
        """A node of ours that serves CORE and OpenWire at its one port, not started."""
        node = self.single("atalanta")
        path = node.folder / "etc" / "broker.xml"
        path.write_text(path.read_text().replace("protocols=CORE<", "protocols=CORE,OPENWIRE<"))
        return node

    def pair(
        self,
        kinds: str,
        group: tuple[str, int] | None = None,
        redistribution_delay_ms: int = 0,
        load_balancing: str = "ON_DEMAND",
    ) -> tuple[BrokerProcess, BrokerProcess]:
        """Two configured brokers of one cluster, not started; `kinds` is "first+second"."""

        def shaping(index: int, ports: list[int]) -> Shape:
            peers = () if group else (ports[1 - index],)
            cluster = Cluster(peers=peers, group=group, load_balancing=load_balancing)
            return Shape(cluster, redistribution_delay_ms)

        first, second = self.cluster(kinds, shaping)
        return first, second

    def cluster(self, kinds: str, shaping: Shaping) -> list[BrokerProcess]:
        """Configured brokers, not started, one for each of `kinds` ("atalanta+artemis+artemis-2.28.0+…").

        `shaping` gets the index of a node and the ports of all.
        """
        nodes = [self._new(kind, free_port()) for kind in kinds.split("+")]
        ports = [node.port for node in nodes]
        for index, node in enumerate(nodes):
            node.configure(shaping(index, ports))
        return nodes

    def close(self) -> None:
        """Ends every broker that still runs."""
        for node in self._made:
            node.close()

    def _new(self, kind: str, port: int) -> BrokerProcess:
        name = f"{kind}-{len(self._made) + 1}"
        folder = self._folder / name
        node: BrokerProcess
        if kind == "atalanta":
            node = AtalantaNode(folder, name, port)
        elif kind == "artemis":
            node = ArtemisNode(folder, name, port)
        else:
            node = EmbeddedArtemis(folder, name, port, kind.removeprefix("artemis-"))
        self._made.append(node)
        return node
