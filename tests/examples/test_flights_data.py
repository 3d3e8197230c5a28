"""The flights and their messages."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from atalanta.client import Int
from examples.flights import data
from examples.flights.plan import check_count, plan_for


def test_all_rows_are_there_in_order_of_scheduled_departure(flights: pd.DataFrame) -> None:
    assert len(flights) == 336_776
    assert flights["scheduled"].is_monotonic_increasing
    assert flights["key"].is_unique
    assert str(flights["scheduled"].iloc[0]) == "2013-01-01 10:15:00+00:00"
    assert str(flights["scheduled"].iloc[-1]) == "2014-01-01 04:59:00+00:00"


def test_a_delay_is_known_exactly_when_the_flight_was_not_cancelled(flights: pd.DataFrame) -> None:
    assert (flights["dep_delay"].isna() == flights["cancelled"]).all()
    assert flights["cancelled"].sum() == 8_255


def test_a_message_says_what_its_row_says(flights: pd.DataFrame) -> None:
    first = next(data.messages(flights))
    assert first.text is not None
    row = json.loads(first.text)
    assert (row["carrier"], row["flight"], row["dest"], row["dep_time"]) == ("UA", 1545, "IAH", 517)
    assert first.properties == {
        "carrier": "UA", "origin": "EWR", "dest": "IAH", "cancelled": False, "dep_delay": Int(2),
    }  # fmt: skip
    assert first.duplicate_id == "2013-01-01 UA1545 EWR"
    assert first.timestamp_ms == 1_357_035_300_000
    assert first.durable


def test_a_cancelled_flight_has_no_delay(flights: pd.DataFrame) -> None:
    cancelled = flights[flights["cancelled"]].head(1)
    message = next(data.messages(cancelled))
    assert message.properties is not None
    assert message.properties["cancelled"] is True
    assert "dep_delay" not in message.properties
    assert message.text is not None and json.loads(message.text)["dep_time"] is None


def test_messages_go_on_over_chunks(flights: pd.DataFrame) -> None:
    part = flights.iloc[100 : 100 + data.CHUNK_ROWS + 5]
    assert [message.duplicate_id for message in data.messages(part)] == part["key"].tolist()


def test_a_part_is_the_beginning(flights: pd.DataFrame) -> None:
    part = data.load(500)
    assert part["key"].tolist() == flights["key"].head(500).tolist()
    with pytest.raises(ValueError, match="the file has 336776"):
        data.load(400_000)


@pytest.mark.parametrize("count", [500, 2_000, 20_000, 336_776])
def test_the_watermark_outlasts_the_skew(flights: pd.DataFrame, count: int) -> None:
    plan = plan_for(flights.head(count), data.packaged_file(), "local[2]")
    assert plan.watermark_delay > plan.lead
    assert plan.end - plan.watermark_delay >= plan.last.floor("h") + pd.Timedelta(hours=1)
    assert plan.ahead_rows > 2 * plan.batch_rows


def test_a_run_that_is_too_short_is_refused() -> None:
    check_count(500)
    with pytest.raises(ValueError, match="at least 500"):
        check_count(499)


def test_the_end_message_is_no_alert_and_no_flight() -> None:
    message = data.end_message(pd.Timestamp("2014-01-20", tz="UTC").to_pydatetime())
    assert message.properties == {"end": True}
    assert message.timestamp_ms == 1_390_176_000_000
