"""What is found in configuration files: errors, all of them at once, and what is known but
without effect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ConfigProblem:
    """Something that keeps the node from starting. `hint` says what to write instead; line 0:
    none.
    """

    file: str
    line: int
    text: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True)
class Unsupported:
    """Something Artemis knows and this version does not do: listed once at start."""

    file: str
    line: int
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}: {self.why}"


def grouped(unsupported: Iterable[Unsupported]) -> list[str]:
    """One line for what is the same in several places: `broker.xml:12,40: name: why`."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for entry in unsupported:
        lines.setdefault((entry.file, entry.name, entry.why), []).append(str(entry.line))
    return [f"{file}:{','.join(at)}: {name}: {why}" for (file, name, why), at in lines.items()]


class ConfigError(Exception):
    """Raised with every problem of the files, in their order. `files` were looked for, or read."""

    def __init__(self, problems: Iterable[ConfigProblem], files: Iterable[Path] = ()) -> None:
        self.problems = tuple(problems)
        self.files = tuple(files)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass
class Report:
    """Collects while reading; `check` raises if anything is wrong."""

    problems: list[ConfigProblem] = field(default_factory=list)
    unsupported: list[Unsupported] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)  # that were looked for, or read

    def problem(self, file: str, line: int, text: str, hint: str = "") -> None:
        self.problems.append(ConfigProblem(file, line, text, hint))

    def without_effect(self, file: str, line: int, name: str, why: str) -> None:
        self.unsupported.append(Unsupported(file, line, name, why))

    def check(self) -> None:
        """ConfigError with everything collected, if there is anything."""
        if self.problems:
            raise ConfigError(sorted(self.problems, key=lambda found: (found.file, found.line)), self.files)


def nearest(name: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?" for the known name most like `name`, or nothing."""
    candidates = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), list(candidates), 1, 0.7)
    return f"did you mean '{candidates[found[0]]}'?" if found else ""
