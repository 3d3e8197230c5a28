"""`--property name=value` and `name:type=value`: the properties of a message with their Java types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from atalanta.cli.output.outcome import USAGE, Refused
from atalanta.client import Byte, Char, Float, Int, Property, Short
from atalanta.client.encoding import encode_value

LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def _long(text: str) -> int:
    value = int(text)
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError("too large for a long")
    return value


def _char(text: str) -> Property:
    if len(text) != 1:
        raise ValueError("not one character")
    return Char(text)


TYPES: Final[dict[str, Callable[[str], Property]]] = {
    "boolean": _boolean,
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": lambda text: Int(int(text)),
    "integer": lambda text: Int(int(text)),
    "long": _long,
    "float": lambda text: Float(float(text)),
    "double": float,
    "char": _char,
    "string": str,
}


def typed(name: str, kind: str, text: str) -> Property:
    """Converts a property; Refused (2) names the property."""
    reader = TYPES.get(kind.lower())
    if reader is None:
        raise Refused(f"property {name}: type {kind} is none of {', '.join(TYPES)}", USAGE)
    try:
        value = reader(text)
    except (ValueError, TypeError, OverflowError) as error:
        raise Refused(f"property {name}: {text!r} is not of type {kind}: {error}", USAGE) from None
    try:
        encode_value(name, value)
    except (ValueError, TypeError) as error:
        raise Refused(str(error), USAGE) from None
    return value


def guessed(text: str) -> Property:
    """Guesses the type: true and false are booleans, whole numbers longs, decimal numbers doubles, all else text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return _long(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def parse_properties(given: list[str]) -> dict[str, Property]:
    """Parses all --property options. Refused (2) for text that is not name=value."""
    found: dict[str, Property] = {}
    for one in given:
        name, separator, text = one.partition("=")
        name, colon, kind = name.partition(":")
        if not separator or not name:
            raise Refused(f"--property {one}: name=value or name:type=value is expected", USAGE)
        found[name] = typed(name, kind, text) if colon else guessed(text)
    return found
