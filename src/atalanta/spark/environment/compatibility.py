"""Names of PySpark that its versions 4.0 and 4.1 lack.

Spark 4.2 passes the start and a limit to a stream's `latestOffset` (admission control) and tells the source of
Trigger.AvailableNow; older_stream_reader.py serves the versions that do neither. Spark 4.1 has writers of Arrow
batches for streams; 4.0 has them for batches only, but gives Arrow batches to a stream's writer of that type.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import datasource
from pyspark.sql.pandas import types as pandas_types

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
    from pyspark.sql.types import StructType

    ADMISSION_CONTROL: bool

    def to_arrow_schema(schema: StructType) -> pa.Schema: ...

else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        ADMISSION_CONTROL = True
    except ImportError:
        from atalanta.spark.environment.read_limits import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )

        ADMISSION_CONTROL = False

    # Timestamps are instants in UTC; 4.0 and 4.1 have no other zone.
    if "timezone" in inspect.signature(pandas_types.to_arrow_schema).parameters:
        to_arrow_schema = partial(pandas_types.to_arrow_schema, timezone="UTC")
    else:
        to_arrow_schema = pandas_types.to_arrow_schema

    if hasattr(datasource, "DataSourceStreamArrowWriter"):
        DataSourceStreamArrowWriter = datasource.DataSourceStreamArrowWriter
    else:

        class DataSourceStreamArrowWriter(
            datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter
        ):
            """The stream's writer of Arrow batches in Spark 4.0."""


__all__ = [
    "ADMISSION_CONTROL",
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "to_arrow_schema",
]
