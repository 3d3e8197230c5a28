"""UUIDs as text."""

from __future__ import annotations

from typing import Final

UUID_CHARS: Final = 36
_HYPHENS: Final = (8, 13, 18, 23)
_DIGITS: Final = "0123456789abcdef"


def uuid_text(value: bytes) -> str:
    """Returns 16 bytes in the text form of a UUID."""
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def is_uuid(name: str) -> bool:
    """Returns True if the name is a UUID in lower case, as Java writes them."""
    if len(name) != UUID_CHARS:
        return False
    for i in range(UUID_CHARS):
        if i in _HYPHENS:
            if name[i] != "-":
                return False
        elif name[i] not in _DIGITS:
            return False
    return True
