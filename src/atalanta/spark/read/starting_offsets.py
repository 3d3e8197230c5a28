"""The start and end of a new query (or a batch read) at one node."""

from __future__ import annotations

from collections.abc import Mapping

from atalanta.spark.errors import DataLost, OptionError
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.gateway.node_servers import is_same
from atalanta.spark.options import (
    EARLIEST,
    EARLIEST_SEQUENCE,
    LATEST_SEQUENCE,
    ReadOptions,
    Start,
    Times,
)
from atalanta.spark.read.members import Located, PolledMembers


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
    time_ms = time_of(options.starting_times, located)
    if time_ms is not None:
        found = gateway.seek(options.queue, time_ms)
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


def final_sequence(options: ReadOptions, located: Located, gateway: Gateway) -> int:
    """Returns the sequence at which a batch read ends: with a time before the first message of it or a later one."""
    time_ms = time_of(options.ending_times, located)
    if time_ms is not None:
        return min(gateway.seek(options.queue, time_ms), located.position.last)
    named = sequence_of(options.ending, located)
    if named == LATEST_SEQUENCE:
        return located.position.last
    if named == EARLIEST_SEQUENCE:
        return located.position.first - 1
    return min(named, located.position.last)


def sequence_of(start: Start, located: Located) -> int:
    """Returns the option's sequence for this node, or the default."""
    named = named_value(start.sequences, located)
    if named is None:
        return EARLIEST_SEQUENCE if start.default == EARLIEST else LATEST_SEQUENCE
    return named


def time_of(times: Times, located: Located) -> int | None:
    """Returns the option's time (ms) for this node, or the default."""
    named = named_value(times.nodes, located)
    return times.default_ms if named is None else named


def named_value(values: Mapping[str, int], located: Located) -> int | None:
    """Returns the value for this node: by its id, or by the host:port of any of its members; None without one."""
    if located.position.node_id in values:
        return values[located.position.node_id]
    servers = (located.server, *located.backups)
    return next((value for name, value in values.items() if any(is_same(name, each) for each in servers)), None)


def check_names(options: ReadOptions, members: PolledMembers) -> None:
    """Raises OptionError if an option has a value for a node that is not there: it would be without effect."""
    given = {
        "startingOffsets": options.starting.sequences,
        "startingTimestamp": options.starting_times.nodes,
        "endingOffsets": options.ending.sequences,
        "endingTimestamp": options.ending_times.nodes,
    }
    for option, values in given.items():
        unknown = sorted(name for name in values if name not in options.removed_nodes and not members.knows(name))
        if unknown:
            known = ", ".join(f"{link.node_id} ({link.server})" for link in members.links.values() if link.node_id)
            raise OptionError(f"option {option} names {', '.join(unknown)}, which is no node here: there are {known}")
