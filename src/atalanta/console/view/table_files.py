"""Tables as files: CSV that no spreadsheet takes for formulas, and JSON. They are made in pieces."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Final

from atalanta.console.nodes.list_kinds import ListRow, Value
from atalanta.console.nodes.tables import TablePage

ROWS_MAX: Final = 100_000
PIECE_ROWS: Final = 500
CSV: Final = "csv"
JSON: Final = "json"
TYPES: Final = {CSV: "text/csv", JSON: "application/json"}
# A cell that begins with one of these, or with what a spreadsheet reads as one, is a formula there.
FORMULA_MARKS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
CONTROL_MARKS: Final = ("\t", "\r", "\n")


def file_name(name: str, form: str, table: TablePage) -> str:
    """Returns the name of a table's file, which says when it has not all rows."""
    cut = f"-first-{len(table.rows)}-of-{table.count}" if table.count > len(table.rows) else ""
    return f"{name}{cut}.{form}"


def pieces(form: str, table: TablePage, fields: Sequence[str]) -> Iterator[str]:
    """Yields the text of the file."""
    yield from _csv(table.rows, fields) if form == CSV else _json(table, fields)


def _csv(rows: Sequence[ListRow], fields: Sequence[str]) -> Iterator[str]:
    for start in range(0, max(1, len(rows)), PIECE_ROWS):
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        if start == 0:
            writer.writerow(fields)
        for row in rows[start : start + PIECE_ROWS]:
            writer.writerow([cell(row.get(name)) for name in fields])
        yield text.getvalue()


def cell(value: Value) -> str | int:
    """Returns a value as a cell. A text that a spreadsheet would execute gets an apostrophe before it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value
    text = ",".join(value) if isinstance(value, list) else value or ""
    if text.startswith(CONTROL_MARKS) or text.lstrip().startswith(FORMULA_MARKS):
        return f"'{text}"
    return text


def _json(table: TablePage, fields: Sequence[str]) -> Iterator[str]:
    head = {"rows": len(table.rows), "of": table.count, "complete": table.count == len(table.rows)}
    yield f"{json.dumps(head)[:-1]}, \"data\": ["
    for start in range(0, len(table.rows), PIECE_ROWS):
        part = table.rows[start : start + PIECE_ROWS]
        texts = [json.dumps({name: row.get(name) for name in fields}) for row in part]
        yield (",\n" if start else "\n") + ",\n".join(texts)
    yield "\n]}\n"
