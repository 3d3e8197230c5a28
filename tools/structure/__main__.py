"""The figures of the tree's structure, and the check of them against recorded limits.

    python -m tools.structure                                     the table
    python -m tools.structure --check tools/structure_limits.toml exit status 1 when a figure is worse
    python -m tools.structure --write tools/structure_limits.toml records today's figures as limits

`--trace` adds the files that one message enters (imports the package and tests/cluster/cluster_rig.py).
How assignments from outside are found is written in classes.py.
"""

from __future__ import annotations

import argparse
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
    parser.add_argument("--check", type=Path, metavar="FILE", help="compare with these limits")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write today's limits")
    options = parser.parse_args(arguments)
    figures = measure(options.root.resolve(), options.trace)
    if options.write:
        options.write.write_text(HEAD + toml(figures.limits()), encoding="utf-8")
    if not (options.check or options.write):
        print(table(figures))
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


def table(figures: Figures) -> str:
    """Everything readable."""
    lines = []
    tables = figures.tables
    for title, names in SIDE_BY_SIDE.items():
        lines += [title, " " * 34 + "".join(f"{name:>18}" for name in names)]
        for key in dict.fromkeys(key for name in names for key in tables.get(name, {})):
            cells = (f"{tables.get(name, {}).get(key, '-'):>18}" for name in names)
            lines.append(f"  {key or '.':32}" + "".join(cells))
        lines.append("")
    for name, title in figures.titles.items():
        lines.append(title)
        for key, value in tables.get(name, {}).items():
            where = figures.where.get((name, key), "")
            lines.append(f"  {key or '.':40}{value:>14}   {where}".rstrip())
        lines.append("")
    lines.append(
        f"Over {tree.LINES_WARN} lines a file is a warning, over {tree.LINES_MAX} a fault."
    )
    lines.append(" ".join((classes.__doc__ or "").split("\n\n")[1].split()))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
