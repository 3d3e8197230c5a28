"""Checks of connection routers across the given files: used by an acceptor, and not in a circle."""

from __future__ import annotations

from atalanta.cluster.connection_routers.config import CONSISTENT_HASH, PoolConfig, RouterConfig
from atalanta.config.checks.findings import WARNING, CheckedNode, Findings
from atalanta.config.checks.reachability import reaches
from atalanta.kernel.security.security import is_public_password
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig

KIND = "connection-router"


def check_routers(nodes: list[CheckedNode], findings: Findings) -> None:
    for node in nodes:
        configuration = node.configuration
        for router in configuration.routers:
            acceptors = [each for each in configuration.acceptors if each.router == router.name]
            if not acceptors:
                findings.add(
                    WARNING, node, KIND, router.name,
                    f"connection-router '{router.name}' is used by no acceptor",
                    f"acceptors name it: tcp://…?router={router.name}",
                )  # fmt: skip
            elif router.pool is not None:
                _check_user(node, router.name, router.pool, findings)
                if router.policy != CONSISTENT_HASH:
                    _check_circle(node, router, nodes, findings)


def _check_user(node: CheckedNode, name: str, pool: PoolConfig, findings: Findings) -> None:
    """Reports a pool that would log in at its targets with the password that everybody knows."""
    named = pool.user is not None or pool.cluster_connection is not None
    if named or not is_public_password(node.configuration.broker.cluster_password):
        return
    findings.add(
        WARNING, node, KIND, name,
        f"connection-router '{name}': its pool has no username, and this file no cluster-password of its own: targets"
        " without a cluster-connection refuse the cluster user",
        "give the pool a username and password, or all these nodes the same cluster-user and cluster-password",
    )  # fmt: skip


def _check_circle(
    node: CheckedNode, router: RouterConfig, nodes: list[CheckedNode], findings: Findings
) -> None:
    """Reports a target acceptor with a router of its own: clients might be redirected back for ever."""
    for other in nodes:
        for connector in _targets(node, router, other):
            acceptor = _target_acceptor(connector, other)
            if acceptor is None or acceptor.router is None or other is node:
                continue
            findings.add(
                WARNING, node, KIND, router.name,
                f"connection-router '{router.name}' sends clients to acceptor '{acceptor.name}' of "
                f"{other.configuration.path}, which has a router, too: they may be sent back",
                "give the targets an acceptor without router=, and announce that one",
            )  # fmt: skip
            return


def _targets(node: CheckedNode, router: RouterConfig, other: CheckedNode) -> list[ConnectorConfig]:
    pool = router.pool
    if pool is None:
        return []
    if pool.static_connectors:
        connectors = node.configuration.connectors
        return [connectors[name] for name in pool.static_connectors if name in connectors]
    return [] if other.announced is None else [other.announced]


def _target_acceptor(connector: ConnectorConfig, other: CheckedNode) -> AcceptorConfig | None:
    for acceptor in other.configuration.acceptors:
        if reaches(connector, acceptor):
            return acceptor
    return None
