"""All figures as flat tables of numbers, the place of each, their faults, and their comparison with recorded ones.

A fault is what cannot be answered by another spelling: an import circle at run time, a long file, a long function.
Every other figure is a question to a reader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tools.structure import classes as of_classes
from tools.structure.classes import Assignment, Class, Classes, assignments
from tools.structure.tree import (
    FUNCTION_LINES_MAX,
    LINES_MAX,
    LINES_WARN,
    circles,
    entries,
    functions,
    read,
    sizes,
    verb_names,
)

ENTRIES_MAX = 15
# What is not listed has less.
ATTRIBUTES_MAX = 20
METHODS_MAX = 35
OUTSIDE_MAX = 10
# A class with fewer methods (`__…__` not counted) is a record: configuration, packets.
RECORD_METHODS_MAX = 2
LARGEST = 10
PLACES_SHOWN = 6

# Tables that are recorded, and what a key that is not listed has at most.
DEFAULTS = {
    "entries": ENTRIES_MAX,
    "names": 0,
    "attributes": ATTRIBUTES_MAX,
    "methods": METHODS_MAX,
    "outside_class": OUTSIDE_MAX,
    "outside_module": OUTSIDE_MAX,
    "outside_package": OUTSIDE_MAX,
}
# Totals that fail `make check`, with what they may be.
FAULTS = {
    "import_circles_at_run_time": 0,
    "lines_of_the_longest_file": LINES_MAX,
    "lines_of_the_longest_function": FUNCTION_LINES_MAX,
}


@dataclass
class Figures:
    """`tables[table][key]`, and `where[table, key]`: places, for a finding."""

    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    where: dict[tuple[str, str], str] = field(default_factory=dict)
    titles = {
        "totals": "totals",
        "circle_modules": "modules in each import circle, type-only imports counted",
        "entries": f"entries a folder, above {ENTRIES_MAX}",
        "names": "module and folder names that are gerunds or participles",
        "trace": "files of a node that one durable message enters",
    }

    def put(self, table: str, key: str, value: int, places: Iterable[str] = ()) -> None:
        self.tables.setdefault(table, {})[key] = value
        text = shortened(list(places))
        if text:
            self.where[table, key] = text

    def recorded(self) -> dict[str, dict[str, int]]:
        """Returns the figures that a later check compares with."""
        made = {"totals": self.tables["totals"]}
        for name, default in DEFAULTS.items():
            listed = self.tables.get(name, {})
            made[name] = {"default": default}
            made[name] |= {key: value for key, value in listed.items() if value > default}
        if "trace" in self.tables:
            made["trace"] = self.tables["trace"]
        return made

    def faults(self) -> list[str]:
        """Returns a line for each total above what it may be."""
        totals = self.tables["totals"]
        over = {key: most for key, most in FAULTS.items() if totals[key] > most}
        return [f"{key}: {totals[key]}, at most {most}: {self.where['totals', key]}" for key, most in over.items()]

    def changes(self, recorded: dict[str, dict[str, int]]) -> list[str]:
        """Returns a line for each figure that differs from the recorded one, or is as large as those and new."""
        found = []
        for name, table in recorded.items():
            default = table.get("default", 0)
            now = self.tables.get(name, {})
            if name == "trace" and not now:
                continue  # not measured
            for key in dict.fromkeys([*now, *table]):
                before, after = table.get(key, default), now.get(key, default)
                if key != "default" and before != after and max(before, after) > default:
                    title = key if name == "totals" else f"{name} {key or '.'}"
                    place = self.where.get((name, key), "")
                    found.append(f"{title}: {before} -> {after}: {place}".rstrip(": "))
        return found


def shortened(places: list[str]) -> str:
    more = len(places) - PLACES_SHOWN
    return " ".join(places[:PLACES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def measure(root: Path, with_trace: bool) -> Figures:
    """The figures of the checkout at `root`."""
    figures = Figures()
    tree = read(root / "src" / "atalanta")
    figures.put("totals", "files", len(tree.modules))
    figures.put("totals", "lines", sum(each.lines for each in tree.modules.values()))
    by_lines = sorted(tree.modules.values(), key=lambda each: (-each.lines, each.path))
    long = [f"{each.path}:{each.lines}" for each in by_lines if each.lines > LINES_WARN]
    figures.put("totals", f"files_over_{LINES_WARN}", len(long), long)
    longest = by_lines[0]
    too_long = [f"{each.path}:{each.lines}" for each in by_lines if each.lines > LINES_MAX]
    figures.put("totals", "lines_of_the_longest_file", longest.lines, too_long or [longest.path])
    by_length = sorted(functions(tree), key=lambda each: -each.lines)
    shown = [f"{each.place}:{each.name}" for each in by_length if each.lines > FUNCTION_LINES_MAX]
    most = by_length[0].lines if by_length else 0
    figures.put("totals", "lines_of_the_longest_function", most, shown or [each.place for each in by_length[:1]])
    counted = entries(tree)
    for folder, (files, lines, median) in sizes(tree).items():
        figures.put("files", folder, files)
        figures.put("lines", folder, lines)
        figures.put("median", folder, median)
        if counted[folder] > ENTRIES_MAX:
            figures.put("entries", folder, counted[folder])
    for name, paths in sorted(verb_names(tree).items()):
        figures.put("names", name, len(paths), paths)
    figures.put("totals", "verb_names", sum(figures.tables.get("names", {}).values()))
    found = circles(tree, type_checking=True)
    figures.put("totals", "import_circles", len(found))
    figures.put(
        "totals", "circle_modules_max", len(found[0]) if found else 0, found[0] if found else []
    )
    for number, each in enumerate(found, 1):
        figures.put("circle_modules", str(number), len(each), each)
    running = circles(tree, type_checking=False)
    figures.put("totals", "import_circles_at_run_time", len(running), running[0] if running else [])
    named, annotated = of_classes.functions_with(tree, "broker", "Broker")
    figures.put("totals", "functions_with_argument_broker", len(named))
    figures.put("totals", "functions_with_argument_of_type_Broker", len(annotated))
    chains = of_classes.long_chains(tree)
    figures.put("totals", "attribute_chains_of_4_links", len(chains))
    _classes(figures, Classes(tree))
    if with_trace:
        _trace(figures, root)
    return figures


def _classes(figures: Figures, known: Classes) -> None:
    every = [each for each in assignments(known) if not is_record(each.owner)]
    outside = [each for each in every if of_classes.outside_module(each)]
    figures.put("totals", "assignments_from_outside_the_module", len(outside))
    across = [each for each in every if of_classes.outside_package(each)]
    figures.put("totals", "assignments_from_outside_the_package", len(across))
    figures.put(
        "totals", "assignments_found_by_variable_name", sum(each.by_name for each in outside)
    )
    queue = [each for each in every if each.owner.name == "Queue" and of_classes.outside_noun(each)]
    figures.put("totals", "queue_assigned_outside_its_package", len(queue), modules_of(queue))
    ranked = sorted(known.by_key.values(), key=lambda each: (-len(each.attributes), each.key))
    ranked = [each for each in ranked if not is_record(each)]
    for each in ranked:
        if len(each.attributes) > ATTRIBUTES_MAX or each in ranked[:LARGEST]:
            _keep_larger(figures, "attributes", each, len(each.attributes), [each.place])
            mine = [one for one in every if one.owner is each]
            for table, counts in (
                ("outside_class", lambda one: not one.own_class),
                ("outside_module", of_classes.outside_module),
                ("outside_package", of_classes.outside_package),
            ):
                some = [one for one in mine if counts(one)]
                _keep_larger(figures, table, each, len(some), modules_of(some))
            others = modules_of([one for one in mine if of_classes.outside_module(one)])
            _keep_larger(figures, "assigning_modules", each, len(others), [])
        if len(each.methods) > METHODS_MAX or each in ranked[:LARGEST]:
            _keep_larger(figures, "methods", each, len(each.methods), [each.place])


def _keep_larger(figures: Figures, table: str, owner: Class, value: int, places: list[str]) -> None:
    """Of classes with the same name, the larger figure."""
    if value >= figures.tables.get(table, {}).get(owner.name, 0):
        figures.put(table, owner.name, value, places)


def is_record(each: Class) -> bool:
    methods = [name for name in each.methods if not name.startswith("__")]
    return len(methods) <= RECORD_METHODS_MAX


def modules_of(some: list[Assignment]) -> list[str]:
    """`module.py:line` of the first assignment in each module, the modules with most of them first."""
    places: dict[str, list[str]] = {}
    for each in some:
        places.setdefault(each.module.name, []).append(each.place)
    return [found[0] for found in sorted(places.values(), key=lambda found: -len(found))]


def _trace(figures: Figures, root: Path) -> None:
    from tools.structure.message_files import trace

    for nodes, key in ((1, "one_node"), (2, "two_nodes")):
        calls = trace(root, nodes)
        figures.put("trace", key, len(calls), [f"{sum(calls.values())} calls"])
