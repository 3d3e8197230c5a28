"""LIKE patterns, matched without backtracking over `%`.

The pattern is split at `%` into pieces. The first and the last piece are anchored. Each piece between them
matches at its leftmost position, which is sufficient (greedy two pointers). The work is linear in the value.
The search for a piece with `_` costs its own length for each character, hence PIECE_MAX.
"""

from __future__ import annotations

from typing import Final

PATTERN_MAX: Final = 8_192  # characters of one pattern
PIECE_MAX: Final = 256  # characters of a searched piece with `_`


class LikePiece:
    """A part of a pattern without `%`. `blanks` are the offsets of `_`, which matches any character."""

    def __init__(self) -> None:
        self.text: str = ""
        self.blanks: list[int] = []
        self.runs: list[tuple[int, str]] = []  # (offset, literal text) between the blanks

    def close(self) -> None:
        start = 0
        for blank in self.blanks:
            if blank > start:
                self.runs.append((start, self.text[start:blank]))
            start = blank + 1
        if start < len(self.text):
            self.runs.append((start, self.text[start:]))

    def matches_at(self, value: str, at: int) -> bool:
        for offset, literal in self.runs:
            if not value.startswith(literal, at + offset):
                return False
        return True

    def find(self, value: str, start: int, end: int) -> int:
        """Returns the leftmost position at or after `start` where the piece matches before `end`, or -1."""
        size = len(self.text)
        if not self.blanks:
            return value.find(self.text, start, end)
        if not self.runs:
            return start if start + size <= end else -1
        offset, literal = self.runs[0]
        at = start
        while at + size <= end:
            found = value.find(literal, at + offset, end)
            if found < 0:
                return -1
            at = found - offset
            if at + size > end:
                return -1
            if self.matches_at(value, at):
                return at
            at += 1
        return -1


class LikePattern:
    """A compiled pattern. `%` matches any characters, `_` one; `escape` before either or itself makes it literal."""

    def __init__(self, pattern: str, escape: str | None) -> None:
        """Compiles the pattern. Raises ValueError if it exceeds the limits."""
        if len(pattern) > PATTERN_MAX:
            raise ValueError(f"a LIKE pattern has more than {PATTERN_MAX} characters")
        self.pieces: list[LikePiece] = [LikePiece()]
        self._cut(pattern, escape)
        last = len(self.pieces) - 1
        for i in range(len(self.pieces)):
            piece = self.pieces[i]
            piece.close()
            if 0 < i < last and piece.blanks and len(piece.text) > PIECE_MAX:
                raise ValueError(f"more than {PIECE_MAX} characters with '_' between two '%'")

    def _cut(self, pattern: str, escape: str | None) -> None:
        at = 0
        while at < len(pattern):
            character = pattern[at]
            piece = self.pieces[len(self.pieces) - 1]
            if escape is not None and character == escape and at + 1 < len(pattern):
                following = pattern[at + 1]
                if following == "%" or following == "_" or following == escape:
                    piece.text += following
                    at += 2
                    continue
            at += 1
            if character == "%":
                if piece.text or len(self.pieces) == 1:
                    self.pieces.append(LikePiece())
            else:
                if character == "_":
                    piece.blanks.append(len(piece.text))
                piece.text += character

    def matches(self, value: str) -> bool:
        pieces = self.pieces
        first = pieces[0]
        last = pieces[len(pieces) - 1]
        if len(pieces) == 1:
            return len(value) == len(first.text) and first.matches_at(value, 0)
        end = len(value) - len(last.text)
        at = len(first.text)
        if end < at or not first.matches_at(value, 0) or not last.matches_at(value, end):
            return False
        for i in range(1, len(pieces) - 1):
            found = pieces[i].find(value, at, end)
            if found < 0:
                return False
            at = found + len(pieces[i].text)
        return True
