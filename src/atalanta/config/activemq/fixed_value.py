"""The value of an attribute that holds here, whatever a file says: another value is named with its consequence."""

from __future__ import annotations

from typing import Final

SO_IT_IS: Final = "so it is here"


class FixedValue:
    """An attribute that is harmless with one value alone. `here`: that value, in all its forms."""

    def __init__(self, here: str, otherwise: str) -> None:
        """`here`: forms with commas. `otherwise`: what clients see that counted on another value."""
        self.here = tuple(here.lower().split(","))
        self.otherwise = otherwise

    def holds(self, text: str) -> bool:
        """Returns whether the value is the one that holds here."""
        return text.strip().lower() in self.here
