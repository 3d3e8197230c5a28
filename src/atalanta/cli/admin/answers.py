"""JSON that a node answered, held against what was asked: anything else is an error that names the question.

A node may be an older one, another broker, or broken: what it says is no reason for a traceback.
"""

from __future__ import annotations

import json
from typing import Any

from atalanta.client import ManagementFailed

Row = dict[str, Any]


def parsed(text: object, resource: str, what: str) -> Any:
    """ManagementFailed unless it is JSON; an answer that is no text at all is None."""
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise unexpected(text, resource, what) from None


def row_of(text: object, resource: str, what: str, **wanted: type) -> Row:
    """An object with at least these keys."""
    value = parsed(text, resource, what)
    if not isinstance(value, dict) or not has(value, wanted):
        raise unexpected(text, resource, what)
    return value


def rows_of(text: object, resource: str, what: str, **wanted: type) -> list[Row]:
    """A list of such objects; none where there is no answer."""
    value = parsed(text, resource, what)
    rows = [] if value is None else value
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and has(row, wanted) for row in rows
    ):
        raise unexpected(text, resource, what)
    return rows


def has(row: Row, wanted: dict[str, type]) -> bool:
    """True is no number here."""
    return all(
        isinstance(row.get(name), kind) and (kind is bool or not isinstance(row.get(name), bool))
        for name, kind in wanted.items()
    )


def unexpected(value: object, resource: str, what: str) -> ManagementFailed:
    return ManagementFailed(resource, what, f"an answer that makes no sense: {str(value)[:80]}")
