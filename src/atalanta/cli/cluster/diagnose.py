"""The command `atalanta doctor`: surveys the cluster twice, finds problems, and names the remedies."""

from __future__ import annotations

import json
import sys
from typing import Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.cluster.findings import ERROR, NOTE, WARNING, Finding, merged, sorted_findings
from atalanta.cli.cluster.findings_members import member_findings
from atalanta.cli.cluster.findings_messages import message_findings
from atalanta.cli.cluster.survey import Survey
from atalanta.cli.cluster.view import LiveCluster
from atalanta.cli.output.escape import plain
from atalanta.cli.output.outcome import FAILED, reported
from atalanta.cli.output.tables import FILE_COLUMNS
from atalanta.cli.target import Target
from atalanta.client import run

NODE_MAX: Final = 24  # characters; the rest of the line is for the problem
STYLES: Final = {ERROR: "bold red", WARNING: "yellow", NOTE: "dim"}


def run_doctor(
    nodes: list[str], user: str | None, password: str | None, wait: float, json_output: bool
) -> None:
    """Prints the findings. Exit status 1 if one is more than a note."""
    with reported():
        target = Target("", user, password)
        cluster = run(Survey(target, wait).run(nodes))
        if not json_output:
            cluster.shorten()
        found = diagnosed(cluster, target.user, target.password)
    if json_output:
        typer.echo(json.dumps(as_json(cluster, found), indent=2, ensure_ascii=False))
    else:
        show(cluster, found)
    if any(each.severity != NOTE for each in found):
        raise typer.Exit(FAILED)


def diagnosed(cluster: LiveCluster, user: str | None, password: str | None) -> list[Finding]:
    """Returns all findings, the worst first. `user` and `password` are the operator's."""
    return sorted_findings([*message_findings(cluster), *member_findings(cluster, user, password)])


def as_json(cluster: LiveCluster, found: list[Finding]) -> dict[str, object]:
    return {
        "nodes": [
            {
                "node_id": node.node_id,
                "name": node.name,
                "at": node.at,
                "version": node.version,
                "atalanta": node.ours,
            }
            for node in cluster.nodes
        ],
        "unreachable": [
            {"at": each.at, "why": each.why, "node_id": each.node_id}
            for each in cluster.unreachable
        ],
        "findings": [each.as_json() for each in found],
    }


def show(cluster: LiveCluster, found: list[Finding]) -> None:
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
    count = len(cluster.nodes)
    counts = {
        severity: sum(each.severity == severity for each in merged(found)) for severity in STYLES
    }
    summary = ", ".join(f"{n} {severity}{'s' * (n != 1)}" for severity, n in counts.items() if n)
    console.print(f"{count} node{'s' * (count != 1)} asked: {summary or 'all is well'}", markup=False)
