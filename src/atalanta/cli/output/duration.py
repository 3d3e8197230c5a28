"""Lengths of time as people read them."""

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
