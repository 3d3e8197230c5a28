"""The simulation of the nodes that files describe, which shows the connections that result from the files.

A node is reached at every address of its acceptors. For an acceptor on all interfaces these are the hosts under which
the node announces itself. Names and addresses are used as written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from atalanta.cluster import dns_names
from atalanta.node import Node, Ports
from atalanta.sim.files.group import FileMember, FileMembers, FileSeat
from atalanta.sim.host import Host
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World


@dataclass
class FileNode:
    """A node: `label` is its name for people; `listeners` are (host, port, acceptor) where it listens."""

    label: str
    make: Callable[[Ports], Node]
    listeners: list[tuple[str, int, str]] = field(default_factory=list)
    seat: FileSeat | None = None  # of a member of a replicated group


class FileHost(Host):
    """A host with several addresses."""

    def __init__(self, world: World, network: Network, node: FileNode) -> None:
        first = node.listeners[0] if node.listeners else (node.label, 0, "")
        super().__init__(world, network, node.label, first[0], first[1], node.make)
        self.file_node = node
        self.listeners = {port: acceptor for _, port, acceptor in node.listeners}

    def start(self) -> None:
        super().start()
        for host, port, _ in self.file_node.listeners:
            self.network.listen(self, host, port)
        self._enter_names()

    def _enter_names(self) -> None:
        """Registers each DNS name that members look up with the host of their acceptors."""
        if self.node is None:
            return
        texts = self.node.config.own.dns_texts()
        for name in [found for text in texts for found in dns_names(text)]:
            addresses = self.network.names.setdefault(name.name, [])
            for host, port, _ in self.file_node.listeners[:1]:
                address = (host, 0 if name.port else port)
                if address not in addresses:
                    addresses.append(address)


class FileWorld:
    """The hosts by label; `run` advances virtual time."""

    def __init__(self, nodes: list[FileNode], seed: int = 1) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.network.latency_ns = (100_000, 1_000_000)
        self.hosts: dict[str, Host] = {}
        self.groups: dict[str, FileMembers] = {}  # by the label of the first member
        for node in nodes:
            self.add(node)

    def add(self, node: FileNode) -> Host:
        """Adds a further node without starting it."""
        host = FileHost(self.world, self.network, node) if node.seat is None else self._member(node, node.seat)
        self.hosts[node.label] = host
        return host

    def _member(self, node: FileNode, seat: FileSeat) -> FileMember:
        first = seat.group.labels[0]
        if first not in self.groups:
            self.groups[first] = FileMembers(self.world, self.network, seat.group)
        members = self.groups[first]
        return FileMember(self.world, self.network, node.label, node.listeners, node.make, members, seat)

    def members(self, label: str) -> list[Host]:
        """Returns the host of a node, and the others of its replicated group behind it."""
        own = self.hosts[label]
        group = [each for each in self.groups.values() if label in each.names]
        others = [self.hosts[name] for name in group[0].names if name != label] if group else []
        return [own, *others]

    def start(self, labels: list[str] | None = None) -> None:
        """Starts these nodes (all if None)."""
        for label, host in self.hosts.items():
            if labels is None or label in labels:
                host.start()

    def run(self, seconds: float) -> None:
        """Advances virtual time."""
        self.world.run_until(self.world.now + int(seconds * SECOND))

    def up(self) -> dict[str, Node]:
        """Returns the running nodes by label."""
        return {label: host.node for label, host in self.hosts.items() if host.node is not None}
