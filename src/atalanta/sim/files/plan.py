"""The cluster that configuration files form: links, topologies, hops, and the targets of each address.

The plan also has the clusters that remain without one node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from atalanta.cluster import DNS_PLACE, ClusterConnection
from atalanta.kernel.routing import NODE_ID_CHARACTERS
from atalanta.node import Node
from atalanta.sim.files.world import FileNode, FileWorld
from atalanta.wire.core import TransportConfiguration

FORMING_SECONDS: Final = 30.0
FROM_TOPOLOGY: Final = "the topology"


@dataclass
class PlannedLink:
    """A connection: `source` sends to `target` over `connection`; `found` is the source of its address. `network`: a
    bridge of a network of brokers, not a link of a cluster."""

    source: str
    target: str
    connection: str
    found: str
    network: bool = False


@dataclass
class Reach:
    """A route: messages for `queue` sent at `source` can go to `target`, `hops` away."""

    queue: str
    address: str
    source: str
    target: str
    hops: int


@dataclass
class PlanResult:
    """The result. `members` are the nodes that each node announces to its clients. `without` has the groups of nodes
    that still reach each other without one node. `outside`: what leads to a node that is in none of the files."""

    nodes: list[str]
    links: list[PlannedLink] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    reach: list[Reach] = field(default_factory=list)
    without: dict[str, list[list[str]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)

    def islands(self) -> list[list[str]]:
        """Returns the groups of nodes that reach each other, over any number of links in either direction."""
        return groups(self.nodes, [(link.source, link.target) for link in self.links])

    def one_way(self) -> list[PlannedLink]:
        """Returns links without a link in the other direction."""
        pairs = {(link.source, link.target) for link in self.links}
        return [link for link in self.links if (link.target, link.source) not in pairs]

    def critical(self) -> list[str]:
        """Returns nodes whose absence splits their cluster."""
        parted = []
        for label, islands in self.without.items():
            whole = [
                [other for other in island if other != label]
                for island in self.islands()
                if island != [label]
            ]
            if len(islands) > len([island for island in whole if island]):
                parted.append(label)
        return parted


def groups(nodes: list[str], pairs: list[tuple[str, str]]) -> list[list[str]]:
    """Returns the connected parts of an undirected graph, in the order of `nodes`."""
    island_of = {node: {node: True} for node in nodes}
    for one, two in pairs:
        first, second = island_of[one], island_of[two]
        if first is not second:
            first.update(second)
            for node in second:
                island_of[node] = first
    found: list[list[str]] = []
    for node in nodes:
        island = [each for each in nodes if each in island_of[node]]
        if island not in found:
            found.append(island)
    return found


def form(
    nodes: Callable[[], list[FileNode]],
    substitutes: Callable[[str], list[FileNode]] = lambda label: [],
    seed: int = 1,
) -> PlanResult:
    """Starts all nodes, then all but one for each node, in separate simulations of half a minute.

    `nodes` creates new nodes for each simulation. `substitutes` creates those that serve when one is away.
    """
    plan = _formed(nodes(), seed)
    if len(plan.nodes) > 2:
        for label in plan.nodes:
            rest = [node for node in nodes() if node.label != label] + substitutes(label)
            plan.without[label] = _formed(rest, seed).islands()
    return plan


def _formed(nodes: list[FileNode], seed: int) -> PlanResult:
    plan = PlanResult([node.label for node in nodes])
    world = FileWorld(nodes, seed)
    for host in world.hosts.values():
        host.on_gave_up = lambda gone, why: plan.failed.update({gone.name: why})
    world.start()
    world.run(FORMING_SECONDS)
    up = world.up()
    labels = {node.broker.node_id: label for label, node in up.items()}
    for label, node in up.items():
        plan.members[label] = sorted({
            labels.get(member, member)
            for cluster in clusters_of(node)
            for member in cluster.topology.members
        })
        for cluster in clusters_of(node):
            _links(plan, label, cluster, labels)
            _reach(plan, label, cluster, labels, up)
    return plan


def clusters_of(node: Node) -> list[ClusterConnection]:
    """Returns the node's cluster connections."""
    return [] if node.clusters is None else list(node.clusters.connections)


def _links(plan: PlanResult, label: str, cluster: ClusterConnection, labels: dict[str, str]) -> None:
    for node_id, record in cluster.peers.items():
        if record.linked():
            target = labels.get(node_id, node_id)
            found = _how(cluster, record.member.primary if record.member is not None else None)
            plan.links.append(PlannedLink(label, target, cluster.config.name, found))


def _how(cluster: ClusterConnection, target: TransportConfiguration | None) -> str:
    """Returns the connector or group of the file that has this address; otherwise it came from the topology."""
    config = cluster.config
    for name in config.static_connectors:
        if target is not None and cluster.settings.transport(name).same_target(target):
            return f"connector {name}"
    if config.discovery_group is not None:
        return f"discovery group {config.discovery_group}"
    for name, known in cluster.scanner.targets.items():
        if name.startswith(DNS_PLACE) and target is not None and known.same_target(target):
            return "the DNS"
    return FROM_TOPOLOGY


def _reach(
    plan: PlanResult, label: str, cluster: ClusterConnection, labels: dict[str, str], up: dict[str, Node]
) -> None:
    for record in cluster.peers.values():
        for name, remote in record.bindings.bindings.items():
            queue, owner = name[:-NODE_ID_CHARACTERS], name[-NODE_ID_CHARACTERS:]
            if owner not in labels or _internal(up[labels[owner]], remote.address):
                continue
            target = labels[owner]
            plan.reach.append(
                Reach(queue, remote.address, label, target, remote.distance)
            )


def _internal(node: Node, address: str) -> bool:
    found = node.broker.addresses.get(address)
    return found is not None and found.internal
