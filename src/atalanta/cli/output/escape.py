"""Names of others, as a terminal and a picture may show them: what would steer or break these is written out."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 queue`, `2,000 queues`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def messages(count: int) -> str:
    return counted(count, "message")


def harmless(text: str) -> str:
    """As `plain`, but blanks of every kind stay: texts that are shown as a whole."""
    return "".join(
        each if each in "\n\t" or each > "\x9f" and each.isspace() else plain(each) for each in text
    )


def plain(text: str) -> str:
    """Control characters, escape sequences and lone surrogates become `\\x1b` and the like; lines stay lines."""
    return "".join(
        each
        if each.isprintable() or each == "\n"
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
