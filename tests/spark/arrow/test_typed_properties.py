"""Properties keep their Java types from the source to the sink."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, MapType, StringType, StructType

from atalanta.client.log import Byte, Char, Float, Int, PropertyValue, Short
from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.arrow.schema import PROPERTIES, check_schema, default_schema
from atalanta.spark.arrow.typed_properties import TYPED_PROPERTIES
from atalanta.spark.errors import OptionError, SparkSourceError
from atalanta.spark.options import write_options
from atalanta.spark.write.rows import RowReader
from tests.spark.fake_node import chunk_of, message

VALUES: dict[str, PropertyValue] = {
    "yes": True, "byte": Byte(-5), "short": Short(300), "int": Int(7), "long": 7,
    "float": Float(0.1), "double": 0.1, "inf": Float("-inf"), "text": "7", "letter": Char("x"),
    "bytes": b"\x00\xff", "nothing": None,
}  # fmt: skip


def rows_of(schema: StructType, *encoded: bytes) -> pa.RecordBatch:
    count, entries = chunk_of((at, one, 1) for at, one in enumerate(encoded))
    return BatchBuilder(schema, "q", "node-1").build(count, entries)


def sink(schema: StructType) -> RowReader:
    return RowReader(write_options({"servers": "a:1", "address": "out"}), schema)


def test_what_is_read_is_written_with_the_same_types() -> None:
    schema = default_schema(True, typed=True)
    check_schema(schema)
    batch = rows_of(schema, message(b"x", VALUES), message(b"y"))
    properties = batch.column(PROPERTIES).to_pylist(maps_as_pydicts="strict")[0]
    assert properties["byte"] == {"type": "byte", "value": "-5"}
    assert properties["long"] == {"type": "long", "value": "7"}
    first, second = sink(schema).messages(batch)
    float_of = first.properties["float"]
    assert float_of == pytest.approx(0.1)
    assert {name: (type(value), str(value)) for name, value in first.properties.items()} == {
        name: (type(value), str(value)) for name, value in VALUES.items()
    }
    assert second.properties == {}


def test_messages_without_properties_are_read() -> None:
    batch = rows_of(default_schema(True, typed=True), message(b"x"))
    assert batch.column(PROPERTIES).to_pylist() == [[]]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("byte", "128", "property n: '128' is not of type byte: out of range"),
        ("int", "one", "property n: 'one' is not of type int"),
        ("decimal", "1", "property n: '1' is not of type decimal: no such type"),
        ("boolean", "yes", "neither true nor false"),
        ("int", None, "property n: type and value must not be null"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_an_error(
    kind: str, value: str | None, said: str
) -> None:
    schema = StructType().add("body", BinaryType()).add(PROPERTIES, TYPED_PROPERTIES)
    row = {"body": [b"x"], PROPERTIES: [[("n", {"type": kind, "value": value})]]}
    batch = pa.RecordBatch.from_pydict(row, to_arrow_schema(schema))
    with pytest.raises(SparkSourceError, match=said):
        list(sink(schema).messages(batch))


def test_another_struct_is_refused() -> None:
    other = MapType(StringType(), StructType().add("kind", StringType()))
    with pytest.raises(OptionError, match="column properties must map strings"):
        sink(StructType().add("body", BinaryType()).add(PROPERTIES, other))
