"""Names of others, as a terminal and a picture may show them: what would steer or break these is written out."""

from __future__ import annotations


def plain(text: str) -> str:
    """Control characters, escape sequences and lone surrogates become `\\x1b` and the like; lines stay lines."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
