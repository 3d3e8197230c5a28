"""How far away news began, as a notification tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.message.properties import TypedProperties

DISTANCE: Final = "_AMQ_Distance"
DISTANCE_MAX: Final = (1 << 31) - 2  # one hop more is still an int of Java


def distance_of(properties: TypedProperties) -> int | None:
    """None if it is missing or cannot be: it is told on with one hop more, and anybody may write notifications."""
    value = properties.get(DISTANCE)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= DISTANCE_MAX:
        return None
    return value
