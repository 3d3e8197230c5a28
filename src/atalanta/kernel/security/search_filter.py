"""Filters of searches in a directory, with the parameters `{0}` and `{1}` (java.text.MessageFormat, RFC 4515).

In a MessageFormat what stands in apostrophes is literal, and two of them are one.
"""

from __future__ import annotations


def fill(text: str, values: list[str]) -> str:
    """Returns the filter with its parameters replaced by `values`, which are escaped already."""
    return "".join(_pieces(text, values))


def verify_filter(text: str, count: int) -> None:
    """Raises ValueError for a filter that is malformed, or has a parameter beyond `count`."""
    filled = fill(text, ["x"] * count)
    depth = 0
    for at, character in enumerate(filled):
        depth += (character == "(") - (character == ")")
        if depth < 0 or (depth == 0 and at < len(filled) - 1):
            break
    if not filled.startswith("(") or depth != 0 or not filled.endswith(")") or "=" not in filled:
        raise ValueError(f"'{text}' is not a filter like (uid={{0}})")


def _pieces(text: str, values: list[str]) -> list[str]:
    pieces: list[str] = []
    quoted = False
    at = 0
    while at < len(text):
        character = text[at]
        if character == "'":
            if text[at + 1 : at + 2] == "'":
                pieces.append("'")
                at += 2
                continue
            quoted = not quoted
        elif character == "{" and not quoted:
            end = text.find("}", at)
            name = text[at + 1 : end].strip() if end > 0 else ""
            number = int(name) if name in ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9") else -1
            if not 0 <= number < len(values):
                known = " and ".join(f"{{{each}}}" for each in range(len(values)))
                raise ValueError(f"'{text}' has a parameter other than {known}")
            pieces.append(values[number])
            at = end
        else:
            pieces.append(character)
        at += 1
    return pieces
