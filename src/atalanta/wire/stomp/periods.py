"""The two periods of a heart-beat header."""

from __future__ import annotations

from typing import Final

from atalanta.wire.protocol_error import ProtocolError

PERIOD_DIGITS_MAX: Final = 9


def periods(header: str | None) -> tuple[int, int]:
    """Returns the two numbers of a heart-beat header: the client's own period, and the one it wants. ProtocolError."""
    if header is None:
        return 0, 0
    found: list[int] = []
    for part in header.split(",", 2):
        text = part.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > PERIOD_DIGITS_MAX:
            break
        found.append(int(text))
    if len(found) != 2 or header.count(",") != 1:
        raise ProtocolError(f"the header heart-beat is {header[:40]!r}, not two numbers of milliseconds")
    return found[0], found[1]
