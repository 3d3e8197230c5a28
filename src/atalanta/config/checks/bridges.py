"""Checks of core bridges that can be read but will not work as intended."""

from __future__ import annotations

from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.config.checks.findings import ERROR, WARNING, CheckedNode, Findings
from atalanta.config.checks.reachability import reaches


def check_bridges(nodes: list[CheckedNode], findings: Findings) -> None:
    for node in nodes:
        for bridge in node.configuration.bridges:
            _check_queue(node, bridge, findings)
            _check_retries(node, bridge, findings)
            _check_target(node, bridge, nodes, findings)


def _check_queue(node: CheckedNode, bridge: CoreBridgeConfig, findings: Findings) -> None:
    queues = {
        queue.name for address in node.configuration.broker.addresses for queue in address.queues
    }
    if bridge.queue_name not in queues:
        findings.add(
            WARNING, node, "bridge", bridge.name,
            f"bridge '{bridge.name}': there is no queue '{bridge.queue_name}' in <addresses>",
            "the bridge waits until the queue is created; Artemis would not start it",
        )  # fmt: skip


def _check_retries(node: CheckedNode, bridge: CoreBridgeConfig, findings: Findings) -> None:
    if bridge.retry_interval_ms > bridge.max_retry_interval_ms:
        findings.add(
            WARNING, node, "bridge", bridge.name,
            f"bridge '{bridge.name}': retry-interval {bridge.retry_interval_ms} is cut to max-retry-interval "
            f"{bridge.max_retry_interval_ms}",
        )  # fmt: skip


def _check_target(
    node: CheckedNode, bridge: CoreBridgeConfig, nodes: list[CheckedNode], findings: Findings
) -> None:
    """Checks the target among the given files: a bridge to its own queue, or to an address that does not exist."""
    for name in bridge.static_connectors:
        connector = node.configuration.connectors[name]
        for other in nodes:
            if not any(reaches(connector, each) for each in other.configuration.acceptors):
                continue
            if bridge.has_default_user and _refuses(other, bridge):
                findings.add(
                    ERROR, node, "bridge", bridge.name,
                    f"bridge '{bridge.name}': {other.configuration.path} refuses the default cluster user",
                    "give the bridge a <user> and <password> of that node",
                )  # fmt: skip
            if other is node and _returns(node, bridge):
                findings.add(
                    ERROR, node, "bridge", bridge.name,
                    f"bridge '{bridge.name}' leads back to its own queue '{bridge.queue_name}'",
                )  # fmt: skip
            known = {address.name for address in other.configuration.broker.addresses}
            wanted = bridge.forwarding_address
            if wanted is not None and wanted.split("::")[0] not in known:
                findings.add(
                    WARNING, node, "bridge", bridge.name,
                    f"bridge '{bridge.name}': {other.configuration.path} has no address '{wanted}'",
                    "nothing is sent until it is created",
                )  # fmt: skip


def _refuses(target: CheckedNode, bridge: CoreBridgeConfig) -> bool:
    security = target.security
    if security is None or not security.enabled or (security.chain is not None and security.chain.directories):
        return False  # a directory may know the user
    return security.authenticate(bridge.user, bridge.password) is None


def _returns(node: CheckedNode, bridge: CoreBridgeConfig) -> bool:
    own = node.configuration.own.bridges.get(bridge.name)
    if own is not None and (own.address_prefix or own.address_suffix):
        return False
    for address in node.configuration.broker.addresses:
        if any(queue.name == bridge.queue_name for queue in address.queues):
            return bridge.forwarding_address in (None, address.name)
    return False
