"""Instants in ms since 1970, which a journal, a message and every protocol keep in 64 bits.

Senders and operators write the largest number for "never". A sum with it stays at that number: INSTANT_MS_MAX never
comes.
"""

from __future__ import annotations

from typing import Final

INSTANT_MS_MAX: Final = (1 << 63) - 1


def later_ms(instant_ms: int, delay_ms: int) -> int:
    """Returns the instant that comes `delay_ms` later: from 1 to INSTANT_MS_MAX, as 0 means that there is none."""
    return max(min(instant_ms + delay_ms, INSTANT_MS_MAX), 1)
