"""Tables as files: no cell is a formula, and a file that lacks rows says so."""

from __future__ import annotations

import csv
import io
import json

import pytest

from atalanta.console.nodes.list_kinds import ListRow
from atalanta.console.nodes.tables import TablePage, TableQuery
from atalanta.console.view.table_files import PIECE_ROWS, cell, file_name, pieces


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =cmd|' /C calc'!A0", "\u00a0=1", "\uff1d1", "\uff0b1"],
)
def test_what_a_spreadsheet_would_execute_is_text(text: str) -> None:
    assert cell(text) == f"'{text}"


def test_other_cells_stay_as_they_are() -> None:
    given = ("a=b", "", None, 7, -7, True, ["a", "b"], "'x", "1-2")
    assert [cell(each) for each in given] == ["a=b", "", "", 7, -7, "true", "a,b", "'x", "1-2"]


def test_rows_come_back_as_they_were() -> None:
    rows: list[ListRow] = [{"name": f'q"{number}\r\n,;', "messages": number} for number in range(PIECE_ROWS + 3)]
    table = TablePage(TableQuery(), rows, len(rows), len(rows))
    text = "".join(pieces("csv", table, ["name", "messages"]))
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["name"], int(row["messages"])) for row in read] == [(row["name"], row["messages"]) for row in rows]
    found = json.loads("".join(pieces("json", table, ["name", "messages"])))
    assert found["data"] == rows and found["complete"] is True
    assert file_name("queues", "csv", table) == "queues.csv"


def test_a_file_without_all_rows_says_so() -> None:
    table = TablePage(TableQuery(), [{"name": "a"}], 7, 9)
    assert file_name("queues", "json", table) == "queues-first-1-of-7.json"
    found = json.loads("".join(pieces("json", table, ["name"])))
    assert (found["rows"], found["of"], found["complete"]) == (1, 7, False)
    empty = TablePage(TableQuery(), [], 0, 0)
    assert "".join(pieces("csv", empty, ["name"])) == "name\r\n"
    assert json.loads("".join(pieces("json", empty, ["name"])))["data"] == []
