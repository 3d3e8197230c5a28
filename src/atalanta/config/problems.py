"""Results of reading configuration files: problems, all at once, and elements without effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NOT_ALONE: Final = (
    "it says that there are other brokers, in a way that this version does not know: this one would serve beside them,"
    " and they would know nothing of each other"
)


@dataclass(frozen=True)
class ConfigProblem:
    """A problem that prevents the start. `hint` says what to write instead; line 0: no line."""

    file: str
    line: int
    text: str
    hint: str = ""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}" if self.line else self.file
        return f"{position}: {self.text}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True)
class Unsupported:
    """An element that Artemis knows and this version does not support; listed once at start.

    `lost`: the file asks for a service that this node does not give (an acceptor, a backup). The others are harmless.
    """

    file: str
    line: int
    name: str
    why: str
    lost: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}: {self.why}"


@dataclass(frozen=True)
class OthersNamed:
    """The record of an element that says that this broker is not alone, in a way that is not built.

    `why`: why it has no effect, for a broker that is alone. `ways`: what to write instead.
    """

    file: str
    line: int
    name: str
    why: str
    ways: str


@dataclass(frozen=True)
class ClosedAcceptor:
    """The record of an acceptor that is not opened: another node may have it open. `ways`: what to write instead."""

    file: str
    line: int
    name: str
    why: str
    ways: str


def grouped(unsupported: Iterable[Unsupported]) -> list[str]:
    """Returns one line for equal elements in several lines: `broker.xml:12,40: name: why`."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for entry in unsupported:
        lines.setdefault((entry.file, entry.name, entry.why), []).append(str(entry.line))
    return [f"{file}:{','.join(at)}: {name}: {why}" for (file, name, why), at in lines.items()]


class ConfigError(Exception):
    """Raised with all problems of the files, in their order. `files` were looked for, or read."""

    def __init__(self, problems: Iterable[ConfigProblem], files: Iterable[Path] = ()) -> None:
        self.problems = tuple(problems)
        self.files = tuple(files)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass
class Report:
    """Collects problems while files are read; `check` raises them."""

    problems: list[ConfigProblem] = field(default_factory=list)
    unsupported: list[Unsupported] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)  # files looked for, or read
    others: list[OthersNamed] = field(default_factory=list)

    def problem(self, file: str, line: int, text: str, hint: str = "") -> None:
        self.problems.append(ConfigProblem(file, line, text, hint))

    def without_effect(
        self, file: str, line: int, name: str, why: str, lost: bool = False
    ) -> None:
        self.unsupported.append(Unsupported(file, line, name, why, lost))

    def repeated(self, file: str, line: int, what: str, counts: str) -> None:
        """Records what is in a file twice, where Artemis starts all the same: `counts` says which one it takes."""
        self.without_effect(file, line, what, f"it is there twice: {counts}", True)

    def settle_others(self, alone: bool, ways_alone: str) -> None:
        """Makes the elements that say that there are other brokers problems, or, for a broker that is `alone`, lost
        services. `ways_alone` says how to tell that it is."""
        for each in self.others:
            if alone:
                self.without_effect(each.file, each.line, each.name, each.why, True)
            else:
                hint = f"{each.ways}; if there are no others: {ways_alone}"
                self.problem(each.file, each.line, f"{each.name}: {NOT_ALONE}", hint)
        self.others.clear()

    def check(self) -> None:
        """Raises ConfigError with all collected problems, if there are any."""
        if self.problems:
            raise ConfigError(sorted(self.problems, key=lambda found: (found.file, found.line)), self.files)


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "did you mean 'x'?" for the most similar known name, or ""."""
    import difflib  # Imported here: nodes start without it.

    candidates = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), list(candidates), 1, 0.7)
    return f"did you mean '{candidates[found[0]]}'?" if found else ""
