"""The key of a row: the last-value property of its message, so that a queue keeps the newest row of each key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from atalanta.spark.errors import OptionError, SparkSourceError

LAST_VALUE: Final = "_AMQ_LVQ_NAME"
# Types whose values have one text each; floats do not.
KEY_TYPES: Final = (
    StringType, BooleanType, ByteType, ShortType, IntegerType, LongType, DateType, TimestampType,
)  # fmt: skip


def check_key_columns(names: Sequence[str], schema: StructType) -> None:
    """Checks the option keyColumns. Raises OptionError, which names the column."""
    types = {field.name: field.dataType for field in schema.fields}
    for name in names:
        kind = types.get(name)
        if kind is None:
            raise OptionError(f"option keyColumns: there is no column {name}")
        if not isinstance(kind, KEY_TYPES):
            raise OptionError(
                f"option keyColumns: column {name} cannot be {kind.simpleString()}: cast it to string"
            )


def key_of(row: dict[str, Any], names: Sequence[str]) -> str:
    """Returns the value of a single string column itself, else a JSON array of the values. A null is refused."""
    values = [row[name] for name in names]
    for name, value in zip(names, values, strict=True):
        if value is None:
            raise SparkSourceError(
                f"column {name} of keyColumns is null in a row: give it a value (coalesce), "
                "since a message without a key is never replaced"
            )
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(values, default=str, ensure_ascii=False, separators=(",", ":"))
