"""The configuration of one node as it tells it (operation listConfiguration), or as its controls show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from atalanta.console.nodes.failures import MalformedAnswer

HIDDEN: Final = "hidden"
ELEMENTS_MAX: Final = 20_000
FILE: Final = "file"
KEYS: Final = ("name", "match")  # parameters that are the name of the element itself
RUNTIME: Final = "runtime"
IN_EFFECT: Final = "in effect"  # the settings of an address, wherever they are set


@dataclass(frozen=True)
class ElementParameter:
    """A parameter of a kind. `choices` are its only values, empty for any; `is_list`: several values."""

    name: str
    default: str = ""
    unit: str = ""
    meaning: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    is_list: bool = False
    editable: bool = True


@dataclass(frozen=True)
class NodeElement:
    """An element of a node. `values` has what is set: a list is its values, one a line.

    `line` is that of `file`, None for an element that management has made (`origin` "runtime"). `fixed` says why the
    element changes with a restart only.
    """

    kind: str
    name: str
    values: Mapping[str, str]
    line: int | None = None
    origin: str = FILE
    state: str = ""
    used_by: tuple[str, ...] = ()
    fixed: str = ""
    file: str = ""


@dataclass
class NodeConfiguration:
    """The elements of a node, and what it lets the user do with them.

    `changeable` is false where the node takes no change at all; `why` says why not, or why its file is not written.
    `kept` is false for a node that keeps no digest and no history: a real Artemis. `untold` has the kinds of which the
    node tells nothing, each with the reason.
    """

    file: str = ""
    form: str = ""
    digest: str = ""
    changeable: bool = True
    writable: bool = False
    why: str = ""
    permitted: bool = False
    kept: bool = True
    elements: list[NodeElement] = field(default_factory=list)
    parameters: dict[str, list[ElementParameter]] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)

    def of_kind(self, kind: str) -> dict[str, NodeElement]:
        """Returns the elements of a kind by name, in the order of the file."""
        return {each.name: each for each in self.elements if each.kind == kind}

    def find(self, kind: str, name: str) -> NodeElement | None:
        return self.of_kind(kind).get(name)


def read_configuration(answer: object) -> NodeConfiguration:
    """Returns the configuration in an answer to listConfiguration. Raises MalformedAnswer for anything else."""
    told = read_object(answer, "listConfiguration")
    found = NodeConfiguration(
        file=text_of(told, "file"),
        form=text_of(told, "form"),
        digest=text_of(told, "digest"),
        changeable=told.get("changeable") is not False,
        writable=told.get("writable") is True,
        why=text_of(told, "why"),
        permitted=told.get("permitted") is True,
    )
    for kind, rows in mapping_of(told, "parameters").items():
        listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        found.parameters[kind] = [parameter_of(row) for row in listed if row.get("name") not in KEYS]
    lists = {(kind, each.name) for kind, rows in found.parameters.items() for each in rows if each.is_list}
    for row in rows_of(told, "elements")[:ELEMENTS_MAX]:
        line, kind = row.get("line"), text_of(row, "kind")
        values = mapping_of(row, "values")
        found.elements.append(
            NodeElement(
                kind,
                text_of(row, "name"),
                {
                    name: listed_lines(value) if (kind, name) in lists else lines_of(value)
                    for name, value in values.items()
                    if name not in KEYS
                },
                line if isinstance(line, int) and line > 0 else None,
                text_of(row, "from") or FILE,
                text_of(row, "state"),
                texts_of(row, "used_by"),
                text_of(row, "fixed"),
                text_of(row, "file"),
            )
        )
    return found


def parameter_of(row: Mapping[str, object]) -> ElementParameter:
    """Returns a parameter as a node describes it."""
    return ElementParameter(
        text_of(row, "name"),
        lines_of(row.get("default")),
        text_of(row, "unit"),
        text_of(row, "meaning"),
        texts_of(row, "values"),
        row.get("required") is True,
        row.get("list") is True,
        row.get("editable") is not False,
    )


# -- answers in JSON --------------------------------------------------------------------------------
def read_object(answer: object, operation: str) -> dict[str, object]:
    """Returns the object in an answer. Raises MalformedAnswer."""
    found = read_json(answer, operation)
    if not isinstance(found, dict):
        raise MalformedAnswer(f"the answer to {operation} is not an object")
    return found


def read_rows(answer: object, operation: str) -> list[dict[str, object]]:
    """Returns the objects of a list in an answer. Raises MalformedAnswer."""
    found = read_json(answer, operation)
    if not isinstance(found, list):
        raise MalformedAnswer(f"the answer to {operation} is not a list")
    return [row for row in found if isinstance(row, dict)]


def read_json(answer: object, operation: str) -> object:
    """Returns the value of a JSON text. Raises MalformedAnswer."""
    try:
        return json.loads(answer) if isinstance(answer, str) else answer
    except (ValueError, RecursionError):
        raise MalformedAnswer(f"the answer to {operation} is not JSON") from None


def text_of(row: Mapping[str, object], name: str) -> str:
    """Returns a field that is a text or number; "" for another."""
    return scalar_text(row.get(name))


def scalar_text(value: object) -> str:
    """Returns a value of JSON as the file has it: true for True, nothing for None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


def texts_of(row: Mapping[str, object], name: str) -> tuple[str, ...]:
    """Returns a field that is a list of texts."""
    found = row.get(name)
    return tuple(scalar_text(each) for each in found) if isinstance(found, list) else ()


def lines_of(value: object) -> str:
    """Returns a value as text, that of a list with one value a line."""
    if isinstance(value, list):
        return "\n".join(scalar_text(each) for each in value)
    return scalar_text(value)


def listed_lines(value: object) -> str:
    """Returns a list as text with one value a line; a node may write it as one text with commas."""
    if not isinstance(value, str) or value == HIDDEN:
        return lines_of(value)
    return "\n".join(part for each in value.split(",") if (part := each.strip()))


def rows_of(row: Mapping[str, object], name: str) -> list[dict[str, object]]:
    """Returns the objects of a field that is a list."""
    found = row.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def mapping_of(row: Mapping[str, object], name: str) -> dict[str, object]:
    """Returns a field that is an object, with its keys as texts."""
    found = row.get(name)
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
