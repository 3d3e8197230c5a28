"""Sizes, files and waits for the tests of large messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20


def large_files(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "largemessages").rglob("*.msg"))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
