"""What `atalanta plan` does: the files' nodes in the simulator, and what they became as tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.checking import check_files
from atalanta.cli.file_nodes import broker_file, file_node, labels_of
from atalanta.config.findings import ERROR, INFORMATION, WARNING, Finding
from atalanta.sim.plan import Plan, Reach, form

STYLES = {ERROR: "bold red", WARNING: "yellow", INFORMATION: "dim"}
REACH_ROWS_MAX = 60


def make_plan(files: list[Path]) -> Plan:
    """ConfigError if one of the files cannot be read."""
    paths = [broker_file(path) for path in files]
    labels = labels_of(paths)
    return form(lambda: [file_node(path, label) for path, label in zip(paths, labels, strict=True)])


def find(files: list[Path], plan: Plan) -> list[Finding]:
    """What `atalanta check` says of the files (but not what is without effect), and what the plan shows."""
    paths = [broker_file(path) for path in files]
    found = [each for each in check_files(paths) if each.level != INFORMATION]
    for label, why in plan.failed.items():
        found.append(Finding(ERROR, "", 0, f"{label} does not start: {why}"))
    islands = plan.islands()
    if len(islands) > 1:
        parts = " | ".join(", ".join(island) for island in islands)
        found.append(Finding(ERROR, "", 0, f"these nodes do not become one cluster: {parts}"))
    for link in plan.one_way():
        text = f"{link.source} sends to {link.target}, but {link.target} not to {link.source}"
        hint = "meant, if it is a chain or a star" if len(islands) == 1 else ""
        found.append(Finding(INFORMATION, "", 0, text, hint))
    for label in plan.critical():
        parts = " | ".join(", ".join(island) for island in plan.without[label])
        found.append(
            Finding(WARNING, "", 0, f"without {label} at their start the others are parted: {parts}",
                    "give each node a second way to find the others")
        )  # fmt: skip
    return found


def as_json(plan: Plan, found: list[Finding]) -> dict[str, object]:
    """Everything, for programs."""
    return {
        "nodes": plan.nodes,
        "links": [asdict(link) for link in plan.links],
        "members": plan.members,
        "reach": [asdict(reach) for reach in plan.reach],
        "islands": plan.islands(),
        "without": plan.without,
        "findings": [asdict(each) for each in found],
    }


def show(plan: Plan, found: list[Finding]) -> None:
    """The links as a matrix, what reaches what, and what there is to say."""
    console = Console()
    console.print(_matrix(plan))
    if plan.reach:
        console.print(_reach(plan))
    order = [ERROR, WARNING, INFORMATION]
    for each in sorted(found, key=lambda finding: order.index(finding.level)):
        text = Text(f"{each.level}: ", STYLES[each.level])
        place = each.place()
        text.append(f"{place}: " if place else "", "default")
        text.append(each.text, "default")
        text.append(f" ({each.hint})" if each.hint else "", "dim")
        console.print(text, soft_wrap=True)
    islands = plan.islands()
    console.print(
        f"nodes: {len(plan.nodes)}, links: {len(plan.links)}, clusters: {len(islands)}", highlight=False
    )


def _matrix(plan: Plan) -> Table:
    """Row: who sends; column: to whom, and how it was found."""
    table = Table("from \\ to", title="links", title_justify="left")
    for target in plan.nodes:
        table.add_column(target, overflow="fold")
    table.add_column("tells its clients of", overflow="fold")
    for source in plan.nodes:
        row: list[str] = [source]
        for target in plan.nodes:
            ways = [link for link in plan.links if (link.source, link.target) == (source, target)]
            shown = "\n".join(f"{way.connection}: by {way.found}" for way in ways)
            row.append(shown or ("·" if source == target else "–"))
        row.append(", ".join(plan.members.get(source, [])) or "nobody")
        table.add_row(*(Text(cell) for cell in row))
    return table


def _reach(plan: Plan) -> Table:
    """Queue by queue: from where messages get to which node, with the hops."""
    table = Table("queue", "address", title="what is sent at one node reaches", title_justify="left")
    table.add_column("from → to (hops)", overflow="fold")
    by_queue: dict[tuple[str, str], list[Reach]] = {}
    for reach in plan.reach:
        by_queue.setdefault((reach.queue, reach.address), []).append(reach)
    for (queue, address), ways in sorted(by_queue.items())[:REACH_ROWS_MAX]:
        targets: dict[str, list[str]] = {}
        for way in ways:
            targets.setdefault(way.source, []).append(f"{way.target} ({way.hops})")
        shown = "; ".join(f"{source} → {', '.join(sorted(each))}" for source, each in sorted(targets.items()))
        table.add_row(Text(queue), Text(address), Text(shown))
    if len(by_queue) > REACH_ROWS_MAX:
        table.add_row("…", "", f"{len(by_queue) - REACH_ROWS_MAX} more: --json has them")
    return table
