"""The answer of a node to a change: what it would do, or has done; and the changes that it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from atalanta.console.configuration.node_configuration import (
    mapping_of,
    read_object,
    read_rows,
    rows_of,
    text_of,
    texts_of,
)

ERROR: Final = "error"
RECORDED_MAX: Final = 20
LINKS_MAX: Final = 2_000
NEW: Final = "new"
GONE: Final = "gone"


@dataclass(frozen=True)
class ChangeProblem:
    """A problem that a node finds in a change. `line` is the line of the file, "" without one."""

    severity: str
    line: str
    text: str


@dataclass(frozen=True)
class PictureLink:
    """A line of the picture of a node: where a thing comes from and leads to. `mark`: "new", "gone" or "" for both."""

    kind: str
    name: str
    start: str
    end: str
    mark: str = ""


@dataclass
class ChangeAnswer:
    """The answer to previewConfiguration, changeConfiguration and undoConfiguration.

    `refused` is the reason why nothing was done; `difference` is then that between the file that was read and the
    present one. `digest` is that of the file afterwards.
    """

    digest: str = ""
    difference: str = ""
    problems: list[ChangeProblem] = field(default_factory=list)
    now: tuple[str, ...] = ()
    after_restart: tuple[str, ...] = ()
    written: bool = False
    why_not_written: str = ""
    refused: str = ""
    picture: list[PictureLink] = field(default_factory=list)
    note: str = ""

    @property
    def has_errors(self) -> bool:
        return any(each.severity == ERROR for each in self.problems)

    @property
    def is_possible(self) -> bool:
        """Returns whether the change can be carried out."""
        return not self.refused and not self.has_errors


def read_answer(answer: object, operation: str) -> ChangeAnswer:
    """Returns an answer to a change. Raises MalformedAnswer for something else."""
    told = read_object(answer, operation)
    pictures = mapping_of(told, "picture")
    return ChangeAnswer(
        text_of(told, "digest"),
        text_of(told, "difference"),
        [
            ChangeProblem(text_of(row, "severity"), text_of(row, "line"), text_of(row, "text"))
            for row in rows_of(told, "problems")
        ],
        texts_of(told, "now"),
        texts_of(told, "after_restart"),
        told.get("written") is True,
        text_of(told, "why_not_written"),
        text_of(told, "refused"),
        compared_pictures(mapping_of(pictures, "before"), mapping_of(pictures, "after")),
    )


def compared_pictures(before: Mapping[str, object], after: Mapping[str, object]) -> list[PictureLink]:
    """Returns the lines of both pictures: those of before in their order, then the new ones."""
    old, new = picture_of(before), picture_of(after)
    found = [link if link in new else replace(link, mark=GONE) for link in old]
    return found + [replace(link, mark=NEW) for link in new if link not in old]


def picture_of(picture: Mapping[str, object]) -> list[PictureLink]:
    """Returns the lines of one picture."""
    return [
        PictureLink(text_of(row, "kind"), text_of(row, "name"), text_of(row, "from"), text_of(row, "to"))
        for row in rows_of(picture, "links")[:LINKS_MAX]
    ]


@dataclass(frozen=True)
class ElementChange:
    """A change of one element. `values` has what becomes different: a text, a list, or None for the default."""

    action: str
    kind: str
    name: str
    values: Mapping[str, str | list[str] | None] = field(default_factory=dict)

    def described(self) -> dict[str, object]:
        """Returns the change for management."""
        found: dict[str, object] = {"action": self.action, "kind": self.kind, "name": self.name}
        if self.values:
            found["values"] = dict(self.values)
        return found


@dataclass(frozen=True)
class RecordedChange:
    """A change that a node keeps, to be undone."""

    id: str
    at_ms: int | None
    user: str
    origin: str  # the address of the operator
    changes: list[ElementChange]
    difference: str
    undone: bool


def read_recorded(answer: object) -> list[RecordedChange]:
    """Returns the changes in an answer to listConfigurationChanges, the newest first."""
    found = []
    for row in read_rows(answer, "listConfigurationChanges")[:RECORDED_MAX]:
        at_ms = row.get("at")
        found.append(
            RecordedChange(
                text_of(row, "id"),
                at_ms if isinstance(at_ms, int) else None,
                text_of(row, "user"),
                text_of(row, "from"),
                [
                    ElementChange(text_of(each, "action"), text_of(each, "kind"), text_of(each, "name"))
                    for each in rows_of(row, "changes")
                ],
                text_of(row, "difference"),
                row.get("undone") is True,
            )
        )
    return found
