"""Times in five fields, as cron has them: minute, hour, day of the month, month, day of the week. They are in UTC.

A field is `*`, a number, a range `a-b`, each of them with a step `/n`, or several of these with commas. 0 and 7 are
Sunday. Months and days of the week may be written as JAN and SUN. If both kinds of days are restricted, either counts.
"""

from __future__ import annotations

from datetime import date
from typing import Final

CHARACTERS_MAX: Final = 200
MONTHS: Final = {
    "JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6, "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11,
    "DEC": 12,
}  # fmt: skip
DAYS: Final = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}
NO_WORDS: Final[dict[str, int]] = {}
MINUTE_MS: Final = 60_000
DAY_MINUTES: Final = 24 * 60
EPOCH: Final = 719_163  # date(1970, 1, 1).toordinal()
LAST_DAY: Final = date.max.toordinal() - EPOCH - 8 * 366 - 1  # later ones are not searched
# 29 February comes at least every 8 years.
SEARCHED_DAYS: Final = 8 * 366 + 1


class Cron:
    """Times that repeat. ValueError, which names the field, for a text that is no such times, or that never comes."""

    def __init__(self, text: str) -> None:
        fields = text[:CHARACTERS_MAX].split()
        if len(text) > CHARACTERS_MAX or len(fields) != 5:
            wanted = "minute, hour, day of the month, month, day of the week"
            raise ValueError(f"{text[:CHARACTERS_MAX]!r} has not the five fields {wanted}")
        self._minutes = _numbers("minute", fields[0], 0, 59, NO_WORDS)
        self._hours = _numbers("hour", fields[1], 0, 23, NO_WORDS)
        self._days = _numbers("day of the month", fields[2], 1, 31, NO_WORDS)
        self._months = _numbers("month", fields[3], 1, 12, MONTHS)
        self._weekdays = [number % 7 for number in _numbers("day of the week", fields[4], 0, 7, DAYS)]
        self._any_day = fields[2].startswith("*")
        self._any_weekday = fields[4].startswith("*")
        if self.next_ms(0) == 0:
            raise ValueError(f"{text!r} never comes")

    def next_ms(self, after_ms: int) -> int:
        """Returns the first time after the given one, in ms since 1970; 0 if there is none within 8 years."""
        minute = after_ms // MINUTE_MS + 1
        today = minute // DAY_MINUTES
        if today > LAST_DAY:
            return 0
        for day in range(today, today + SEARCHED_DAYS):
            if self._is_day(date.fromordinal(EPOCH + day)):
                first = minute - day * DAY_MINUTES if day == today else 0
                for hour in self._hours:
                    for each in self._minutes:
                        if hour * 60 + each >= first:
                            return (day * DAY_MINUTES + hour * 60 + each) * MINUTE_MS
        return 0

    def _is_day(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        in_month = day.day in self._days
        in_week = day.isoweekday() % 7 in self._weekdays
        if self._any_day or self._any_weekday:
            return in_month and in_week
        return in_month or in_week


def _numbers(name: str, field: str, low: int, high: int, words: dict[str, int]) -> list[int]:
    """Returns the numbers that a field means, ascending. `words` are names of numbers."""
    found: dict[int, bool] = {}
    for part in field.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(name, part, step_text, 1, high, NO_WORDS) if slash else 1
        if span == "*":
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _number(name, part, begin, low, high, words)
            last = _number(name, part, end, first, high, words) if dash else (high if slash else first)
        for number in range(first, last + 1, step):
            found[number] = True
    return sorted(found)


def _number(name: str, part: str, text: str, low: int, high: int, words: dict[str, int]) -> int:
    number = words.get(text.upper(), -1)
    if text.isascii() and text.isdigit() and len(text) < 4:
        number = int(text)
    if not low <= number <= high:
        raise ValueError(f"{part!r} is no {name}: {low} to {high}")
    return number
