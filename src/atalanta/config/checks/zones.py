"""Checks of the zones of several nodes."""

from __future__ import annotations

from atalanta.cluster.native_config import names_of
from atalanta.config.checks.findings import WARNING, CheckedNode, Findings


def check_zones(nodes: list[CheckedNode], findings: Findings) -> None:
    """Checks that the nodes of a cluster have zones, the same tables `[zones.NAME]`, and members for every zone."""
    members = [node for node in nodes if node.connection is not None]
    present = {node.configuration.own.zone for node in members}
    if len(members) < 2 or not any(
        each.configuration.own.zone or each.configuration.own.zones for each in members
    ):
        return
    for node in members:
        if node.configuration.own.zone is None:
            findings.about(WARNING, node, "it has no zone, unlike other nodes", "zone = … in atalanta.toml")
        _check_tables(node, present, findings)
    first = members[0].configuration
    for node in members[1:]:
        if list(node.configuration.own.zones.items()) != list(first.own.zones.items()):
            findings.about(
                WARNING, node,
                f"its tables [zones.NAME] differ from those of {first.path}: a client would go to and fro",
                "give all nodes the same tables in the same order",
            )  # fmt: skip


def _check_tables(node: CheckedNode, present: set[str | None], findings: Findings) -> None:
    tables = node.configuration.own.zones
    for name, table in tables.items():
        for zone in (name, *names_of(table.fallback)):
            real = zone in tables and tables[zone].members
            if zone not in present and not real:
                findings.about(
                    WARNING, node, f"[zones.{name}]: no given node is in the zone '{zone}'",
                    "give the files of all nodes, or name its real Artemis nodes in members",
                )  # fmt: skip
