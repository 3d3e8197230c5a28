"""What every packet has."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.types import NOT_COUNTED

# Fields that are never printed, not even while looking for a mistake.
SECRETS: Final = ("password",)


class Packet:
    """A packet's content; equal if of one class and of equal fields. The channel is the frame's.

    `layout` names the fields, each a constructor argument and an attribute; codec.py says how they
    are encoded (packets_layout.py says what the words mean).
    """

    type: ClassVar[int] = 0
    layout: ClassVar[str] = ""

    def counts(self) -> bool:
        """Whether it is numbered and kept for a reattach (isRequiresConfirmations)."""
        return self.type not in NOT_COUNTED

    def values(self) -> list[object]:
        """The fields' values in the order of the layout, in a form that can be compared."""
        return [getattr(self, name) for name, _ in field_words(self.layout.replace("|", ","))]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Packet)
            and self.type == other.type
            and self.values() == other.values()
        )

    def __hash__(self) -> int:
        raise TypeError("packets have no hash")

    def __repr__(self) -> str:
        names = [name for name, _ in field_words(self.layout.replace("|", ","))]
        parts = [
            f"{name}={'***' if name in SECRETS else repr(getattr(self, name))}" for name in names
        ]
        return f"{self.__class__.__name__}({', '.join(parts)})"


def field_words(layout: str) -> list[tuple[str, str]]:
    """(name, word) of each field of a layout without `|`."""
    pairs: list[tuple[str, str]] = []
    for part in layout.split(","):
        name, _, word = part.strip().partition(" ")
        if name:
            pairs.append((name, word.strip()))
    return pairs
