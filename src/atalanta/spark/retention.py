"""The option `retention`: how long, and up to what size, acknowledged messages stay for a replay."""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding import all_digits
from atalanta.spark.errors import OptionError

NONE: Final = "none"
UNITS_MS: Final = {"s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
SIZES: Final = {"mb": 1 << 20, "mib": 1 << 20, "gb": 1 << 30, "gib": 1 << 30, "tb": 1 << 40, "tib": 1 << 40}


def parse_retention(text: str | None) -> tuple[int, int] | None:
    """Returns (ms, bytes), 0 for no such limit; None without a text. OptionError for anything else than time and size.
    """
    if text is None:
        return None
    limits = [0, 0]
    for part in [] if text.lower() == NONE else text.lower().split(","):
        digits = part.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = part.strip()[len(digits) :].strip()
        place = 0 if unit in UNITS_MS else 1
        factor = UNITS_MS.get(unit) or SIZES.get(unit)
        if factor is None or not all_digits(digits, 6) or int(digits) == 0 or limits[place] != 0:
            raise OptionError(
                f"option retention: {text!r} is not a time (7d, 12h, 30min), a size (500mb, 10gb), "
                "both (7d,10gb), or none"
            )
        limits[place] = int(digits) * factor
    return limits[0], limits[1]
