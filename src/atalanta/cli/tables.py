"""Tables on stdout; as wide as the terminal, or as wide as needed when no terminal is there."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.plain import plain

FILE_COLUMNS: Final = 200


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()
) -> None:
    """`right`: the columns of numbers. Cells are taken as they are, without markup."""
    table = Table(*columns)
    for column in table.columns:
        column.overflow = "fold"
        if column.header in right:
            column.justify = "right"
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    width = None if sys.stdout.isatty() else FILE_COLUMNS
    Console(width=width).print(table)
