"""Packets of Atalanta's log view (docs/internals/protocols/log-view.md); chunks: wire/core/packets/log_chunk.py.

A node imports them with the first request: most nodes have no log view, and a start is faster without 24 dataclasses.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from atalanta.message.log_position import Position
from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.lost_range import LostRange
from atalanta.wire.core.packets.base import (
    BOOL,
    INT32,
    INT64,
    LOST_RANGES,
    NULLABLE_SIMPLE_STRING,
    POSITION,
    REST,
    SIMPLE_STRING,
    SIMPLE_STRINGS,
    Packet,
    numbered,
    wire,
)


@mutable_dataclass(eq=False, repr=False)
class LogQueuePacket(Packet):
    """A request about one queue; "" is any incarnation."""

    correlation: int = field(metadata=wire(INT64))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    incarnation: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class LogReaderPacket(LogQueuePacket):
    """A request of the reader that has the lease with this epoch."""

    group: str = field(metadata=wire(SIMPLE_STRING))
    epoch: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogPosition(Packet):
    """LOG_POSITION."""

    correlation: int = field(metadata=wire(INT64))
    queue: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class LogPositionResponse(Packet):
    """LOG_POSITION_RESP."""

    correlation: int = field(metadata=wire(INT64))
    position: Position = field(metadata=wire(POSITION))


@mutable_dataclass(eq=False, repr=False)
class LogPlan(LogQueuePacket):
    """LOG_PLAN: asks how far (start, end] reaches within the limits; -1 is no limit."""

    start: int = field(metadata=wire(INT64))
    max_messages: int = field(default=-1, metadata=wire(INT64))
    max_bytes: int = field(default=-1, metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogPlanResponse(Packet):
    """LOG_PLAN_RESP."""

    correlation: int = field(metadata=wire(INT64))
    end: int = field(metadata=wire(INT64))
    messages: int = field(metadata=wire(INT64))
    bytes: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogRead(LogQueuePacket):
    """LOG_READ: asks for one bounded chunk of (start, end].

    A negative `max_bytes` asks for as many bytes of messages without their bodies; an older node sends the bodies.
    """

    start: int = field(metadata=wire(INT64))
    end: int = field(metadata=wire(INT64))
    max_bytes: int = field(metadata=wire(INT32))
    selector: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class LogReadColumns(LogRead):
    """LOG_READ_COLUMNS: LOG_READ that asks for LOG_READ_COLUMNS_RESP; a node answers with LOG_READ_RESP if it must.

    Only for nodes that announce it (LOG_COLUMNS).
    """


@mutable_dataclass(eq=False, repr=False)
class LogReadLargeResponse(Packet):
    """LOG_READ_LARGE_RESP: the answer to LOG_READ if the next message has a body to be read in pieces (LOG_BODY).

    `entry` is encoded as in LOG_READ_RESP, with an empty body. `size` and `crc` (crc32c; -1: not known) are those of
    the body. The reader goes on from `next` until `last`.
    """

    correlation: int = field(metadata=wire(INT64))
    next: int = field(metadata=wire(INT64))
    last: bool = field(metadata=wire(BOOL))
    size: int = field(metadata=wire(INT64))
    crc: int = field(metadata=wire(INT64))
    entry: bytes = field(metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class LogBody(LogQueuePacket):
    """LOG_BODY: asks for at most `max_bytes` of a message's body, from `offset`; code 202 if it left the queue."""

    sequence: int = field(metadata=wire(INT64))
    offset: int = field(metadata=wire(INT64))
    max_bytes: int = field(metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class LogBodyResponse(Packet):
    """LOG_BODY_RESP: a piece of a body; no bytes at its end, which comes too early in a damaged file."""

    correlation: int = field(metadata=wire(INT64))
    data: bytes = field(metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class LogAckThrough(LogReaderPacket):
    """LOG_ACK_THROUGH: idempotent, durable before the answer; code 200 for an old epoch."""

    end: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogAckThroughResponse(Packet):
    """LOG_ACK_THROUGH_RESP."""

    correlation: int = field(metadata=wire(INT64))
    acked_messages: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogLease(Packet):
    """LOG_LEASE.

    Epoch 0 takes the lease over with a new epoch; any other renews that epoch. A ttl of 0 releases the lease.
    """

    correlation: int = field(metadata=wire(INT64))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    group: str = field(metadata=wire(SIMPLE_STRING))
    owner: str = field(metadata=wire(SIMPLE_STRING))
    ttl_ms: int = field(metadata=wire(INT64))
    epoch: int = field(default=0, metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogLeaseResponse(Packet):
    """LOG_LEASE_RESP.

    `acked_through` is negative for a group that has not acknowledged yet: -1 - the queue's acknowledged sequence.
    Older clients do not use it.
    """

    correlation: int = field(metadata=wire(INT64))
    epoch: int = field(metadata=wire(INT64))
    incarnation: str = field(metadata=wire(SIMPLE_STRING))
    acked_through: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogLost(LogQueuePacket):
    """LOG_LOST.

    Asks for the parts of (start, end] that were removed without an acknowledgement through the log view.
    """

    start: int = field(metadata=wire(INT64))
    end: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogLostResponse(Packet):
    """LOG_LOST_RESP."""

    correlation: int = field(metadata=wire(INT64))
    ranges: list[LostRange] = field(metadata=wire(LOST_RANGES))


@mutable_dataclass(eq=False, repr=False)
class LogSeek(Packet):
    """LOG_SEEK."""

    correlation: int = field(metadata=wire(INT64))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    timestamp_ms: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogSeekResponse(Packet):
    """LOG_SEEK_RESP.

    `sequence` is before the first live message with that timestamp or a later one.
    """

    correlation: int = field(metadata=wire(INT64))
    sequence: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogQueues(Packet):
    """LOG_QUEUES: asks for the queues whose names match, with the node's `<wildcard-addresses>` (`orders.#`)."""

    correlation: int = field(metadata=wire(INT64))
    pattern: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class LogQueuesResponse(Packet):
    """LOG_QUEUES_RESP: the names, sorted, of queues with a log view that the user may consume."""

    correlation: int = field(metadata=wire(INT64))
    names: list[str] = field(metadata=wire(SIMPLE_STRINGS))


@mutable_dataclass(eq=False, repr=False)
class LogRetain(LogReaderPacket):
    """LOG_RETAIN: sets how long acknowledged messages stay, and where a replay of them begins; under a lease's epoch.

    Limits: ms and bytes, 0 is none, both 0 release all that is retained; both -1 leave them. `replay_from`: the
    sequence to go back to, -1 none; code 202 if it is not retained.
    """

    age_ms: int = field(default=-1, metadata=wire(INT64))
    max_bytes: int = field(default=-1, metadata=wire(INT64))
    replay_from: int = field(default=-1, metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogRetainResponse(Packet):
    """LOG_RETAIN_RESP: durable. `released_through`: the sequence behind which messages can be read (again)."""

    correlation: int = field(metadata=wire(INT64))
    released_through: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class LogDeadLetter(LogReaderPacket):
    """LOG_DEAD_LETTER: moves the message of a sequence to the dead-letter address, with the reason `why`.

    Idempotent, durable before the answer; code 200 for an old epoch, 104 without a queue for dead letters.
    """

    sequence: int = field(metadata=wire(INT64))
    why: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class LogDeadLetterResponse(Packet):
    """LOG_DEAD_LETTER_RESP."""

    correlation: int = field(metadata=wire(INT64))


PACKETS: Final = numbered(
    {
        packet_types.LOG_POSITION: LogPosition,
        packet_types.LOG_POSITION_RESP: LogPositionResponse,
        packet_types.LOG_PLAN: LogPlan,
        packet_types.LOG_PLAN_RESP: LogPlanResponse,
        packet_types.LOG_READ: LogRead,
        packet_types.LOG_READ_COLUMNS: LogReadColumns,
        packet_types.LOG_ACK_THROUGH: LogAckThrough,
        packet_types.LOG_ACK_THROUGH_RESP: LogAckThroughResponse,
        packet_types.LOG_LEASE: LogLease,
        packet_types.LOG_LEASE_RESP: LogLeaseResponse,
        packet_types.LOG_LOST: LogLost,
        packet_types.LOG_LOST_RESP: LogLostResponse,
        packet_types.LOG_SEEK: LogSeek,
        packet_types.LOG_SEEK_RESP: LogSeekResponse,
        packet_types.LOG_READ_LARGE_RESP: LogReadLargeResponse,
        packet_types.LOG_BODY: LogBody,
        packet_types.LOG_BODY_RESP: LogBodyResponse,
        packet_types.LOG_QUEUES: LogQueues,
        packet_types.LOG_QUEUES_RESP: LogQueuesResponse,
        packet_types.LOG_RETAIN: LogRetain,
        packet_types.LOG_RETAIN_RESP: LogRetainResponse,
        packet_types.LOG_DEAD_LETTER: LogDeadLetter,
        packet_types.LOG_DEAD_LETTER_RESP: LogDeadLetterResponse,
    }
)
