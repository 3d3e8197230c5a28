"""docs/reference/config.md says what the code says."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.docs import page

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config.md"


def test_the_committed_page_is_current() -> None:
    """`python -m atalanta.config.docs > docs/reference/config.md` brings it up to date."""
    assert COMMITTED.read_text(encoding="utf-8") == page()
