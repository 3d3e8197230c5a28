"""The difference of two texts: for people, and as places that are put back by an undo."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

from atalanta.config.changes.mask import masked_text
from atalanta.config.changes.request import ChangeRefused

CONTEXT: Final = 3
CHARACTERS_MAX: Final = 256 * 1024
HEAD: Final = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified(name: str, before: str, after: str) -> str:
    """Returns a unified diff without passwords; "" for equal texts."""
    if before == after:
        return ""
    one, two = masked_text(before).splitlines(), masked_text(after).splitlines()
    start, end = _alike(one, two)
    start, end = max(0, start - CONTEXT), max(0, end - CONTEXT)
    lines = difflib.unified_diff(
        one[start : len(one) - end], two[start : len(two) - end], name, name, "before", "after", lineterm=""
    )
    found = "\n".join(_moved(line, start) for line in lines)
    if len(found) > CHARACTERS_MAX:
        return found[:CHARACTERS_MAX] + "\n… (cut)"
    return found or f"--- {name}\n+++ {name}\n(only line ends or passwords differ)"


def _alike(one: list[str], two: list[str]) -> tuple[int, int]:
    """Returns how many lines are the same at the start and at the end. difflib is slow with many equal lines."""
    shorter = min(len(one), len(two))
    start = 0
    while start < shorter and one[start] == two[start]:
        start += 1
    end = 0
    while end < shorter - start and one[-1 - end] == two[-1 - end]:
        end += 1
    return start, end


def _moved(line: str, by: int) -> str:
    """Returns a line of a diff; the numbers of lines in a head are those of the whole text."""
    head = HEAD.fullmatch(line)
    if head is None:
        return line
    return f"@@ -{int(head[1]) + by}{head[2]} +{int(head[3]) + by}{head[4]} @@"


@dataclass(frozen=True)
class Hunk:
    """A changed place: the lines before and after, with some around them that did not change."""

    before: list[str]
    after: list[str]
    lead: list[str]
    tail: list[str]

    def as_json(self) -> dict[str, object]:
        return {"before": self.before, "after": self.after, "lead": self.lead, "tail": self.tail}


def hunks(before: str, after: str) -> list[Hunk]:
    """Returns the changed places, in their order. Lines keep their ends."""
    one, two = before.splitlines(keepends=True), after.splitlines(keepends=True)
    found: list[Hunk] = []
    start, end = _alike(one, two)
    matcher = difflib.SequenceMatcher(None, one[start : len(one) - end], two[start : len(two) - end], autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        changed = [each for each in group if each[0] != "equal"]
        if not changed:
            continue
        _, i1, _, j1, _ = changed[0]
        _, _, i2, _, j2 = changed[-1]
        i1, i2, j1, j2 = i1 + start, i2 + start, j1 + start, j2 + start
        found.append(Hunk(one[i1:i2], two[j1:j2], two[max(0, j1 - CONTEXT) : j1], two[j2 : j2 + CONTEXT]))
    return found


def undone(text: str, places: list[Hunk], name: str) -> str:
    """Returns the text with these places as they were before. ChangeRefused if one of them is not there once."""
    lines = text.splitlines(keepends=True)
    for place in reversed(places):
        at = _place_of(lines, place)
        if at is None:
            raise ChangeRefused(
                f"{name} has changed at this place since, or is without it: what was changed then cannot be taken back"
                " by itself. Change the element as it is to be"
            )
        lines[at : at + len(place.after)] = place.before
    return "".join(lines)


def _place_of(lines: list[str], place: Hunk) -> int | None:
    """Returns where the changed lines stand, with as much as possible of what stood around them."""
    around = [(place.lead[-count:], place.tail[:count]) for count in range(CONTEXT, 0, -1)]
    around += [(place.lead, []), ([], place.tail), ([], [])]
    for lead, tail in around:
        at = _only(lines, [*lead, *place.after, *tail])
        if at is not None:
            return at + len(lead)
    return None


def _only(lines: list[str], wanted: list[str]) -> int | None:
    """Returns where the lines stand, if they stand there once."""
    if not wanted:
        return 0 if not lines else None
    places = [
        at for at in range(len(lines) - len(wanted) + 1)
        if lines[at] == wanted[0] and lines[at : at + len(wanted)] == wanted
    ]  # fmt: skip
    return places[0] if len(places) == 1 else None
