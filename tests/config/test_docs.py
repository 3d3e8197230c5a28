"""docs/reference/config.md, and the table of docs/guide/migration.md, say what the code says."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.docs import page
from tools.unbuilt_options import PAGE, table

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"


def test_the_committed_page_is_current() -> None:
    """`python -m atalanta.config.docs > docs/reference/config.md` brings it up to date."""
    assert COMMITTED.read_text(encoding="utf-8") == page()


def test_the_table_of_options_without_effect_is_current() -> None:
    """`python -m tools.unbuilt_options` brings it up to date."""
    assert table() in PAGE.read_text(encoding="utf-8")
