"""Escaping of foreign names for terminals and pictures: control characters and markup are written out."""

from __future__ import annotations


def escaped_text(text: str) -> str:
    """Escapes like `plain`, but keeps all white space: for texts shown as a whole."""
    return "".join(
        each if each in "\n\t" or each > "\x9f" and each.isspace() else plain(each) for each in text
    )


def plain(text: str) -> str:
    """Escapes control characters, escape sequences and lone surrogates as `\\x1b` and the like; lines stay lines."""
    return "".join(
        each
        if each.isprintable() or each == "\n"
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
