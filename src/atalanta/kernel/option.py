"""The description of a configuration dataclass' fields.

One generic reader (config/xml/reader.py) and one printer (config/docs.py) use these descriptions.
A new option is one line beside the code that uses the option. This module does not depend on XML files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any


def option(
    default: Any,
    xml: str,
    why: str,
    *,
    unit: str = "",
    supported: bool = True,
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
    supported: False for an option without effect (`ignored`).
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
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "also": also,
        "attribute": attribute,
    }
    return field(default=default, metadata=metadata)


def ignored(default: Any, xml: str, why: str, **described: Any) -> Any:
    """Returns an option of Artemis that has no effect here. It is read and checked, then listed once at the start."""
    return option(default, xml, why, supported=False, **described)


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
