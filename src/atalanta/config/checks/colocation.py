"""The checks of colocated nodes: who could host the backup of whom."""

from __future__ import annotations

from atalanta.config.checks.findings import INFORMATION, WARNING, CheckedNode, Findings
from atalanta.config.configuration import Configuration

KIND = "ha-policy"
NAME = ""


def hosts_of(node: Configuration, others: list[Configuration]) -> list[Configuration]:
    """Returns those of `others` that could host the backup of a colocated node."""
    found = []
    for each in others:
        colocation = each.ha.colocation
        if each is node or colocation is None or each.ha.form != node.ha.form or not colocation.backups_max:
            continue
        if getattr(colocation.backup, "group_name", None) == node.ha.group_name:
            found.append(each)
    return found


def check_colocation(nodes: list[CheckedNode], findings: Findings) -> None:
    """Adds a finding for each colocated node, and for a cluster that has too little room for their backups."""
    colocated = [node for node in nodes if node.configuration.ha.colocation is not None]
    everyone = [node.configuration for node in colocated]
    asking, room = 0, 0
    for node in colocated:
        policy = node.configuration.ha
        assert policy.colocation is not None
        room += policy.colocation.backups_max
        hosts = hosts_of(node.configuration, everyone)
        if not policy.colocation.request_backup:
            text = "it hosts backups of others and has none: without its host its messages wait"
            findings.add(INFORMATION, node, KIND, NAME, text, "<request-backup>true</request-backup>")
            continue
        asking += 1
        if not hosts and len(nodes) > 1:
            findings.add(
                WARNING, node, KIND, NAME, "no given node can host its backup",
                f"a node with <{policy.form}><colocated>, max-backups above 0, and its group-name in <backup>",
            )  # fmt: skip
            continue
        if hosts:
            names = ", ".join(each.broker.name for each in hosts)
            findings.add(INFORMATION, node, KIND, NAME, f"its backup runs beside one of: {names}")
        own = node.announced
        away = [each.announced for each in colocated if each.configuration in hosts and each.announced is not None]
        if own is not None and away and all(each.host == own.host for each in away):
            text = f"all nodes that could host its backup announce its own host {own.host}: they end with it"
            findings.add(WARNING, node, KIND, NAME, text)
    if len(nodes) > 1 and asking > room:
        findings.together(
            WARNING, f"{asking} colocated nodes want a backup, and there is room for {room}", "raise max-backups"
        )
