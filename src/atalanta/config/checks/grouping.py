"""Checks of grouping handlers across the given files: one LOCAL, the others REMOTE, on a shared address."""

from __future__ import annotations

from atalanta.cluster.address_prefixes import Covered
from atalanta.cluster.grouping.config import LOCAL, REMOTE, GroupingHandlerConfig
from atalanta.config.checks.findings import ERROR, WARNING, CheckedNode, Findings

KIND = "grouping-handler"


def check_grouping(nodes: list[CheckedNode], findings: Findings) -> None:
    handlers: list[tuple[CheckedNode, GroupingHandlerConfig]] = []
    for node in nodes:
        handler = node.configuration.grouping
        if handler is not None:
            handlers.append((node, handler))
            _check_own(node, handler, findings)
    if len(nodes) < 2 or not handlers:
        return
    _check_types(handlers, findings)
    for node in nodes:
        if node.configuration.grouping is None and node.connection is not None:
            findings.about(
                ERROR, node, "it has no grouping-handler, unlike other nodes of the cluster",
                "messages that it gets do not stay with their groups",
            )  # fmt: skip
    first, theirs = handlers[0]
    for node, mine in handlers[1:]:
        if mine.address != theirs.address:
            findings.add(
                WARNING, node, KIND, mine.name,
                f"grouping-handler '{mine.name}': its address is '{mine.address}', that of "
                f"{first.configuration.path} is '{theirs.address}'",
            )  # fmt: skip


def _check_own(node: CheckedNode, handler: GroupingHandlerConfig, findings: Findings) -> None:
    connections = node.configuration.cluster_connections
    if not connections:
        findings.add(
            WARNING, node, KIND, handler.name,
            f"grouping-handler '{handler.name}' has no effect: there is no cluster-connection",
        )  # fmt: skip
        return
    if not any(Covered(each.address).covers(handler.address) for each in connections):
        covered = ", ".join(f"'{each.address}'" for each in connections)
        findings.add(
            ERROR, node, KIND, handler.name,
            f"grouping-handler '{handler.name}': no cluster-connection covers its address "
            f"'{handler.address}': other nodes would never receive its notifications",
            f"the cluster-connection's address is {covered}: use a name that begins like that",
        )  # fmt: skip


def _check_types(
    handlers: list[tuple[CheckedNode, GroupingHandlerConfig]], findings: Findings
) -> None:
    local = [(node, each) for node, each in handlers if each.type == LOCAL]
    if not local:
        findings.together(
            ERROR, "no node has a LOCAL grouping-handler: groups can be sent nowhere",
            "give one node, and only one, the type LOCAL",
        )  # fmt: skip
    for node, each in local[1:]:
        findings.add(
            ERROR, node, KIND, each.name,
            f"grouping-handler '{each.name}' is LOCAL, as that of {local[0][0].configuration.path}",
            "one node decides, the others are REMOTE",
        )  # fmt: skip
    for node, each in handlers:
        if each.type != REMOTE or not local:
            continue
        limit = local[0][1].group_timeout_ms
        if limit > 0 and not 0 < each.group_timeout_ms <= limit:
            findings.add(
                WARNING, node, KIND, each.name,
                f"grouping-handler '{each.name}': group-timeout is {each.group_timeout_ms}, that of the"
                f" LOCAL one {limit}: groups in use may go elsewhere",
                "half of the LOCAL one's is right",
            )  # fmt: skip
