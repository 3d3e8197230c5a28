"""Checks that the nodes of several files form one cluster and have the same settings."""

from __future__ import annotations

from collections.abc import Iterable

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.cluster.discovery.dns import dns_names
from atalanta.config.checks.findings import ERROR, INFORMATION, WARNING, CheckedNode, Findings
from atalanta.config.checks.groups import group_faults
from atalanta.config.checks.reachability import group_key, hears, reaches
from atalanta.kernel.settings.effective_settings import all_address_settings


def check_cluster(nodes: list[CheckedNode], findings: Findings) -> None:
    members = [node for node in nodes if node.connection is not None]
    for node in nodes:
        for fault in group_faults(node.configuration):
            findings.add(fault.level, node, fault.kind, fault.name, fault.text, fault.hint)
    if len(members) < 2:
        return
    for node in nodes:
        if node.connection is None:
            findings.about(
                WARNING, node, "it has no cluster-connection: it stays alone beside the cluster"
            )
    _check_credentials(members, findings)
    _check_discovery(members, findings)
    _check_connections(members, findings)
    _check_settings(members, findings)
    _check_addresses(members, findings)
    _check_users(members, findings)


def _check_credentials(members: list[CheckedNode], findings: Findings) -> None:
    first = members[0].configuration
    for node in members[1:]:
        broker = node.configuration.broker
        for what, mine, theirs in (
            ("cluster-user", broker.cluster_user, first.broker.cluster_user),
            ("cluster-password", broker.cluster_password, first.broker.cluster_password),
        ):
            if mine != theirs:
                findings.about(ERROR, node, f"its {what} is not that of {first.path}")


def _hears(listener: CheckedNode, speaker: CheckedNode) -> bool:
    """Returns whether the discovery group of `listener` receives the broadcasts of `speaker`."""
    groups = listener.configuration.discovery_groups
    return any(
        hears(groups[connection.discovery_group], speaker.configuration)
        for connection in listener.configuration.cluster_connections
        if connection.discovery_group in groups
    )


def _dials(node: CheckedNode, other: CheckedNode) -> bool:
    """Returns whether a static connector of any cluster connection of `node` leads to `other`."""
    connectors = node.configuration.connectors
    return any(
        reaches(connectors[name], acceptor)
        for connection in node.configuration.cluster_connections
        for name in connection.static_connectors
        if name in connectors
        for acceptor in other.configuration.acceptors
    )


def _named(node: CheckedNode, other: CheckedNode) -> bool:
    """Returns whether both nodes look for members behind the same DNS name. Then both are assumed to be listed."""
    mine, theirs = (
        [found.name for text in each.configuration.own.dns_texts() for found in dns_names(text)]
        for each in (node, other)
    )
    return any(name in theirs for name in mine)


def _check_discovery(members: list[CheckedNode], findings: Findings) -> None:
    for node in members:
        for connection in node.configuration.cluster_connections:
            _check_hearing(node, connection, members, findings)
    islands = _islands(members)
    if len(islands) > 1:
        shown = " | ".join(
            ", ".join(str(node.configuration.path) for node in island) for island in islands
        )
        findings.together(ERROR, f"these nodes never meet: {shown}")


def _check_hearing(
    node: CheckedNode,
    connection: ClusterConnectionConfig,
    members: list[CheckedNode],
    findings: Findings,
) -> None:
    """Checks that the discovery group of the node receives every other member of the same cluster."""
    name = connection.discovery_group
    if name is None:
        return
    group = node.configuration.discovery_groups[name]
    for other in members:
        if other is node or not _shares(node, connection, other):
            continue
        if not hears(group, other.configuration) and not _dials(other, node) and not _named(node, other):
            sent = [group_key(each) for each in other.configuration.broadcast_groups]
            findings.add(
                ERROR, node, "discovery-group", name,
                f"discovery-group '{name}' listens to {group_key(group)}; "
                f"{other.configuration.path} announces itself to {', '.join(sent) or 'nobody'}",
            )  # fmt: skip


def _shares(node: CheckedNode, connection: ClusterConnectionConfig, other: CheckedNode) -> bool:
    """Returns whether `other` may be in the cluster of that connection. Names decide only if there are several."""
    theirs = other.configuration.cluster_connections
    if len(theirs) == 1 and len(node.configuration.cluster_connections) == 1:
        return True
    return any(each.name == connection.name for each in theirs)


def _islands(members: list[CheckedNode]) -> list[list[CheckedNode]]:
    """Groups the nodes that find each other, directly or through others: members pass on the topology."""
    islands: list[list[CheckedNode]] = []
    for node in members:
        near = [
            island
            for island in islands
            if any(
                _hears(node, each)
                or _hears(each, node)
                or _dials(node, each)
                or _dials(each, node)
                or _named(node, each)
                for each in island
            )
        ]
        joined = [each for island in near for each in island]
        islands = [island for island in islands if island not in near] + [[*joined, node]]
    return islands


def _check_connections(members: list[CheckedNode], findings: Findings) -> None:
    """Compares cluster connections of the same name, which should agree. A node may have several."""
    for at, node in enumerate(members[1:], 1):
        theirs: dict[str, tuple[CheckedNode, ClusterConnectionConfig]] = {}
        for other in members[:at]:
            for connection in other.configuration.cluster_connections:
                theirs.setdefault(connection.name, (other, connection))
        for connection in node.configuration.cluster_connections:
            known = theirs.get(connection.name)
            if known is None and len(node.configuration.cluster_connections) == 1:
                other = members[0]
                if len(other.configuration.cluster_connections) == 1:
                    _compare(
                        node, connection, other, other.configuration.cluster_connections[0], findings
                    )
            elif known is not None:
                _compare(node, connection, known[0], known[1], findings)


def _compare(
    node: CheckedNode,
    mine: ClusterConnectionConfig,
    other: CheckedNode,
    theirs: ClusterConnectionConfig,
    findings: Findings,
) -> None:
    for what, here, there in (
        ("name", mine.name, theirs.name),
        ("address", mine.address, theirs.address),
        ("max-hops", mine.max_hops, theirs.max_hops),
        (
            "message-load-balancing",
            mine.message_load_balancing,
            theirs.message_load_balancing,
        ),
    ):
        if here != there:
            findings.add(
                WARNING, node, "cluster-connection", mine.name,
                f"cluster-connection '{mine.name}': {what} is {here}, that of "
                f"{other.configuration.path} is {there}",
            )  # fmt: skip


def _check_settings(members: list[CheckedNode], findings: Findings) -> None:
    first = members[0].configuration
    theirs = {each.match: each.values for each in all_address_settings(first.broker)}
    for node in members[1:]:
        mine = {each.match: each.values for each in all_address_settings(node.configuration.broker)}
        for match in _names(mine, theirs):
            one, two = mine.get(match, {}), theirs.get(match, {})
            for option in _names(one, two):
                if one.get(option) != two.get(option):
                    findings.about(
                        WARNING, node,
                        f"address-setting '{match}': {option} is {_shown(one, option)}, that of "
                        f"{first.path} is {_shown(two, option)}",
                    )  # fmt: skip
    for node in members:
        settings = all_address_settings(node.configuration.broker)
        if not any(each.values.get("redistribution_delay_ms", -1) != -1 for each in settings):
            findings.about(
                INFORMATION, node,
                "redistribution-delay is nowhere set: messages stay where their consumers were",
            )  # fmt: skip


def _check_addresses(members: list[CheckedNode], findings: Findings) -> None:
    first = members[0].configuration
    theirs = {each.name: each for each in first.broker.addresses}
    for node in members[1:]:
        for address in node.configuration.broker.addresses:
            other = theirs.get(address.name)
            if other is None:
                continue
            if (address.anycast, address.multicast) != (other.anycast, other.multicast):
                findings.about(
                    WARNING, node,
                    f"address '{address.name}' has other routing types than in {first.path}",
                )  # fmt: skip


def _check_users(members: list[CheckedNode], findings: Findings) -> None:
    first = members[0]
    if first.security is None:
        return
    theirs = first.security.users
    for node in members[1:]:
        if node.security is None or node.security.enabled != first.security.enabled:
            continue
        mine = node.security.users
        for name in _names(mine, theirs):
            here, there = mine.get(name), theirs.get(name)
            path = first.configuration.path
            if here is None or there is None:
                where = "not known here" if here is None else "known here"
                text = f"user '{name}' is {where}, unlike in {path}"
            elif sorted(here.roles) != sorted(there.roles):
                text = f"user '{name}' has other roles than in {path}"
            else:
                continue
            findings.about(WARNING, node, text, "clients move between the nodes of a cluster")


def _names(*found: Iterable[str]) -> list[str]:
    return sorted({name: True for names in found for name in names})


def _shown(values: dict[str, object] | object, option: str) -> str:
    assert isinstance(values, dict)
    return str(values[option]) if option in values else "not set"
