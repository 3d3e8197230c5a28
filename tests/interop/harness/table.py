"""docs/internals/interop.md: which scenario passed on which line-up of a cluster, written by the run itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

COLUMNS: Final = ("our nodes only", "real Artemis only", "mixed")
BEGIN: Final = "<!-- scenarios: written by `make interop`, do not edit below -->"
PASSED, FAILED, DIFFERS, LEFT_OUT = "passed", "failed", "differs", "left out"


def column(lineup: str) -> str:
    """The column of a line-up such as "artemis+atalanta"."""
    kinds = set(lineup.split("+"))
    if len(kinds) > 1:
        return COLUMNS[2]
    return COLUMNS[0] if kinds == {"atalanta"} else COLUMNS[1]


@dataclass
class Row:
    """One scenario: outcomes of its variants by column, and the reasons given where a line-up differs."""

    outcomes: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def cell(self, name: str) -> str:
        """What the table says of one column."""
        got = self.outcomes.get(name, [])
        if not got:
            return ""
        for outcome in (FAILED, DIFFERS):
            if outcome in got:
                return f"{outcome} ({got.count(outcome)} of {len(got)})" if len(got) > 1 else outcome
        if set(got) == {LEFT_OUT}:
            return "–"
        passed = got.count(PASSED)
        return "ok" if passed == 1 else f"ok ({passed} variants)"


class Table:
    """Collects outcomes by module and scenario, in the order of the run."""

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, Row]] = {}

    def add(self, section: str, test: str, lineup: str, outcome: str, reason: str = "") -> None:
        """One test's outcome; `test` is its name without parameters."""
        row = self.sections.setdefault(section, {}).setdefault(title(test), Row())
        row.outcomes.setdefault(column(lineup), []).append(outcome)
        if reason and outcome in (DIFFERS, LEFT_OUT):
            row.reasons[column(lineup)] = reason

    def text(self) -> str:
        """Markdown: one table a section, then what differs and why."""
        parts: list[str] = []
        for section, rows in self.sections.items():
            parts += [f"### {section}", "", f"| scenario | {' | '.join(COLUMNS)} |", "|---|---|---|---|"]
            for name, row in rows.items():
                parts.append(f"| {name} | {' | '.join(row.cell(each) for each in COLUMNS)} |")
            parts.append("")
            reasons = [
                f"- *{name}*, {where}: {why}"
                for name, row in rows.items()
                for where, why in row.reasons.items()
            ]
            if reasons:
                parts += ["Where it is otherwise:", "", *reasons, ""]
        return "\n".join(parts)

    def write(self, path: Path) -> None:
        """Replaces what stands below the mark in `path`; sections that did not run go."""
        before = path.read_text() if path.exists() else ""
        head = before.partition(BEGIN)[0]
        path.write_text(f"{head}{BEGIN}\n\n{self.text()}")


def title(test: str) -> str:
    """The sentence that a test's name is."""
    return re.sub(r"\[.*", "", test).removeprefix("test_").replace("_", " ")
