"""The figures of the tree's structure, its faults, and what has changed since they were recorded.

    python -m tools.structure                                      the table
    python -m tools.structure --check tools/structure_figures.toml exit status 1 with a fault; prints what has changed
    python -m tools.structure --write tools/structure_figures.toml records today's figures

Faults are import circles at run time, a file of more than 800 lines and a function of more than 70. Every other figure
is a question to whoever reads the change, and never a reason to spell something differently.
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
HEAD = """# Figures of tools/structure: `make check` prints what has changed, for a reader to judge.
# After that: python -m tools.structure --trace --write tools/structure_figures.toml
# Names that are not listed in a table have at most its `default`.
"""


def main(arguments: list[str] | None = None) -> int:
    """Exit status 1 with faults, 2 for a wrong command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.structure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (this one)")
    parser.add_argument("--trace", action="store_true", help="also the files a message enters")
    parser.add_argument("--check", type=Path, metavar="FILE", help="compare with these figures")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write today's figures")
    options = parser.parse_args(arguments)
    figures = measure(options.root.resolve(), options.trace)
    if options.write:
        options.write.write_text(HEAD + toml(figures.recorded()), encoding="utf-8")
    if not (options.check or options.write):
        print(table(figures))
    if not options.check:
        return 0
    faults = figures.faults()
    for line in faults:
        print(line)
    for line in figures.changes(tomllib.loads(options.check.read_text(encoding="utf-8"))):
        print(f"changed: {line}")
    totals = figures.tables["totals"]
    print(
        f"structure: {totals['files']} files, {totals['lines']} lines, largest circle (by types)"
        f" {totals['circle_modules_max']} modules, {len(faults) or 'no'} faults"
    )
    return 1 if faults else 0


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
