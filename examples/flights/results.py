"""The results as they lie in the folder of the run, read without Spark: as any other reader would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset as dataset

from examples.flights.oracle import WINDOW_KEY

ARCHIVE = "archive"
DELAYS = "delays"
ALERTS = "alerts.json"
REPORT = "report.json"


def read_archive(out: Path) -> pd.DataFrame:
    """The archive, one row a flight."""
    archive = read_parquet(out / ARCHIVE)
    return archive.assign(scheduled=in_utc(archive["scheduled"]))


def read_windows(out: Path) -> pd.DataFrame:
    """The windows, one row a carrier and hour."""
    windows = read_parquet(out / DELAYS)
    return windows.assign(hour=in_utc(windows["hour"])).sort_values(WINDOW_KEY, ignore_index=True)


def in_utc(times: pd.Series[Any]) -> pd.Series[pd.Timestamp]:
    """The type of time that the oracle has."""
    return pd.to_datetime(times, utc=True).astype("datetime64[ns, UTC]")


def read_parquet(folder: Path) -> pd.DataFrame:
    """All Parquet files below `folder`, partition columns included; integers with gaps stay integers."""
    open_dataset: Any = dataset.dataset
    table: Any = open_dataset(str(folder), format="parquet", partitioning="hive").to_table()
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable)
    return frame


def nullable(arrow_type: Any) -> Any:
    """pandas' nullable type for Arrow's integers."""
    return {"int32": pd.Int32Dtype(), "int64": pd.Int64Dtype()}.get(str(arrow_type))


def read_alerts(out: Path) -> pd.DataFrame:
    """The alerts as the alerting service wrote them."""
    document = json.loads((out / ALERTS).read_text(encoding="utf-8"))
    alerts = pd.DataFrame(document["alerts"], columns=["key", "carrier", "origin", "dest", "dep_delay"])
    return alerts.astype({"dep_delay": "Int32"})


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")
    partial.replace(path)
