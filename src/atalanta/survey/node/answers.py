"""Checks of JSON answers: an answer of another form is an error that names the request.

The node may be an older version, another broker, or faulty: no answer may cause a traceback.
"""

from __future__ import annotations

import json
from typing import Any

from atalanta.client import ManagementFailed

Row = dict[str, Any]


def parsed(text: object, resource: str, what: str) -> Any:
    """Parses JSON; ManagementFailed for other text. An answer without text is None."""
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise unexpected(text, resource, what) from None


def row_of(text: object, resource: str, what: str, **wanted: type) -> Row:
    """Returns an object that has at least these keys, with these types."""
    value = parsed(text, resource, what)
    if not isinstance(value, dict) or not has(value, wanted):
        raise unexpected(text, resource, what)
    return value


def rows_of(text: object, resource: str, what: str, **wanted: type) -> list[Row]:
    """Returns a list of such objects; empty without an answer."""
    value = parsed(text, resource, what)
    rows = [] if value is None else value
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and has(row, wanted) for row in rows
    ):
        raise unexpected(text, resource, what)
    return rows


def has(row: Row, wanted: dict[str, type]) -> bool:
    """Returns whether the row has these keys and types; True does not count as a number."""
    return all(
        isinstance(row.get(name), kind) and (kind is bool or not isinstance(row.get(name), bool))
        for name, kind in wanted.items()
    )


def unexpected(value: object, resource: str, what: str) -> ManagementFailed:
    return ManagementFailed(resource, what, f"an unexpected answer: {str(value)[:80]}")
