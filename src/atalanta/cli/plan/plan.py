"""The command `atalanta plan`: runs the files' nodes in the simulator and prints their links as tables."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.instance import check_files, grouped_by_text
from atalanta.cli.output import plain
from atalanta.cli.plan.file_nodes import broker_file, file_node, labels_of
from atalanta.cli.plan.losses import loss_table, losses_of
from atalanta.cli.plan.networks import add_networks
from atalanta.cli.plan.pairs import FilePairs, pairs_of_files
from atalanta.config.checks import ERROR, INFORMATION, WARNING, Finding
from atalanta.sim.files.plan import PlanResult, Reach, form
from atalanta.sim.files.world import FileNode

STYLES = {ERROR: "bold red", WARNING: "yellow", INFORMATION: "dim"}
REACH_ROWS_MAX = 60
COLUMN_MIN = 15  # minimum width of a matrix column, in characters
NAMED_MAX = 4  # nodes; above this the missing ones are named if that is shorter


def make_plan(files: list[Path]) -> tuple[PlanResult, FilePairs]:
    """Returns the plan of the nodes that serve when all are started, and the pairs that some of them form.

    ConfigError if one of the files cannot be read.
    """
    paths = [broker_file(path) for path in files]
    path_of = dict(zip(labels_of(paths), paths, strict=True))
    pairs = pairs_of_files(path_of)
    passive = pairs.passive()
    serving = [label for label in path_of if label not in passive]

    def nodes(labels: list[str]) -> list[FileNode]:
        return [file_node(path_of[label], label) for label in labels]

    plan = form(lambda: nodes(serving), lambda label: nodes(pairs.substitutes(label)))
    add_networks(plan, pairs.nodes)
    return plan, pairs


def find(files: list[Path], plan: PlanResult) -> list[Finding]:
    """Returns the findings of `atalanta check` (except elements without effect), and those of the plan."""
    paths = [broker_file(path) for path in files]
    found = [each for each in check_files(paths) if each.level != INFORMATION]
    for label, why in plan.failed.items():
        found.append(Finding(ERROR, "", 0, f"{label} does not start: {why}"))
    islands = plan.islands()
    if len(islands) > 1:
        parts = " | ".join(", ".join(island) for island in islands)
        found.append(Finding(ERROR, "", 0, f"these nodes do not become one cluster: {parts}"))
    found += [Finding(INFORMATION, "", 0, text) for text in plan.outside]
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


def as_json(plan: PlanResult, pairs: FilePairs, found: list[Finding]) -> dict[str, object]:
    """Returns the complete plan, for programs."""
    return {
        "nodes": plan.nodes,
        "links": [asdict(link) for link in plan.links],
        "members": plan.members,
        "reach": [asdict(reach) for reach in plan.reach],
        "islands": plan.islands(),
        "without": plan.without,
        "pairs": pairs.members,
        "backups": [asdict(each) for each in pairs.backings()],
        "losses": [asdict(loss) for loss in losses_of(pairs)],
        "findings": [asdict(each) for each in found],
    }


def show(plan: PlanResult, pairs: FilePairs, found: list[Finding]) -> None:
    """Prints the links as a matrix, or as a list if its columns would be too narrow; then reachability, losses and
    findings."""
    console = Console()
    narrow = console.width < COLUMN_MIN * (len(plan.nodes) + 2)
    console.print(link_list(plan) if narrow else link_matrix(plan))
    if plan.reach:
        console.print(_reach(plan))
    losses = losses_of(pairs)
    if losses or pairs.hosted():
        console.print(backing_table(pairs))
    if losses:
        console.print(loss_table(losses))
    for each, positions in grouped_by_text(found):
        text = Text(f"{each.level}: ", STYLES[each.level])
        text.append(f"{positions[0]}" if positions else "", "default")
        text.append(f" and {len(positions) - 1} more" if len(positions) > 1 else "", "default")
        text.append(": " if positions else "", "default")
        text.append(each.text, "default")
        text.append(f" ({each.hint})" if each.hint else "", "dim")
        console.print(text, soft_wrap=True)
    islands = plan.islands()
    console.print(
        f"nodes: {len(plan.nodes)}, links: {len(plan.links)}, clusters: {len(islands)}", highlight=False
    )


def backing_table(pairs: FilePairs) -> Table:
    """Draws who backs up whom. The other tables have the nodes that serve when all are started."""
    table = Table("serves", title="who backs up whom", title_justify="left")
    for head in ("waits", "form", "decides who serves"):
        table.add_column(head, overflow="fold")
    for each in [*pairs.backings(), *pairs.hosted()]:
        waiting = [f"{label} (asynchronous)" if label in each.asynchronous else label for label in each.waiting]
        cells = (each.serves, ", ".join(waiting) or "nobody", each.form, each.decided_by)
        table.add_row(*(Text(plain(cell)) for cell in cells))
    return table


def link_matrix(plan: PlanResult) -> Table:
    """Draws the matrix. Row: the sender; column: the target, and how it was found."""
    table = Table("from \\ to", title="links", title_justify="left")
    for target in plan.nodes:
        table.add_column(target, overflow="fold")
    table.add_column("announces to clients", overflow="fold")
    for source in plan.nodes:
        row: list[str] = [source]
        for target in plan.nodes:
            links = [link for link in plan.links if (link.source, link.target) == (source, target)]
            shown = "\n".join(f"{link.connection}: by {link.found}" for link in links)
            row.append(shown or ("·" if source == target else "–"))
        row.append(", ".join(plan.members.get(source, [])) or "none")
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def link_list(plan: PlanResult) -> Table:
    """Draws a line for each node and each kind of discovery."""
    table = Table("from", title="links", title_justify="left")
    table.add_column("to", overflow="fold")
    table.add_column("found by", overflow="fold")
    table.add_column("announces to clients", overflow="fold")
    several = len({link.connection for link in plan.links}) > 1
    for source in plan.nodes:
        links: dict[str, list[str]] = {}
        for link in plan.links:
            if link.source == source:
                how = f"{link.connection}: {link.found}" if several else link.found
                links.setdefault(how, []).append(link.target)
        announced = plan.members.get(source, [])
        members = "all" if sorted(announced) == sorted(plan.nodes) else ", ".join(announced) or "none"
        for at, (how, targets) in enumerate(links.items() or [("", ["none"])]):
            others = name_others(plan.nodes, source, targets)
            cells = (source if not at else "", others, how, members if not at else "")
            table.add_row(*(Text(plain(cell)) for cell in cells))
    return table


def name_others(nodes: list[str], source: str, targets: list[str]) -> str:
    """Joins names; with many nodes \"all others\" or \"all but a, b\" if that is shorter."""
    missing = [node for node in nodes if node != source and node not in targets]
    if len(nodes) > NAMED_MAX and not missing:
        return "all others"
    if len(nodes) > NAMED_MAX and len(missing) * 2 < len(targets):
        return f"all but {', '.join(missing)}"
    return ", ".join(targets)


def reached_from(nodes: list[str], targets: dict[str, dict[int, list[str]]]) -> str:
    """Formats `a → b (1), c (1); b → …`; with many nodes by hops, and nodes that reach all others alike together."""
    if len(nodes) <= NAMED_MAX:
        return "; ".join(
            f"{source} → " + ", ".join(sorted(f"{each} ({hops})" for hops in by_hops for each in by_hops[hops]))
            for source, by_hops in sorted(targets.items())
        )  # fmt: skip
    alike: dict[str, list[str]] = {}
    for source, by_hops in sorted(targets.items()):
        links = [
            f"{name_others(nodes, source, sorted(each))} ({hops})"
            for hops, each in sorted(by_hops.items())
        ]
        alike.setdefault(", ".join(links), []).append(source)
    return "; ".join(
        f"{'each' if sources == sorted(nodes) else ', '.join(sources)} → {links}"
        for links, sources in alike.items()
    )


def _reach(plan: PlanResult) -> Table:
    """Draws, per queue, which nodes messages reach from each node, with the hops."""
    table = Table(
        "queue", "address", title="what is sent at one node reaches", title_justify="left"
    )
    table.add_column("from → to (hops)", overflow="fold")
    by_queue: dict[tuple[str, str], list[Reach]] = {}
    for reach in plan.reach:
        by_queue.setdefault((reach.queue, reach.address), []).append(reach)
    for (queue, address), links in sorted(by_queue.items())[:REACH_ROWS_MAX]:
        targets: dict[str, dict[int, list[str]]] = {}
        for link in links:
            targets.setdefault(link.source, {}).setdefault(link.hops, []).append(link.target)
        shown = reached_from(plan.nodes, targets)
        table.add_row(Text(plain(queue)), Text(plain(address)), Text(plain(shown)))
    if len(by_queue) > REACH_ROWS_MAX:
        table.add_row("…", "", f"{len(by_queue) - REACH_ROWS_MAX} more: --json has them")
    return table
