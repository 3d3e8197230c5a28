"""The start and end of a new query (or a batch read) at one node."""

from __future__ import annotations

from atalanta.spark.errors import DataLost, OptionError
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import (
    EARLIEST,
    EARLIEST_SEQUENCE,
    LATEST_SEQUENCE,
    ReadOptions,
    Start,
)
from atalanta.spark.read.members import Located


def initial_sequence(options: ReadOptions, located: Located, new: bool, gateway: Gateway) -> int:
    """Returns the sequence after which the query begins. Raises DataLost if `startingOffsets` names lost messages.

    It may be in the retained past.

    `latest` and `startingTimestamp` are for a group that is `new` at the node. A group that has lost its checkpoint
    goes on after the last message that it has acknowledged.
    """
    position = located.position
    earliest = earliest_of(located)
    if not new and not options.starting.sequences:
        return earliest
    if options.starting_timestamp_ms is not None:
        found = gateway.seek(options.queue, options.starting_timestamp_ms)
        return found if found < position.acked_through else max(earliest, found)
    named = sequence_of(options.starting, located)
    if named == EARLIEST_SEQUENCE:
        return earliest
    if named == LATEST_SEQUENCE:
        return position.last
    if named >= position.acked_through:
        return named
    oldest = min(gateway.seek(options.queue, 0), position.acked_through)  # of the retained messages
    if named < oldest and options.fail_on_data_loss:
        raise DataLost(
            f"startingOffsets: queue {options.queue} at node {position.node_id} "
            f"({located.server}) is acknowledged up to {position.acked_through} and can be read from {oldest} on, "
            f"so it cannot be read from {named}"
        )
    return max(named, oldest)


def earliest_of(located: Located) -> int:
    """Returns the sequence before the first message that can be read."""
    return max(located.position.first - 1, located.position.acked_through)


def check_skipped(options: ReadOptions, located: Located, start: int, gateway: Gateway) -> None:
    """Raises OptionError if the query skips messages without skipped=discard: its first batch acknowledges them."""
    earliest = earliest_of(located)
    if start <= earliest or options.discard_skipped:
        return
    position = located.position
    plan = gateway.plan(options.queue, position.incarnation, earliest, 1, -1)
    if plan.messages and plan.end <= start:
        raise OptionError(
            f"queue {options.queue} at node {position.node_id} ({located.server}) has messages up to "
            f"sequence {start}, before the start of this query. Set skipped=discard to acknowledge "
            "them unread, or startingOffsets=earliest to read them"
        )


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
