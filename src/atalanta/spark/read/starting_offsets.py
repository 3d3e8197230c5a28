"""The start and end of a new query (or a batch read) at one node."""

from __future__ import annotations

from atalanta.spark.errors import DataLost
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import (
    EARLIEST,
    EARLIEST_SEQUENCE,
    LATEST_SEQUENCE,
    ReadOptions,
    Start,
)
from atalanta.spark.read.members import Located


def initial_sequence(options: ReadOptions, located: Located, gateway: Gateway) -> int:
    """Returns the sequence after which the query begins. Raises DataLost if `startingOffsets` names lost messages."""
    position = located.position
    earliest = max(position.first - 1, position.acked_through)
    if options.starting_timestamp_ms is not None:
        return max(earliest, gateway.seek(options.queue, options.starting_timestamp_ms))
    named = sequence_of(options.starting, located)
    if named == EARLIEST_SEQUENCE:
        return earliest
    if named == LATEST_SEQUENCE:
        return position.last
    if named < position.acked_through and options.fail_on_data_loss:
        raise DataLost(
            f"startingOffsets: queue {options.queue} at node {position.node_id} "
            f"({located.server}) is acknowledged up to {position.acked_through}, "
            f"so it cannot be read from {named}"
        )
    return max(named, position.acked_through)


def final_sequence(options: ReadOptions, located: Located) -> int:
    """Returns the sequence at which a batch read ends."""
    named = sequence_of(options.ending, located)
    if named == LATEST_SEQUENCE:
        return located.position.last
    if named == EARLIEST_SEQUENCE:
        return located.position.first - 1
    return min(named, located.position.last)


def sequence_of(start: Start, located: Located) -> int:
    """Returns the option's value for this node: by its id, by its server, or the default."""
    default = EARLIEST_SEQUENCE if start.default == EARLIEST else LATEST_SEQUENCE
    by_server = start.sequences.get(located.server, default)
    return start.sequences.get(located.position.node_id, by_server)
