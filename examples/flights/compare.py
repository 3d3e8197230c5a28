"""The comparison of the results with the oracle: every count, both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from examples.flights.data import COLUMNS, KEY
from examples.flights.oracle import WINDOW_FIGURES, WINDOW_KEY, Oracle

EXAMPLES = 5


@dataclass(frozen=True)
class Check:
    """One comparison. `lost` and `duplicated` count rows by key; `wrong` counts rows whose content differs.

    `detail`: one of many of its kind, which the table shows only if it is not fine.
    """

    name: str
    expected: int
    seen: int
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    examples: list[str] = field(default_factory=list)
    detail: bool = False

    @property
    def ok(self) -> bool:
        """Nothing lost, doubled or different."""
        return self.expected == self.seen and not (self.lost or self.duplicated or self.wrong)

    def as_dict(self) -> dict[str, Any]:
        """For report.json."""
        return asdict(self) | {"ok": self.ok}


def compare_rows(
    name: str, expected: pd.DataFrame, seen: pd.DataFrame, key: Sequence[str], columns: Sequence[str]
) -> Check:
    """By `key`: is each expected row there exactly once, no other, and equal in `columns`?"""
    keys = list(key)
    once = seen.drop_duplicates(keys)
    both = expected[[*keys, *columns]].merge(
        once[[*keys, *columns]], on=keys, how="outer", suffixes=("", " seen"), indicator=True
    )
    lost = both[both["_merge"] == "left_only"]
    unknown = both[both["_merge"] == "right_only"]
    common = both[both["_merge"] == "both"]
    differs = pd.Series(False, index=common.index)
    for column in columns:
        differs |= differing(common[column], common[f"{column} seen"])
    doubled = seen[seen.duplicated(keys)]
    examples = [
        f"{what}: {' '.join(str(value) for value in row)}"
        for what, rows in (("lost", lost), ("unknown", unknown), ("doubled", doubled), ("differs", common[differs]))
        for row in rows[keys].head(EXAMPLES).itertuples(index=False)
    ]
    wrong = len(unknown) + int(differs.sum())
    return Check(name, len(expected), len(seen), len(lost), len(doubled), wrong, examples)


def differing(left: pd.Series[Any], right: pd.Series[Any]) -> pd.Series[bool]:
    """Where two columns differ; missing equals missing."""
    unequal = (left != right).fillna(True).astype(bool)
    return unequal & ~(left.isna() & right.isna())


def compare_number(name: str, expected: int, seen: int, detail: bool = False) -> Check:
    """One number on both sides."""
    return Check(name, expected, seen, wrong=int(expected != seen), detail=detail)


def compare_archive(oracle: Oracle, archive: pd.DataFrame) -> list[Check]:
    """Every row with all its columns, then the sums and the rows by origin and month."""
    flights = oracle.flights
    checks = [compare_rows("archive: flights", flights, archive, [KEY], [*COLUMNS, "scheduled", "cancelled"])]
    for column in ("dep_delay", "arr_delay", "distance", "air_time"):
        name = f"archive: sum of {column}"
        checks.append(compare_number(name, int(flights[column].sum()), int(archive[column].sum())))
    checks.append(
        compare_number(
            "archive: cancelled", int(flights["cancelled"].sum()), int(archive["cancelled"].sum())
        )
    )
    checks += compare_groups("archive", flights, archive, ["origin"])
    checks += compare_groups("archive", flights, archive, ["month"])
    return checks


def compare_groups(
    name: str, expected: pd.DataFrame, seen: pd.DataFrame, key: Sequence[str]
) -> list[Check]:
    """The number of rows of each group that is on either side."""
    left = expected.groupby(list(key)).size()
    right = seen.groupby(list(key)).size()
    groups = sorted(set(left.index) | set(right.index))
    return [
        compare_number(f"{name}: {key[0]} {group}", int(left.get(group, 0)), int(right.get(group, 0)), True)
        for group in groups
    ]


def compare_windows(oracle: Oracle, windows: pd.DataFrame) -> list[Check]:
    """Every window with all its figures, then their number for each carrier and the sums of all."""
    checks = [compare_rows("windows: carrier and hour", oracle.windows, windows, WINDOW_KEY, WINDOW_FIGURES)]
    checks += compare_groups("windows", oracle.windows, windows, ["carrier"])
    for column in ("flights", "departed", "cancelled", "delay_sum"):
        seen = int(windows[column].sum())
        checks.append(compare_number(f"windows: sum of {column}", int(oracle.windows[column].sum()), seen))
    return checks


def compare_alerts(oracle: Oracle, alerts: pd.DataFrame) -> list[Check]:
    """Every alert with what it says; `alerts` has the columns key, carrier, origin, dest and dep_delay."""
    columns = ["carrier", "origin", "dest", "dep_delay"]
    checks = [compare_rows("alerts: flights", oracle.alerts, alerts, [KEY], columns)]
    return checks + compare_groups("alerts", oracle.alerts, alerts, ["origin"])
