"""The figures of the tree's structure, and the check of them against recorded limits.

    python -m tools.structure                                     the table
    python -m tools.structure --check tools/structure_limits.toml exit status 1 when a figure is worse
    python -m tools.structure --write tools/structure_limits.toml records today's figures as limits
    python -m tools.structure --before tools/structure_before.toml   the table beside earlier figures
    python -m tools.structure --save FILE                         all figures, for a later --before

`--trace` adds the files that one message enters (imports the package and tests/cluster/cluster_rig.py).
How assignments from outside are found is written in classes.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path

from tools.structure import classes, tree
from tools.structure.figures import Figures, measure

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = """# Limits of tools/structure: `make check` fails when a figure is above its limit.
# A figure that became better: python -m tools.structure --trace --write tools/structure_limits.toml
# Names that are not listed in a table have the limit `default` of it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 with findings, 2 for a wrong command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.structure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (this one)")
    parser.add_argument("--trace", action="store_true", help="also the files a message enters")
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    parser.add_argument("--check", type=Path, metavar="FILE", help="compare with these limits")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write today's limits")
    parser.add_argument("--before", type=Path, metavar="FILE", help="show these figures as well")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write all figures as TOML")
    options = parser.parse_args(arguments)
    figures = measure(options.root.resolve(), options.trace)
    if options.write:
        options.write.write_text(HEAD + toml(figures.limits()), encoding="utf-8")
    if options.save:
        options.save.write_text(toml(figures.tables), encoding="utf-8")
    if options.json:
        print(json.dumps(figures.tables, indent=1))
    elif not (options.check or options.write or options.save):
        before = tomllib.loads(options.before.read_text("utf-8")) if options.before else None
        print(table(figures, before))
    if not options.check:
        return 0
    findings = figures.above(tomllib.loads(options.check.read_text(encoding="utf-8")))
    for finding in findings:
        print(finding)
    totals = figures.tables["totals"]
    if not findings:
        print(
            f"structure: {totals['files']} files, {totals['lines']} lines, largest circle"
            f" {totals['circle_modules_max']} modules; no figure is above its limit"
        )
    return 1 if findings else 0


def toml(tables: dict[str, dict[str, int]]) -> str:
    """Flat tables of numbers; keys are quoted."""
    lines = []
    for name, values in tables.items():
        lines += [f"[{name}]", *(f'"{key}" = {value}' for key, value in values.items()), ""]
    return "\n".join(lines)


# Tables shown side by side, one line a folder or class.
SIDE_BY_SIDE = {
    "folders, folders below included": ("files", "lines", "median"),
    "classes: their size, and assignments to their attributes from outside": (
        "attributes", "methods", "outside_class", "outside_module", "outside_package",
        "assigning_modules",
    ),
}  # fmt: skip


def table(figures: Figures, before: dict[str, dict[str, int]] | None) -> str:
    """Everything readable; with `before`, each earlier figure in parentheses behind today's."""
    lines = []
    for title, names in SIDE_BY_SIDE.items():
        lines += [title, " " * 34 + "".join(f"{name:>18}" for name in names)]
        for key in merged(
            *(tables.get(name, {}) for tables in (figures.tables, before or {}) for name in names)
        ):
            cells = (f"{cell(figures.tables, before, name, key):>18}" for name in names)
            lines.append(f"  {key or '.':32}" + "".join(cells))
        lines.append("")
    for name, title in figures.titles.items():
        earlier = (before or {}).get(name, {})
        lines.append(title)
        for key in merged(figures.tables.get(name, {}), earlier):
            where = figures.where.get((name, key), "")
            shown = cell(figures.tables, before, name, key)
            lines.append(f"  {key or '.':40}{shown:>14}   {where}".rstrip())
        lines.append("")
    lines.append(
        f"Over {tree.LINES_WARN} lines a file is a warning, over {tree.LINES_MAX} a fault."
    )
    lines.append(" ".join((classes.__doc__ or "").split("\n\n")[1].split()))
    return "\n".join(lines)


def merged(*tables: dict[str, int]) -> list[str]:
    """The keys of all tables, each once, in their order."""
    return list(dict.fromkeys(key for table in tables for key in table))


def cell(
    tables: dict[str, dict[str, int]], before: dict[str, dict[str, int]] | None, name: str, key: str
) -> str:
    """Today's figure, and the earlier one in parentheses."""
    today = str(tables.get(name, {}).get(key, "-"))
    return today if before is None else f"{today} ({before.get(name, {}).get(key, '-')})"


if __name__ == "__main__":
    sys.exit(main())
