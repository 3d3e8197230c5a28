"""The data folder of a pair with a shared store."""

from __future__ import annotations

from pathlib import Path


def share(data: Path, other: Path) -> None:
    """Both instances have one data folder."""
    data.mkdir(exist_ok=True)
    if other.exists():
        for path in sorted(other.rglob("*"), reverse=True):
            path.rmdir()
        other.rmdir()
    other.symlink_to(data)
