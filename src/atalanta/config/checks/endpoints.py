"""Checks of hosts, ports, folders and ids that two nodes cannot share, and of connectors without an acceptor."""

from __future__ import annotations

from atalanta.config.checks.findings import ERROR, INFORMATION, WARNING, CheckedNode, Findings
from atalanta.config.checks.reachability import WILDCARD_HOSTS, reaches
from atalanta.config.checks.replicated_groups.group import groups_of
from atalanta.config.checks.shared_store import share_a_store
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from atalanta.wire.loopback import is_loopback


def check_endpoints(nodes: list[CheckedNode], findings: Findings) -> None:
    groups = [group.members for group in groups_of([node.configuration for node in nodes])]
    for at, node in enumerate(nodes):
        _check_own_ports(node, findings)
        _check_connectors(node, nodes, findings)
        for other in nodes[:at]:
            together = any(node.configuration in group and other.configuration in group for group in groups)
            _check_pair(node, other, together, findings)


def _check_own_ports(node: CheckedNode, findings: Findings) -> None:
    acceptors = node.configuration.acceptors
    for at, acceptor in enumerate(acceptors):
        for other in acceptors[:at]:
            if acceptor.port and _overlap(acceptor, other):
                findings.add(
                    ERROR, node, "acceptor", acceptor.name,
                    f"acceptors '{other.name}' and '{acceptor.name}' both listen on port "
                    f"{acceptor.port}",
                )  # fmt: skip


def _check_pair(node: CheckedNode, other: CheckedNode, together: bool, findings: Findings) -> None:
    """Checks what two nodes cannot share. The members of one replicated group, `together`, have one node id."""
    one, two = node.configuration, other.configuration
    pair = share_a_store(one, two)
    equal = pair and one.ha.equals and two.ha.equals
    if one.broker.name == two.broker.name and not equal:
        findings.about(
            WARNING, node, f"its name '{one.broker.name}' is that of {two.path}, too",
            "names tell nodes apart in logs and consoles",
        )  # fmt: skip
    if not pair and one.broker.persistence_enabled and two.broker.persistence_enabled:
        if one.journal_folder == two.journal_folder:
            findings.about(
                ERROR, node, f"its journal folder {one.journal_folder} is that of {two.path}, too"
            )
    if not pair and not together and node.node_id is not None and node.node_id == other.node_id:
        findings.about(
            ERROR, node, f"its data folder has the node id of {two.path}, {node.node_id}",
            "data folders cannot be copied from node to node",
        )  # fmt: skip
    for acceptor in one.acceptors:
        for taken in two.acceptors:
            if acceptor.port and _overlap(acceptor, taken):
                _same_port(node, acceptor, other, taken, equal, findings)


def _same_port(
    node: CheckedNode,
    acceptor: AcceptorConfig,
    other: CheckedNode,
    taken: AcceptorConfig,
    equal: bool,
    findings: Findings,
) -> None:
    """Reports a shared port: an error if both must be on one machine; no finding if they cannot be.

    `equal`: they are equals with one store, which are usually on two machines, and have one file then.
    """
    mine, theirs = node.announced, other.announced
    exact = acceptor.host not in WILDCARD_HOSTS and taken.host not in WILDCARD_HOSTS
    text = (
        f"acceptor '{acceptor.name}' has port {acceptor.port}, as acceptor '{taken.name}' of "
        f"{other.configuration.path}"
    )
    if mine is not None and theirs is not None and not exact:
        if mine.host != theirs.host and not (is_loopback(mine.host) and is_loopback(theirs.host)):
            return
        exact = True
    level = ERROR if exact else INFORMATION if equal else WARNING
    hint = "" if exact else "both cannot run on one machine"
    findings.add(level, node, "acceptor", acceptor.name, text, hint)


def _overlap(one: AcceptorConfig, two: AcceptorConfig) -> bool:
    if one.port != two.port:
        return False
    return one.host == two.host or one.host in WILDCARD_HOSTS or two.host in WILDCARD_HOSTS


def _check_connectors(node: CheckedNode, nodes: list[CheckedNode], findings: Findings) -> None:
    configuration = node.configuration
    connections = node.configuration.cluster_connections
    announced = [each.connector for each in connections]
    for group in configuration.broadcast_groups:
        announced += [name for name in group.connectors if name not in announced]
    dialled = [name for each in connections for name in each.static_connectors]
    for name, connector in configuration.connectors.items():
        if connector.host in WILDCARD_HOSTS:
            used = name in announced or name in dialled
            findings.add(
                ERROR if used else WARNING, node, "connector", name,
                f"connector '{name}' has the host {connector.host}, which cannot be connected to",
                "name the host or address by which others reach this node",
            )  # fmt: skip
        elif name in announced:
            _check_announced(node, connector, nodes, findings)
        elif name in dialled:
            _check_dialled(node, connector, nodes, findings)


def _check_announced(
    node: CheckedNode, connector: ConnectorConfig, nodes: list[CheckedNode], findings: Findings
) -> None:
    own = [each for each in node.configuration.acceptors if reaches(connector, each)]
    endpoint = f"{connector.host}:{connector.port}"
    if not own:
        findings.add(
            WARNING, node, "connector", connector.name,
            f"connector '{connector.name}' is announced, but no acceptor of this node listens on {endpoint}",
        )  # fmt: skip
    _check_tls(node, connector, own, findings)
    elsewhere = [
        other.announced.host
        for other in nodes
        if other is not node and other.announced is not None
        and other.announced.host not in WILDCARD_HOSTS
        and not is_loopback(other.announced.host)
    ]  # fmt: skip
    if is_loopback(connector.host) and elsewhere:
        findings.add(
            ERROR, node, "connector", connector.name,
            f"connector '{connector.name}' announces {connector.host}, which {elsewhere[0]} cannot reach",
        )  # fmt: skip


def _check_dialled(
    node: CheckedNode, connector: ConnectorConfig, nodes: list[CheckedNode], findings: Findings
) -> None:
    if len(nodes) == 1:
        return  # the target is not among the files
    found = [
        acceptor
        for other in nodes
        for acceptor in other.configuration.acceptors
        if reaches(connector, acceptor)
    ]
    _check_tls(node, connector, found, findings)
    if found:
        return
    hosts = {
        each.announced.host for each in nodes if each.announced is not None
    } | {acceptor.host for each in nodes for acceptor in each.configuration.acceptors}  # fmt: skip
    known = connector.host in hosts
    findings.add(
        ERROR if known else WARNING, node, "connector", connector.name,
        f"connector '{connector.name}' leads to {connector.host}:{connector.port}, where none of "
        "these nodes listens",
        "" if known else "unless that node's file was not given",
    )  # fmt: skip


def _check_tls(
    node: CheckedNode,
    connector: ConnectorConfig,
    acceptors: list[AcceptorConfig],
    findings: Findings,
) -> None:
    for acceptor in acceptors:
        if (connector.tls is None) != (acceptor.tls is None):
            with_tls, without = ("connector", "acceptor")
            if connector.tls is None:
                with_tls, without = without, with_tls
            findings.add(
                ERROR, node, "connector", connector.name,
                f"{with_tls} '{connector.name if with_tls == 'connector' else acceptor.name}' has "
                f"sslEnabled, {without} "
                f"'{connector.name if without == 'connector' else acceptor.name}' at "
                f"{connector.host}:{connector.port} has not",
            )  # fmt: skip
