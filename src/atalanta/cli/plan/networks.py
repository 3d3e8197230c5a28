"""The networks of brokers among the files of `atalanta plan`: which node each uri leads to.

They are not formed in the simulator: a uri names its brokers, and what it does not name is told.
"""

from __future__ import annotations

from atalanta.cluster.networks import MULTICAST, NetworkConnectorConfig, NetworkTarget, message_hops
from atalanta.config import Configuration
from atalanta.config.checks import WILDCARD_HOSTS, same_host
from atalanta.sim.files.plan import PlannedLink, PlanResult, groups


def add_networks(plan: PlanResult, nodes: dict[str, Configuration]) -> None:
    """Adds the bridges between nodes of the plan as links, also to the groups that remain without one node."""
    for label in plan.nodes:
        for config in nodes[label].networks.connectors:
            for target in targets_of(plan, config, label, nodes):
                _add(plan, config, label, target)
    bridges = [(link.source, link.target) for link in plan.links if link.network]
    for gone, islands in plan.without.items():
        left = [label for island in islands for label in island]
        pairs = [(island[0], label) for island in islands for label in island]
        pairs += [(one, two) for one, two in bridges if one in left and two in left]
        plan.without[gone] = groups(left, pairs)


def _add(plan: PlanResult, config: NetworkConnectorConfig, source: str, target: str) -> None:
    found = f"{config.way.kind}:, TTL {message_hops(config)}" + (", duplex" if config.duplex else "")
    ways = [(source, target), (target, source)] if config.duplex else [(source, target)]
    for one, two in ways:
        link = PlannedLink(one, two, f"network {config.name}", found, True)
        if link not in plan.links:
            plan.links.append(link)


def targets_of(
    plan: PlanResult, config: NetworkConnectorConfig, label: str, nodes: dict[str, Configuration]
) -> list[str]:
    """Returns the nodes of the plan that the connector of `label` leads to. What is in no file is noted in the plan."""
    if config.way.kind == MULTICAST:
        group = config.way.group
        return [
            other
            for other in plan.nodes
            if other != label and any(_group(uri) == group for uri in nodes[other].networks.discovery_uris.values())
        ]
    found: list[str] = []
    for target in [each for bridge in config.way.bridges for each in bridge]:
        at = node_at(target, label, nodes, found)
        if at is None:
            where = f"{target.host}:{target.port}"
            plan.outside.append(f"{label}: network '{config.name}' leads to {where}, which is in none of these files")
        elif at in plan.nodes and at not in found:
            found.append(at)
    return found


def node_at(
    target: NetworkTarget, source: str, nodes: dict[str, Configuration], taken: list[str]
) -> str | None:
    """Returns the node with an acceptor at this address: by its host, else by a name that is that of the host, else
    the only other one that listens on this port on all addresses, and is not `taken`."""
    everywhere: list[str] = []
    for label, configuration in nodes.items():
        if label == source:
            continue
        for acceptor in configuration.acceptors:
            if acceptor.port != target.port:
                continue
            if acceptor.host in WILDCARD_HOSTS:
                everywhere.append(label)
            elif same_host(acceptor.host, target.host):
                return label
    names = (target.host, target.host.partition(".")[0])
    named = [label for label in everywhere if label in names or nodes[label].broker.name in names]
    if named:
        return named[0]
    return everywhere[0] if len(everywhere) == 1 and everywhere[0] not in taken else None


def _group(uri: str) -> str:
    """Returns the group of `multicast://group`."""
    return uri.partition(":")[2].removeprefix("//").partition("?")[0] or "default"
