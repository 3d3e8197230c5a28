"""The owner of a journal folder that an earlier version gave to every broker of one data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from atalanta.files.regular import read_regular

OWNER_NAME: Final = "broker-name"  # a file in the folder: the broker that has claimed it
OWNER_BYTES_MAX: Final = 1000


def owner_of(journal: Path) -> str:
    """Returns the name of the broker that has claimed the folder; "" if none has."""
    try:
        return read_regular(journal / OWNER_NAME, OWNER_BYTES_MAX).decode(errors="replace").strip()
    except OSError:
        return ""
