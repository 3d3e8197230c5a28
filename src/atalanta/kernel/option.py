"""The description of a configuration dataclass' fields.

One generic reader (config/xml/reader.py) and one printer (config/docs.py) use these descriptions.
A new option is one line beside the code that uses the option. This module does not depend on XML files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any


class OptionGroup:
    """The base of configuration dataclasses: their comparison and their printing, by field.

    `dataclass` would compile both again for each class: a tenth of the time in which a node starts.
    """

    def __eq__(self, other: object) -> bool:
        """Returns whether `other` is of the same class and has the same values."""
        return type(other) is type(self) and vars(other) == vars(self)

    def __repr__(self) -> str:
        """Returns the class with every field, as a dataclass prints itself."""
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__qualname__}({values})"


def option(
    default: Any,
    xml: str,
    why: str,
    *,
    unit: str = "",
    supported: bool = True,
    named: bool = False,
    choices: Mapping[str, Any] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    also: tuple[str, ...] = (),
    attribute: bool = False,
    kind: str = "",
) -> Any:
    """Returns a field with its element name (`xml`), older names (`also`), unit, bounds and purpose (`why`).

    unit: "ms", "s", "bytes" (suffixes such as 10M are read), "count" or "" (no number).
    supported: False for an option without effect (`ignored`); `named`: each start says so (`unbuilt`).
    minimum and maximum are allowed values themselves, `above` is not.
    choices: text in the file -> value. attribute: an XML attribute, not a child element.
    kind: "bool", "int", "float", "str" or "pattern" (a regular expression, as text). The default value decides the
    kind, or the unit where the default is None.
    """
    metadata = {
        "xml": xml,
        "kind": kind if kind else _kind_of(default, unit),
        "why": why,
        "unit": unit,
        "supported": supported,
        "named": named,
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "also": also,
        "attribute": attribute,
    }
    return field(default=default, metadata=metadata)


def ignored(default: Any, xml: str, why: str, **described: Any) -> Any:
    """Returns an option of Artemis that has no effect here, and that no client sees: `why` is a kind of
    kernel/unseen_options.py, or tests/config/harmless has a case. It is read and checked.
    """
    return option(default, xml, why, supported=False, **described)


def unbuilt(default: Any, xml: str, why: str, **described: Any) -> Any:
    """Returns an option of Artemis that has no effect here. The default is what happens here; any other value is named
    at the start, with its consequence `why`.
    """
    return option(default, xml, why, supported=False, named=True, **described)


def _kind_of(default: Any, unit: str) -> str:
    if isinstance(default, bool):
        return "bool"
    if isinstance(default, int):
        return "int"
    if isinstance(default, float):
        return "float"
    if default is None and unit:
        return "int"
    return "str"
