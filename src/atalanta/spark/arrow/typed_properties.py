"""Properties with their Java types: the map from names to (type, value), for rows that are written again.

`type` is the Java type: boolean, byte, short, int, long, float, double, string, char, bytes or null. `value` is the
canonical text (property_columns.py). VARIANT also passes through Arrow (tried with Spark 4.2), but it has no char, and
Spark's own functions write its whole numbers in the smallest width.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from pyspark.sql.types import DataType, MapType, StringType, StructField, StructType

from atalanta.client.log import Byte, Char, Float, Int, PropertyValue, Short
from atalanta.spark.errors import SparkSourceError

TYPED_VALUE: Final = StructType([StructField("type", StringType()), StructField("value", StringType())])
TYPED_PROPERTIES: Final = MapType(StringType(), TYPED_VALUE)
# Type -> its class, and its number of bits.
WHOLE: Final[dict[str, tuple[type[int], int]]] = {
    "byte": (Byte, 8),
    "short": (Short, 16),
    "int": (Int, 32),
    "long": (int, 64),
}


def is_typed_map(kind: DataType) -> bool:
    """Returns whether a column of properties has this form; Spark's functions may change what may be null."""
    return (
        isinstance(kind, MapType)
        and isinstance(kind.keyType, StringType)
        and isinstance(kind.valueType, StructType)
        and [(one.name, one.dataType) for one in kind.valueType.fields]
        == [(one.name, one.dataType) for one in TYPED_VALUE.fields]
    )


def property_of(name: str, row: dict[str, Any]) -> PropertyValue:
    """Returns the value of a (type, value). SparkSourceError names the property."""
    kind, text = row.get("type"), row.get("value")
    if kind == "null":
        return None
    if kind is None or text is None:
        raise SparkSourceError(f"property {name}: type and value must not be null")
    try:
        return parsed(kind, text)
    except (ValueError, OverflowError, binascii.Error) as error:
        raise SparkSourceError(f"property {name}: {text!r} is not of type {kind}: {error}") from error


def parsed(kind: str, text: str) -> PropertyValue:
    """Parses the canonical text of a type. Raises ValueError."""
    if kind == "string":
        return text
    if kind in WHOLE:
        whole, bits = WHOLE[kind]
        number = int(text)
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise ValueError("out of range")
        return whole(number)
    if kind == "boolean":
        if text not in {"true", "false"}:
            raise ValueError("neither true nor false")
        return text == "true"
    if kind == "float":
        return Float(text)
    if kind == "double":
        return float(text)
    if kind == "bytes":
        return base64.b64decode(text, validate=True)
    if kind == "char":
        return Char(text)
    raise ValueError("no such type")
