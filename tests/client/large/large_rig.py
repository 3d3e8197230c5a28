"""Sizes and files for the tests of large messages."""

from __future__ import annotations

from pathlib import Path

MIB = 1 << 20


def large_files(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "largemessages").rglob("*.msg"))
