"""The columns of the source and of the sink, and the selection of a query.

A schema given by the user (`spark.readStream.schema(…)`) may name any of these columns in any order, with their types.
Every other column is the typed property of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from atalanta.client.log import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT
from atalanta.spark.arrow.typed_properties import TYPED_PROPERTIES, is_typed_map
from atalanta.spark.errors import OptionError
from atalanta.spark.kafka_names import kafka_column

PROPERTIES: Final = "properties"

WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)


class Column(NamedTuple):
    """A column of the source, of the sink or of both.

    `read`: its type in the source, None if the source has none. `written`: its types in the sink; without one the sink
    takes the column and ignores it, so that rows of the source can be written unchanged. `kept`: a dead letter keeps it
    when it is sent again.
    """

    name: str
    read: DataType | None
    written: tuple[type[DataType], ...] = ()
    kept: bool = False


# In the order of the source. What fills a column of the source is in arrow/columns.py (COLUMN_MAKERS), what the sink
# makes of one in write/rows.py. `value` is Kafka's name of the payload.
ALL_COLUMNS: Final = (
    Column("body", BinaryType(), (BinaryType,), kept=True),
    Column("text", StringType(), (StringType,), kept=True),
    Column("value", None, (StringType, BinaryType)),
    Column("address", StringType(), (StringType,)),
    Column("routing", None, (StringType,)),
    Column("queue", StringType()),
    Column("node", StringType()),
    Column("sequence", LongType()),
    Column("message_id", LongType()),
    Column("timestamp", TimestampType(), (TimestampType,), kept=True),
    Column("expiration", TimestampType(), (TimestampType,), kept=True),
    Column("priority", IntegerType(), WHOLE, kept=True),
    Column("durable", BooleanType(), (BooleanType,), kept=True),
    Column("type", StringType(), (StringType,), kept=True),
    Column("group_id", StringType(), (StringType,), kept=True),
    Column("correlation_id", StringType(), (StringType,), kept=True),
    Column("reply_to", StringType(), (StringType,), kept=True),
    Column("duplicate_id", None, (StringType,)),
    Column("user_id", StringType()),
    Column(PROPERTIES, MapType(StringType(), StringType()), (MapType,)),
    Column("redelivered", BooleanType()),
    Column("error", StringType()),
)
COLUMNS: Final = StructType([StructField(each.name, each.read) for each in ALL_COLUMNS if each.read is not None])
TYPES: Final[dict[str, DataType]] = {field.name: field.dataType for field in COLUMNS.fields}
SINK_COLUMNS: Final = {each.name: each.written for each in ALL_COLUMNS if each.written}
SOURCE_ONLY: Final = frozenset({each.name for each in ALL_COLUMNS if not each.written})

# Allowed types of a property column.
PROPERTY_TYPES: Final = (
    StringType, BinaryType, BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType,
    DoubleType, TimestampType,
)  # fmt: skip

# CORE's message types under the names in the column `type`.
KINDS: Final = {
    DEFAULT: "default",
    OBJECT: "object",
    TEXT: "text",
    BYTES: "bytes",
    MAP: "map",
    STREAM: "stream",
    7: "embedded",
    8: "large-embedded",
}
KIND_NUMBERS: Final = {name: number for number, name in KINDS.items()}


def default_schema(
    include_headers: bool, columns: Sequence[str] = (), typed: bool = False
) -> StructType:
    """Returns every column, or `columns` alone; without headers (includeHeaders=false) all but the map of properties.

    `typed` (propertyTypes=typed): the map has the Java types. Raises OptionError, which names an unknown column.
    """
    properties = StructField(PROPERTIES, TYPED_PROPERTIES)
    if columns:
        return StructType(
            [
                properties if typed and name == PROPERTIES else StructField(name, type_of(name))
                for name in columns
            ]
        )
    return StructType(
        [
            properties if typed and field.name == PROPERTIES else field
            for field in COLUMNS.fields
            if include_headers or field.name != PROPERTIES
        ]
    )


def type_of(name: str) -> DataType:
    kind = TYPES.get(name)
    if kind is None:
        raise OptionError(
            f"option columns: there is no column {name}{kafka_column(name)} (known: {', '.join(TYPES)}). "
            "A property needs a type: name it in .schema(…)"
        )
    return kind


def check_schema(schema: StructType) -> None:
    """Checks a schema. Raises OptionError, which names a column of the wrong type."""
    for field in schema.fields:
        expected = TYPES.get(field.name)
        if expected is not None:
            if field.name == PROPERTIES and is_typed_map(field.dataType):
                continue
            if field.dataType != expected:
                raise OptionError(
                    f"column {field.name} is {expected.simpleString()}, "
                    f"not {field.dataType.simpleString()}"
                )
        elif not isinstance(field.dataType, PROPERTY_TYPES):
            raise OptionError(
                f"column {field.name} is the property of that name, which cannot be "
                f"{field.dataType.simpleString()}"
            )
