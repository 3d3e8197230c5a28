"""Dead letters and expired messages as columns, and their way back to where they came from.

Both functions take rows of the source, of a batch read or of a stream. Artemis keeps the origin in properties
(`_AMQ_ORIG_…`, `_AMQ_ACTUAL_EXPIRY`). Only the latest move is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from atalanta.spark.arrow.property_columns import ORIGIN_PREFIXES
from atalanta.spark.arrow.schema import ALL_COLUMNS
from atalanta.spark.arrow.typed_properties import is_typed_map
from atalanta.spark.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Columns that the message keeps when it is sent again.
SENT_AGAIN: Final = tuple(each.name for each in ALL_COLUMNS if each.kept)


def view(frame: DataFrame) -> DataFrame:
    """Returns the rows with their origin: original_address, …_queue, …_routing, …_message_id, reason, expired_at.

    `reason`: expired, undecodable (by a stream with undecodable=dead-letter: why is in the property _AMQ_ORIG_REASON),
    undelivered (too many attempts; a move by an operator looks the same), or sent (here, directly).
    OptionError without the column properties.
    """
    routing = property_text(frame, "_AMQ_ORIG_ROUTING_TYPE")
    origin = property_text(frame, "_AMQ_ORIG_ADDRESS")
    expiry = property_text(frame, "_AMQ_ACTUAL_EXPIRY").cast("bigint")
    return frame.withColumns(
        {
            "original_address": origin,
            "original_queue": property_text(frame, "_AMQ_ORIG_QUEUE"),
            "original_routing": F.when(routing == "0", "multicast").when(routing == "1", "anycast"),
            "original_message_id": property_text(frame, "_AMQ_ORIG_MESSAGE_ID").cast("bigint"),
            "reason": F.when(expiry.isNotNull(), "expired")
            .when(property_text(frame, "_AMQ_ORIG_REASON").isNotNull(), "undecodable")
            .when(origin.isNotNull(), "undelivered")
            .otherwise("sent"),
            "expired_at": F.timestamp_millis(expiry),
        }
    )


def redrive(frame: DataFrame, to_queue: bool = False) -> DataFrame:
    """Returns rows for the sink that send each message to its original address, without the marks of a dead letter.

    `to_queue`: only to the original queue (`address::queue`), so that other queues of a multicast address do not get
    the message again. A row without an origin has no address: the sink sends it to its option `address`, if set.
    """
    found = view(frame)
    address, routing = F.col("original_address"), F.col("original_routing")
    if to_queue:
        both = F.concat(address, F.lit("::"), F.col("original_queue"))
        address, routing = F.coalesce(both, address), F.lit(None).cast("string")
    origin, expiry = ORIGIN_PREFIXES
    properties = F.map_filter(
        "properties", lambda name, _: ~(name.startswith(origin) | name.startswith(expiry))
    )
    return found.select(
        address.alias("address"),
        routing.alias("routing"),
        properties.alias("properties"),
        *(name for name in SENT_AGAIN if name in frame.columns),
    )


def property_text(frame: DataFrame, name: str) -> Column:
    """Returns a property as text, from either form of the map."""
    if "properties" not in frame.columns:
        raise OptionError("dead letters need the column properties: do not set includeHeaders=false")
    value = F.col("properties")[name]
    return value["value"] if is_typed_map(frame.schema["properties"].dataType) else value
