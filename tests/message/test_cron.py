"""Times in five fields, as cron has them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from atalanta.message.cron import Cron

SATURDAY = datetime(2026, 11, 28, 6, 7, 8, 999_000, UTC)


def ms(when: datetime) -> int:
    return int(when.timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-11-28 06:08"),
        ("7 6 * * *", "2026-11-29 06:07"),
        ("0 * * * *", "2026-11-28 07:00"),
        ("*/15 8-10 * * MON-FRI", "2026-11-30 08:00"),
        ("5/20 * * * *", "2026-11-28 06:25"),
        ("59,3 23 * * *", "2026-11-28 23:03"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("30 12 1,15 * 5", "2026-12-01 12:30"),
        ("30 12 15 * 0", "2026-11-29 12:30"),
        ("0 0 * * 7", "2026-11-29 00:00"),
        ("0 0 1 jan *", "2027-01-01 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59"),
        (" 0  0-23/12 * * * ", "2026-11-28 12:00"),
    ],
)
def test_the_next_time(text: str, expected: str) -> None:
    found = Cron(text).next_ms(ms(SATURDAY))
    assert f"{datetime.fromtimestamp(found / 1000, UTC):%Y-%m-%d %H:%M}" == expected
    assert found % 60_000 == 0


def test_times_ascend_and_none_is_left_out() -> None:
    cron = Cron("10,40 1-2 * 2-3 *")
    times = []
    at = ms(datetime(2027, 2, 27, tzinfo=UTC))
    for _ in range(12):
        at = cron.next_ms(at)
        times.append(f"{datetime.fromtimestamp(at / 1000, UTC):%d %H:%M}")
    assert times == [
        f"{day} {hour}:{minute}" for day in ("27", "28", "01") for hour in ("01", "02") for minute in ("10", "40")
    ]


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "a * * * *",
     "1-0 * * * *", "*/0 * * * *", "1,,2 * * * *", "-1 * * * *", "* * 30 2 *", "٣ * * * *", "* * * MON *", "* " * 200],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):
        Cron(text)
