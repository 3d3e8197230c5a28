"""The oracle's numbers, and what the comparison notices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from examples.flights import compare, results
from examples.flights.oracle import Oracle, expected
from examples.flights.report import Report


def failed(checks: list[compare.Check]) -> dict[str, compare.Check]:
    return {check.name: check for check in checks if not check.ok}


def with_value(rows: pd.DataFrame, column: str, value: object) -> pd.DataFrame:
    """A copy with one other value, in the eighth row."""
    changed: Any = rows.copy()
    changed.loc[7, column] = value
    assert isinstance(changed, pd.DataFrame)
    return changed


def test_the_oracle_of_all_flights(flights: pd.DataFrame) -> None:
    oracle = expected(flights)
    assert len(oracle.flights) == 336_776
    assert len(oracle.alerts) == 26_581
    assert oracle.alerts_by_origin() == {"EWR": 10_940, "JFK": 8_401, "LGA": 7_240}
    assert len(oracle.windows) == 60_142
    assert oracle.windows["flights"].sum() == 336_776
    assert oracle.windows["departed"].sum() == 328_521
    assert oracle.windows["delay_sum"].sum() == 4_152_200


def test_an_archive_that_is_right_passes(small: Oracle) -> None:
    shuffled = small.flights.sample(frac=1.0, random_state=1)
    assert not failed(compare.compare_archive(small, shuffled))


def test_a_lost_row_is_noticed(small: Oracle) -> None:
    wrong = failed(compare.compare_archive(small, small.flights.drop(index=7)))
    check = wrong["archive: flights"]
    assert (check.lost, check.duplicated, check.seen) == (1, 0, 2_999)
    assert check.examples == [f"lost: {small.flights['key'].iloc[7]}"]
    assert "archive: month 1" in wrong


def test_a_doubled_row_is_noticed(small: Oracle) -> None:
    doubled = pd.concat([small.flights, small.flights.iloc[[7]]])
    check = failed(compare.compare_archive(small, doubled))["archive: flights"]
    assert (check.lost, check.duplicated, check.seen) == (0, 1, 3_001)


def test_one_lost_and_one_doubled_do_not_cancel_out(small: Oracle) -> None:
    mixed = pd.concat([small.flights.drop(index=7), small.flights.iloc[[8]]])
    check = failed(compare.compare_archive(small, mixed))["archive: flights"]
    assert (check.lost, check.duplicated, check.seen, check.ok) == (1, 1, 3_000, False)


@pytest.mark.parametrize(("column", "value"), [("dep_delay", 999), ("tailnum", "N0"), ("arr_time", pd.NA)])
def test_a_changed_value_is_noticed(small: Oracle, column: str, value: object) -> None:
    changed = with_value(small.flights, column, value)
    assert failed(compare.compare_archive(small, changed))["archive: flights"].wrong == 1


def test_an_unknown_row_is_noticed(small: Oracle) -> None:
    strange = small.flights.iloc[[7]].assign(key="nobody")
    check = failed(compare.compare_archive(small, pd.concat([small.flights, strange])))["archive: flights"]
    assert (check.lost, check.duplicated, check.wrong) == (0, 0, 1)


def test_windows(small: Oracle) -> None:
    assert not failed(compare.compare_windows(small, small.windows))
    twice = pd.concat([small.windows, small.windows.iloc[[3]]])
    assert failed(compare.compare_windows(small, twice))["windows: carrier and hour"].duplicated == 1
    fewer = with_value(small.windows, "flights", 0)
    wrong = failed(compare.compare_windows(small, fewer))
    assert wrong["windows: carrier and hour"].wrong == 1
    assert "windows: sum of flights" in wrong


def test_alerts_by_their_file(small: Oracle, tmp_path: Path) -> None:
    columns = ["key", "carrier", "origin", "dest", "dep_delay"]
    alerts = small.alerts[columns].astype({"dep_delay": "int64"}).to_dict("records")
    results.write_json(tmp_path / results.ALERTS, {"alerts": alerts})
    assert not failed(compare.compare_alerts(small, results.read_alerts(tmp_path)))
    results.write_json(tmp_path / results.ALERTS, {"alerts": alerts[1:]})
    assert failed(compare.compare_alerts(small, results.read_alerts(tmp_path)))["alerts: flights"].lost == 1


def test_a_report_is_fine_only_if_everything_agrees() -> None:
    good, bad = compare.compare_number("a: b", 1, 1), compare.compare_number("a: b", 1, 2)
    assert Report(10, [good]).ok
    assert not Report(10, [good, bad]).ok
    assert not Report(10, [good], dropped=1).ok
    assert not Report(10).ok
    assert Report(10, [good, bad]).as_dict()["checks"][1]["seen"] == 2


def test_parquet_is_read_as_it_was_meant(small: Oracle, tmp_path: Path) -> None:
    folder = tmp_path / results.ARCHIVE
    (folder / "_spark_metadata").mkdir(parents=True)
    (folder / "_spark_metadata" / "0").write_text("v1\n")
    for month, rows in small.flights.groupby("month"):
        (folder / f"month={month}").mkdir()
        rows.drop(columns="month").to_parquet(folder / f"month={month}" / "part-0.parquet")
    assert not failed(compare.compare_archive(small, results.read_archive(tmp_path)))
