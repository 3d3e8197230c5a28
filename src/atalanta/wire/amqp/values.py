"""The types of AMQP 1.0 that Python and CORE have no type for (specification part 1, section 1.6)."""

from __future__ import annotations

from typing import NamedTuple


class UnsignedByte(int):
    """A ubyte: 0 to 2^8 - 1."""


class UnsignedShort(int):
    """A ushort: 0 to 2^16 - 1."""


class UnsignedInt(int):
    """A uint: 0 to 2^32 - 1."""


class UnsignedLong(int):
    """A ulong: 0 to 2^64 - 1."""


class Timestamp(int):
    """A time in milliseconds since the epoch."""


class Symbol(str):
    """A symbol: ASCII."""


class Uuid(bytes):
    """A UUID: 16 bytes, the most significant first."""

    def text(self) -> str:
        """Returns the usual form, 8-4-4-4-12 hexadecimal digits."""
        digits = self.hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return "-".join(parts)


class Decimal(bytes):
    """A decimal32, decimal64 or decimal128, still encoded: 4, 8 or 16 bytes."""


class Described(NamedTuple):
    """A value with its descriptor, which is a ulong or a symbol as a rule."""

    descriptor: object
    value: object


class Entry(NamedTuple):
    """An entry of a map; `encoded` is the value as it came, with its constructor."""

    key: object
    value: object
    encoded: bytes


class Map:
    """A map: its entries in the order they came in."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    def get(self, key: str) -> object:
        """Returns the value of a text or symbol key; None also if the key is missing."""
        for entry in self.entries:
            if isinstance(entry.key, str) and entry.key == key:
                return entry.value
        return None


class Array(list[object]):
    """An array: values of one constructor."""
