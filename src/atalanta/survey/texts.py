"""Counts and lengths of time as people read them."""

from __future__ import annotations


def duration_text(milliseconds: int | None) -> str:
    """Formats a duration: `3 min`, `2 h`."""
    if milliseconds is None or milliseconds < 0:
        return "an unknown time"
    seconds = milliseconds // 1_000
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def counted(count: int, noun: str) -> str:
    """Formats `1 queue`, `2,000 queues`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def messages(count: int) -> str:
    return counted(count, "message")


def bytes_text(count: int) -> str:
    """Formats a size: `512 bytes`, `20 KiB`, `1.5 GiB`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1_024:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{count} bytes"
        size /= 1_024
    return f"{size:.3g} TiB"
