"""Fully qualified queue names: `address::queue`."""

from __future__ import annotations


def split_fqqn(name: str) -> tuple[str, str]:
    """Splits `address::queue` into (address, queue), and a plain name into (name, "")."""
    at = name.find("::")
    if at < 0:
        return name, ""
    return name[:at], name[at + 2 :]


def join_fqqn(address: str, queue: str) -> str:
    """Returns the fully qualified name of a queue."""
    return f"{address}::{queue}"
