"""Problems of a pipeline file, with their places."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """A problem that prevents the start. `remedy` says what to do; line 0: no line."""

    file: str
    line: int
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}" if self.line else self.file
        return f"{position}: {self.text}" + (f" ({self.remedy})" if self.remedy else "")


class PipelineError(Exception):
    """Raised with all problems of a file, in the order of their lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda one: one.line))
        super().__init__("\n".join(str(one) for one in self.problems))


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns "did you mean x?" for the most similar known name, or the list of all."""
    candidates = list(known)
    found = difflib.get_close_matches(name, candidates, 1, 0.6)
    return f"did you mean '{found[0]}'?" if found else f"known: {', '.join(candidates)}"
