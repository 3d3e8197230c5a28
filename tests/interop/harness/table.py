"""Which scenario passed on which line-up of a cluster, and with which version of Artemis; written by the run itself.

docs/internals/interop.md and docs/reference/artemis-versions.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LINEUPS: Final = ("our nodes only", "real Artemis only", "mixed")
BEGIN: Final = "<!-- scenarios: written by `make interop`, do not edit below -->"
PASSED, FAILED, DIFFERS, LEFT_OUT = "passed", "failed", "differs", "left out"


def column(lineup: str) -> str:
    """The column of a line-up such as "artemis+atalanta"."""
    kinds = set(lineup.split("+"))
    if len(kinds) > 1:
        return LINEUPS[2]
    return LINEUPS[0] if kinds == {"atalanta"} else LINEUPS[1]


@dataclass
class Row:
    """One scenario: outcomes of its variants by column, and the reasons given where a line-up differs."""

    outcomes: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

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
    """Collects outcomes by module and scenario, in the order of the run.

    `columns` are those of each section; without them a section has the versions that ran, in their order.
    """

    def __init__(self, columns: tuple[str, ...] = ()) -> None:
        self._columns = columns
        self.sections: dict[str, dict[str, Row]] = {}

    def add(self, section: str, test: str, column: str, outcome: str, reason: str = "") -> None:
        """One test's outcome; `test` is its name without parameters."""
        row = self.sections.setdefault(section, {}).setdefault(title(test), Row())
        row.outcomes.setdefault(column, []).append(outcome)
        if reason and outcome in (DIFFERS, LEFT_OUT):
            reasons = row.reasons.setdefault(column, [])
            if reason not in reasons:
                reasons.append(reason)

    def text(self) -> str:
        """Markdown: one table a section, then what differs and why."""
        parts: list[str] = []
        for section, rows in self.sections.items():
            columns = self._columns or _versions(rows)
            parts += [f"### {section}", "", f"| scenario | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
            for name, row in rows.items():
                parts.append(f"| {name} | {' | '.join(row.cell(each) for each in columns)} |")
            parts.append("")
            reasons = [
                f"- *{name}*, {where}: {'; '.join(why)}"
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


def _versions(rows: dict[str, Row]) -> tuple[str, ...]:
    found = {name for row in rows.values() for name in row.outcomes}
    return tuple(sorted(found, key=lambda name: ([int(digits) for digits in re.findall(r"\d+", name)], name)))
