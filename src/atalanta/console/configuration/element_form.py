"""The form of an element: its fields, what was in them, and what the operator has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from atalanta.console.configuration.change_answer import ElementChange
from atalanta.console.configuration.element_kinds import ADD, CHANGE, PageKind
from atalanta.console.configuration.node_configuration import ElementParameter, NodeElement

VALUE: Final = "v."  # a field of a parameter
BEFORE: Final = "w."  # what was in it when the form was made
DIGEST: Final = "digest."  # of the file of a node, by its place
NAME_MAX: Final = 500


class FormIncomplete(Exception):
    """A form that lacks something, or has something that it must not have; the text says what."""


@dataclass(frozen=True)
class FormField:
    """A field of the form. `before` is what was there when the operator saw it first, `value` what is in it now."""

    parameter: ElementParameter
    before: str
    value: str

    @property
    def name(self) -> str:
        return f"{VALUE}{self.parameter.name}"

    @property
    def before_name(self) -> str:
        return f"{BEFORE}{self.parameter.name}"

    @property
    def is_long(self) -> bool:
        """Returns whether it takes several lines."""
        return self.parameter.is_list or "\n" in self.value


def fields_of(
    parameters: Sequence[ElementParameter], element: NodeElement | None, action: str
) -> list[FormField]:
    """Returns the fields of a new form. An element that is added as it is at another node has nothing before."""
    found = []
    for parameter in parameters:
        if parameter.editable:
            value = "" if element is None else element.values.get(parameter.name, "")
            found.append(FormField(parameter, value if action == CHANGE else "", value))
    return found


def again(fields: Sequence[FormField], given: Mapping[str, str]) -> list[FormField]:
    """Returns the fields with what the operator has changed in an earlier form; the rest is what is there now."""
    found = []
    for each in fields:
        touched = is_touched(given, each.parameter.name)
        found.append(FormField(each.parameter, each.before, given[each.name] if touched else each.value))
    return found


def as_posted(fields: Sequence[FormField], given: Mapping[str, str]) -> list[FormField]:
    """Returns the fields as a posted form has them: it lacks something, and is shown once more."""
    return [
        FormField(each.parameter, given.get(each.before_name, ""), given.get(each.name, "")) for each in fields
    ]


def is_touched(given: Mapping[str, str], parameter: str) -> bool:
    """Returns whether a posted form has another value than before."""
    value = given.get(f"{VALUE}{parameter}")
    return value is not None and plain(value) != plain(given.get(f"{BEFORE}{parameter}", ""))


def plain(text: str) -> str:
    """Returns the text of a field without what browsers add."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def digests_of(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the digests of a posted form by the place of the node."""
    return {name.removeprefix(DIGEST): value for name, value in given.items() if name.startswith(DIGEST)}


def change_of(
    action: str, kind: PageKind, name: str, parameters: Sequence[ElementParameter], given: Mapping[str, str]
) -> ElementChange:
    """Returns the change that a posted form asks for: only what differs. Raises FormIncomplete."""
    if not name or len(name) > NAME_MAX or not name.isprintable():
        raise FormIncomplete(f"Name the {kind.noun}: up to {NAME_MAX} printable characters.")
    if action not in (ADD, CHANGE):
        return ElementChange(action, kind.name, name)
    known = {each.name: each for each in parameters if each.editable}
    for field in given:
        if field.startswith(VALUE) and field.removeprefix(VALUE) not in known:
            unknown = field.removeprefix(VALUE)[:80]
            raise FormIncomplete(f"A {kind.noun} has no parameter {unknown} that can be set here.")
    values: dict[str, str | list[str] | None] = {}
    for parameter in known.values():
        if is_touched(given, parameter.name):
            values[parameter.name] = value_of(parameter, given[f"{VALUE}{parameter.name}"])
    lacking = [each.name for each in known.values() if each.required and _is_lacking(action, each, values)]
    if lacking:
        raise FormIncomplete(f"A {kind.noun} needs {', '.join(lacking)}.")
    if action == CHANGE and not values:
        raise FormIncomplete("Nothing differs from what is there: change a value, or leave it as it is.")
    return ElementChange(action, kind.name, name, values)


def value_of(parameter: ElementParameter, text: str) -> str | list[str] | None:
    """Returns the value of a field; None for an empty one, which is the default. FormIncomplete: not a choice."""
    lines = [line for line in plain(text).split("\n") if line]
    if not lines:
        return None
    if not all(line.isprintable() for line in lines):
        raise FormIncomplete(f"{parameter.name} has characters that cannot be shown, which cannot be sent.")
    if parameter.is_list:
        return lines
    if parameter.choices and lines[0] not in parameter.choices:
        raise FormIncomplete(f"{parameter.name} is one of {', '.join(parameter.choices)}.")
    return "\n".join(lines)


def _is_lacking(action: str, parameter: ElementParameter, values: Mapping[str, object]) -> bool:
    if action == CHANGE:
        return parameter.name in values and values[parameter.name] is None
    return values.get(parameter.name) is None
