"""Checks of the zones of several nodes."""

from __future__ import annotations

from atalanta.cluster.native_config import OwnZone, names_of
from atalanta.config.checks.findings import WARNING, CheckedNode, Findings


def check_zones(nodes: list[CheckedNode], findings: Findings) -> None:
    """Checks that the nodes of a cluster have zones, the same tables `[zones.NAME]`, and members for every zone."""
    members = [node for node in nodes if node.connection is not None]
    settings = [node.configuration.own for node in members]
    if len(members) < 2 or not any(own.zone or own.zones for own in settings):
        return
    present = {own.zone for own in settings}
    for node, own in zip(members, settings, strict=True):
        if own.zone is None:
            findings.about(WARNING, node, "it has no zone, unlike other nodes", "zone = … in atalanta.toml")
        _check_tables(node, own.zones, present, findings)
        if list(own.zones.items()) != list(settings[0].zones.items()):
            first = members[0].configuration.path
            findings.about(
                WARNING, node,
                f"its tables [zones.NAME] differ from those of {first}: a client would go to and fro",
                "give all nodes the same tables in the same order",
            )  # fmt: skip


def _check_tables(
    node: CheckedNode, tables: dict[str, OwnZone], present: set[str | None], findings: Findings
) -> None:
    for name, table in tables.items():
        for zone in (name, *names_of(table.fallback)):
            real = zone in tables and tables[zone].members
            if zone not in present and not real:
                findings.about(
                    WARNING, node, f"[zones.{name}]: no given node is in the zone '{zone}'",
                    "give the files of all nodes, or name its real Artemis nodes in members",
                )  # fmt: skip
