"""Tables in narrow terminals: what says least is left out, and numbers are never folded."""

from __future__ import annotations

import io
import re
import sys

import pytest

from atalanta.cli.admin.queues import LEAST, NUMBERS, QUEUE_COLUMNS, WITH_ADDRESS
from atalanta.cli.output.tables import columns_left_out, show_table

COLUMNS = list(QUEUE_COLUMNS.values())
IDLE = ["orders", "orders", "ANYCAST", "15,855", "1", "0", "0", "15,855", "0", ""]
BUSY = ["late", "flights", "MULTICAST", "15,855", "1", "12", "3", "15,855", "0", "yes"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, rows: list[list[str]], width: int) -> list[str]:
    """The lines on a terminal of so many columns."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    show_table(COLUMNS, rows, NUMBERS, LEAST)
    return re.sub("\x1b\\[[0-9;]*m", "", terminal.getvalue()).splitlines()


def test_a_wide_terminal_shows_all() -> None:
    assert columns_left_out(COLUMNS, [IDLE, BUSY], NUMBERS, LEAST, 140) == []


def test_what_says_nothing_goes_first() -> None:
    left_out = columns_left_out(COLUMNS, [IDLE], NUMBERS, WITH_ADDRESS, 100)
    assert left_out == ["scheduled", "paused"]
    left_out = columns_left_out(COLUMNS, [IDLE], NUMBERS, WITH_ADDRESS, 80)
    assert left_out == ["delivering", "scheduled", "paused"]
    left_out = columns_left_out(COLUMNS, [BUSY], NUMBERS, LEAST, 100)
    assert left_out == ["acknowledged"]


@pytest.mark.parametrize("width", [80, 100])
def test_a_row_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    lines = shown(monkeypatch, [IDLE, BUSY], width)
    assert len(lines) == 6 and max(map(len, lines)) <= width
    assert all("15,855" in line for line in lines[3:5])
    assert "a wider terminal shows more: " in capsys.readouterr().err


def test_long_names_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a.name.that.goes.on.and.on.and.never.comes.to.an.end"
    lines = shown(monkeypatch, [[name, *BUSY[1:]]], 80)
    assert max(map(len, lines)) <= 80 and len(lines) > 5
    assert any("15,855" in line for line in lines)
