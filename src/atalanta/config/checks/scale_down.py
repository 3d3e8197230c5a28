"""Checks of scale-down across the given files: the target of each node that leaves."""

from __future__ import annotations

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.checks.findings import ERROR, WARNING, CheckedNode, Findings
from atalanta.config.checks.reachability import reaches

KIND = "scale-down"
NAME = ""


def check_scale_down(nodes: list[CheckedNode], findings: Findings) -> None:
    leaving: list[tuple[CheckedNode, ScaleDownConfig]] = []
    for node in nodes:
        config = node.configuration.scale_down
        if config is not None and node.connection is not None:
            leaving.append((node, config))
            _check_own(node, config, findings)
    members = [node for node in nodes if node.connection is not None]
    if len(members) < 2:
        return
    for node, config in leaving:
        if config.enabled:
            _check_target(node, config, members, findings)
    _check_receivers(members, leaving, findings)


def _check_own(node: CheckedNode, config: ScaleDownConfig, findings: Findings) -> None:
    connectors = node.configuration.connectors
    for name in config.connectors:
        connector = connectors.get(name)
        own = connector is not None and any(
            reaches(connector, acceptor) for acceptor in node.configuration.acceptors
            if connector.host == acceptor.host
        )  # fmt: skip
        if own and len(config.connectors) == 1:
            findings.add(
                ERROR, node, KIND, NAME,
                f"scale-down: connector '{name}' leads to this node itself: its messages would stay here",
            )  # fmt: skip
    if config.enabled and not node.configuration.broker.persistence_enabled:
        findings.add(
            WARNING, node, KIND, NAME,
            "scale-down without persistence: what could not be moved is lost with the node",
        )  # fmt: skip


def _check_target(
    node: CheckedNode, config: ScaleDownConfig, members: list[CheckedNode], findings: Findings
) -> None:
    others = [other for other in members if other is not node]
    if config.group_name is not None:
        if not any(group_of(other) == config.group_name for other in others):
            findings.add(
                ERROR, node, KIND, NAME,
                f"scale-down: no other node is of the group '{config.group_name}': no member can take its messages",
                "give another node <scale-down> with this <group-name> (and <enabled>false</enabled> if it stays)",
            )  # fmt: skip
        return
    if not config.connectors:
        return
    connectors = node.configuration.connectors
    reached = any(
        reaches(connectors[name], acceptor)
        for name in config.connectors
        if name in connectors
        for other in others
        for acceptor in other.configuration.acceptors
    )
    if not reached:
        findings.add(
            WARNING, node, KIND, NAME,
            f"scale-down: {', '.join(config.connectors)} lead to none of the other nodes",
        )  # fmt: skip


def _check_receivers(
    members: list[CheckedNode],
    leaving: list[tuple[CheckedNode, ScaleDownConfig]],
    findings: Findings,
) -> None:
    """Warns if all nodes scale down at a stop: then a shutdown moves all messages to the last one."""
    if len(leaving) == len(members) and all(config.enabled for _, config in leaving):
        findings.together(
            WARNING,
            "every node scales down at a stop: stopping all of them gathers all messages in the last one,"
            " which stops with status 3",
            "leave one with <enabled>false</enabled>",
        )


def group_of(node: CheckedNode) -> str | None:
    config = node.configuration.scale_down
    return None if config is None else config.group_name
