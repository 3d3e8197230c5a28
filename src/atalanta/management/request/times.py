"""Times and durations as text, in Artemis' forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def utc(at_ns: int) -> datetime:
    """Returns the time since the epoch as a date, without fractions of a second."""
    from datetime import UTC, datetime  # Imported here: nodes start without it.

    return datetime.fromtimestamp(at_ns // 1_000_000_000, UTC)


def date_text(at_ns: int) -> str:
    """Returns the form of java.util.Date.toString in UTC: "Sat Nov 21 15:35:36 UTC 2026"."""
    at = utc(at_ns)
    clock = f"{at.hour:02}:{at.minute:02}:{at.second:02}"
    return f"{DAYS[at.weekday()]} {MONTHS[at.month - 1]} {at.day:02} {clock} UTC {at.year}"


def short_date(at_ns: int) -> str:
    """Returns a date like Java's DateFormat.SHORT in the US: "11/21/26"."""
    at = utc(at_ns)
    return f"{at.month}/{at.day}/{at.year % 100:02}"


def moment(at_ns: int) -> str:
    """Returns a time like Java's DateFormat SHORT and MEDIUM in the US: "11/21/26, 3:05:36 PM"; never is the epoch."""
    at = utc(at_ns)
    half = "AM" if at.hour < 12 else "PM"
    return f"{short_date(at_ns)}, {at.hour % 12 or 12}:{at.minute:02}:{at.second:02} {half}"


def uptime_text(duration_ms: int) -> str:
    """Returns Artemis' form of an uptime (TimeUtils.printDuration): the two largest units, seconds with a fraction."""
    seconds = duration_ms / 1_000
    minutes, hours, days = (
        duration_ms // 60_000,
        duration_ms // 3_600_000,
        duration_ms // 86_400_000,
    )
    if days:
        return f"{counted(days, 'day')} {counted(hours % 24, 'hour')}"
    if hours:
        return f"{counted(hours, 'hour')} {counted(minutes % 60, 'minute')}"
    if minutes:
        return counted(minutes, "minute")
    return f"{seconds:g} seconds"


def counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
