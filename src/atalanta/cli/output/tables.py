"""Tables on stdout: as wide as the terminal, or as wide as needed without one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.output.escape import plain

FILE_COLUMNS: Final = 200
FOLDED_COLUMNS: Final = 12  # texts are folded to this width before a column is left out
FRAME_COLUMNS: Final = 3  # width of a column beside its cells


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Collection[str] = (),
    least: Sequence[str] = (),
) -> None:
    """Prints a table. `right`: columns of numbers. Cells are plain text without markup.

    `least`: columns that a narrow terminal may leave out, the first one first; empty columns are left out
    before. stderr names the omitted columns.
    """
    console = Console(width=None if sys.stdout.isatty() else FILE_COLUMNS)
    cells = [[plain(cell) for cell in row] for row in rows]
    left_out = columns_left_out(columns, cells, right, least, console.width)
    kept = [at for at, name in enumerate(columns) if name not in left_out]
    table = Table()
    for at in kept:
        number = columns[at] in right
        table.add_column(
            columns[at],
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number or columns[at] in least,
        )
    for row in cells:
        table.add_row(*(Text(row[at]) for at in kept))
    console.print(table)
    if left_out:
        typer.echo(f"a wider terminal shows more: {', '.join(left_out)}", err=True)


def columns_left_out(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Collection[str],
    least: Sequence[str],
    width: int,
) -> list[str]:
    """Returns the omitted columns, in the order of `columns`."""
    widths: dict[str, int] = {}
    empty: set[str] = set()
    for at, name in enumerate(columns):
        texts = [row[at] for row in cells]
        longest = max((cell_len(line) for text in texts for line in text.split("\n")), default=0)
        if name not in right and name not in least:
            longest = min(longest, FOLDED_COLUMNS)
        widths[name] = max(longest, cell_len(name)) + FRAME_COLUMNS
        if name in least and all(text in ("", "0") for text in texts):
            empty.add(name)
    needed = sum(widths.values()) + 1
    left_out: set[str] = set()
    for name in (*(each for each in least if each in empty), *least):
        if needed <= width:
            break
        if name not in left_out:
            left_out.add(name)
            needed -= widths[name]
    return [name for name in columns if name in left_out]
