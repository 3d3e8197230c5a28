"""The command `atalanta doctor`: surveys the cluster twice, finds problems, and names the remedies."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.cluster.replicated_group import group_of, look
from atalanta.cli.cluster.shared_store import configuration_of, has_shared_store
from atalanta.cli.cluster.shared_store import look as look_at_pair
from atalanta.cli.operator_login import operator_login
from atalanta.cli.output.escape import plain
from atalanta.cli.output.outcome import FAILED, Refused, reported
from atalanta.cli.output.tables import FILE_COLUMNS
from atalanta.client import run
from atalanta.runtime.process.exit_codes import BAD_DATA
from atalanta.survey.findings.cluster_finding import (
    ERROR,
    NOTE,
    WARNING,
    ClusterFinding,
    merged,
    sorted_findings,
)
from atalanta.survey.findings.diagnosis import as_json, diagnosed
from atalanta.survey.findings.groups import group_findings, store_findings
from atalanta.survey.model.cluster import LiveCluster
from atalanta.survey.survey import Survey

NODE_MAX: Final = 24  # characters; the rest of the line is for the problem
STYLES: Final = {ERROR: "bold red", WARNING: "yellow", NOTE: "dim"}


def run_doctor(
    nodes: list[str], user: str | None, password: str | None, wait: float, json_output: bool
) -> None:
    """Prints the findings. Exit status 1 if one is more than a note."""
    with reported():
        members = [each for each in nodes if is_place(each)]
        named = [each for each in nodes if each not in members]
        target = operator_login("", user, password)
        cluster = run(Survey(target, wait).run(named)) if named else LiveCluster()
        if not json_output:
            cluster.shorten()
        own = [finding for each in members for finding in of_member(Path(each))]
        found = sorted_findings([*diagnosed(cluster, target.user, target.password), *own])
    if json_output:
        typer.echo(json.dumps(as_json(cluster, found), indent=2, ensure_ascii=False))
    else:
        show(cluster, found, len(members))
    if any(each.severity != NOTE for each in found):
        raise typer.Exit(FAILED)


def is_place(node: str) -> bool:
    """Returns whether an argument is the folder of an instance, or its broker.xml, and no host."""
    return (Path(node) / "etc" / "broker.xml").is_file() or (node.endswith(".xml") and Path(node).is_file())


def of_member(place: Path) -> list[ClusterFinding]:
    """Returns the findings about the member of a replicated group, or the pair with a shared store, of a folder.

    Raises Refused.
    """
    configuration = group_of(place)
    if configuration is None and has_shared_store(place):
        own = configuration_of(place)
        return list(store_findings(str(place) if own is None else own.broker.name, look_at_pair(place)))
    if configuration is None:
        raise Refused(f"{place} has no backup (no ha-policy): name host:port of the node", BAD_DATA)
    return list(group_findings(configuration.ha, asyncio.run(look(configuration))))


def show(cluster: LiveCluster, found: list[ClusterFinding], members: int = 0) -> None:
    """Prints a table of findings, each with its remedy below, then a summary line."""
    console = Console(width=None if sys.stdout.isatty() else FILE_COLUMNS, highlight=False)
    if found:
        table = Table("", "node", "problem and remedy", show_lines=True)
        for column in table.columns:
            column.overflow = "fold"
        table.columns[0].no_wrap = True
        table.columns[1].max_width = NODE_MAX
        for each in merged(found):
            cell = Text(plain(each.text))
            if each.remedy:
                cell.append("\n→ " + plain(each.remedy), style="green")
            table.add_row(Text(each.severity, STYLES[each.severity]), Text(plain(each.node)), cell)
        console.print(table)
    count = len(cluster.nodes) + members
    counts = {
        severity: sum(each.severity == severity for each in merged(found)) for severity in STYLES
    }
    summary = ", ".join(f"{n} {severity}{'s' * (n != 1)}" for severity, n in counts.items() if n)
    console.print(f"{count} node{'s' * (count != 1)} asked: {summary or 'all is well'}", markup=False)
