"""The distance of a cluster notification: the number of hops since its origin (`_AMQ_Distance`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.message.properties import TypedProperties

DISTANCE: Final = "_AMQ_Distance"
DISTANCE_MAX: Final = (1 << 31) - 2  # the value plus one still fits a Java int


def distance_of(properties: TypedProperties) -> int | None:
    """Returns the distance in a notification, None if it is missing or not valid.

    Any client may send notifications, and the node forwards the distance increased by one.
    """
    value = properties.get(DISTANCE)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= DISTANCE_MAX:
        return None
    return value
