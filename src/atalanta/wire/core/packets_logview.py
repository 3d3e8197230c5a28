"""Packets of the log view, our own (docs/internals/protocols/log-view.md); chunks: packets_chunk.py."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_lost_range import LostRange
from atalanta.wire.core.types import (
    LOG_ACK_THROUGH,
    LOG_ACK_THROUGH_RESP,
    LOG_COMMIT,
    LOG_LEASE,
    LOG_LEASE_RESP,
    LOG_LOST,
    LOG_LOST_RESP,
    LOG_PLAN,
    LOG_PLAN_RESP,
    LOG_POSITION,
    LOG_POSITION_RESP,
    LOG_READ,
    LOG_SEEK,
    LOG_SEEK_RESP,
)


class LogPosition(Packet):
    """LOG_POSITION."""

    type: ClassVar[int] = LOG_POSITION
    layout: ClassVar[str] = "correlation i64, queue ss"

    def __init__(
        self,
        correlation: int,
        queue: str,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue


class LogPositionResponse(Packet):
    """LOG_POSITION_RESP.

    `first`: lowest live durable sequence or last + 1; `last`: highest one ever shown.
    """

    type: ClassVar[int] = LOG_POSITION_RESP
    layout: ClassVar[str] = (
        "correlation i64, node_id ss, incarnation ss, first i64, last i64, messages i64, bytes "
        "i64, acked_through i64, first_timestamp_ms i64, last_timestamp_ms i64"
    )

    def __init__(
        self,
        correlation: int,
        node_id: str,
        incarnation: str,
        first: int,
        last: int,
        messages: int,
        bytes: int,
        acked_through: int,
        first_timestamp_ms: int,
        last_timestamp_ms: int,
    ) -> None:
        self.correlation: int = correlation
        self.node_id: str = node_id
        self.incarnation: str = incarnation
        self.first: int = first
        self.last: int = last
        self.messages: int = messages
        self.bytes: int = bytes
        self.acked_through: int = acked_through
        self.first_timestamp_ms: int = first_timestamp_ms
        self.last_timestamp_ms: int = last_timestamp_ms


class LogPlan(Packet):
    """LOG_PLAN. How far (start, end] reaches within the limits; -1: no limit."""

    type: ClassVar[int] = LOG_PLAN
    layout: ClassVar[str] = (
        "correlation i64, queue ss, incarnation ss, start i64, max_messages i64, max_bytes i64"
    )

    def __init__(
        self,
        correlation: int,
        queue: str,
        incarnation: str,
        start: int,
        max_messages: int = -1,
        max_bytes: int = -1,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue
        self.incarnation: str = incarnation
        self.start: int = start
        self.max_messages: int = max_messages
        self.max_bytes: int = max_bytes


class LogPlanResponse(Packet):
    """LOG_PLAN_RESP."""

    type: ClassVar[int] = LOG_PLAN_RESP
    layout: ClassVar[str] = "correlation i64, end i64, messages i64, bytes i64"

    def __init__(
        self,
        correlation: int,
        end: int,
        messages: int,
        bytes: int,
    ) -> None:
        self.correlation: int = correlation
        self.end: int = end
        self.messages: int = messages
        self.bytes: int = bytes


class LogRead(Packet):
    """LOG_READ. One bounded chunk of (start, end]."""

    type: ClassVar[int] = LOG_READ
    layout: ClassVar[str] = (
        "correlation i64, queue ss, incarnation ss, start i64, end i64, max_bytes i32, selector ss?"
    )

    def __init__(
        self,
        correlation: int,
        queue: str,
        incarnation: str,
        start: int,
        end: int,
        max_bytes: int,
        selector: str | None = None,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue
        self.incarnation: str = incarnation
        self.start: int = start
        self.end: int = end
        self.max_bytes: int = max_bytes
        self.selector: str | None = selector


class LogAckThrough(Packet):
    """LOG_ACK_THROUGH. Idempotent, durable before the answer; code 200 on an old epoch."""

    type: ClassVar[int] = LOG_ACK_THROUGH
    layout: ClassVar[str] = (
        "correlation i64, queue ss, incarnation ss, group ss, epoch i64, end i64"
    )

    def __init__(
        self,
        correlation: int,
        queue: str,
        incarnation: str,
        group: str,
        epoch: int,
        end: int,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue
        self.incarnation: str = incarnation
        self.group: str = group
        self.epoch: int = epoch
        self.end: int = end


class LogAckThroughResponse(Packet):
    """LOG_ACK_THROUGH_RESP."""

    type: ClassVar[int] = LOG_ACK_THROUGH_RESP
    layout: ClassVar[str] = "correlation i64, acked_messages i64"

    def __init__(
        self,
        correlation: int,
        acked_messages: int,
    ) -> None:
        self.correlation: int = correlation
        self.acked_messages: int = acked_messages


class LogLease(Packet):
    """LOG_LEASE.

    Epoch 0 takes over with a new epoch, else renews that one; a ttl of 0 gives it back.
    """

    type: ClassVar[int] = LOG_LEASE
    layout: ClassVar[str] = "correlation i64, queue ss, group ss, owner ss, ttl_ms i64, epoch i64"

    def __init__(
        self,
        correlation: int,
        queue: str,
        group: str,
        owner: str,
        ttl_ms: int,
        epoch: int = 0,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue
        self.group: str = group
        self.owner: str = owner
        self.ttl_ms: int = ttl_ms
        self.epoch: int = epoch


class LogLeaseResponse(Packet):
    """LOG_LEASE_RESP."""

    type: ClassVar[int] = LOG_LEASE_RESP
    layout: ClassVar[str] = "correlation i64, epoch i64, incarnation ss, acked_through i64"

    def __init__(
        self,
        correlation: int,
        epoch: int,
        incarnation: str,
        acked_through: int,
    ) -> None:
        self.correlation: int = correlation
        self.epoch: int = epoch
        self.incarnation: str = incarnation
        self.acked_through: int = acked_through


class LogLost(Packet):
    """LOG_LOST.

    Which parts of (start, end] went without being acknowledged through the log view.
    """

    type: ClassVar[int] = LOG_LOST
    layout: ClassVar[str] = "correlation i64, queue ss, incarnation ss, start i64, end i64"

    def __init__(
        self,
        correlation: int,
        queue: str,
        incarnation: str,
        start: int,
        end: int,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue
        self.incarnation: str = incarnation
        self.start: int = start
        self.end: int = end


class LogLostResponse(Packet):
    """LOG_LOST_RESP."""

    type: ClassVar[int] = LOG_LOST_RESP
    layout: ClassVar[str] = "correlation i64, ranges lost*"

    def __init__(
        self,
        correlation: int,
        ranges: list[LostRange],
    ) -> None:
        self.correlation: int = correlation
        self.ranges: list[LostRange] = ranges


class LogSeek(Packet):
    """LOG_SEEK."""

    type: ClassVar[int] = LOG_SEEK
    layout: ClassVar[str] = "correlation i64, queue ss, timestamp_ms i64"

    def __init__(
        self,
        correlation: int,
        queue: str,
        timestamp_ms: int,
    ) -> None:
        self.correlation: int = correlation
        self.queue: str = queue
        self.timestamp_ms: int = timestamp_ms


class LogSeekResponse(Packet):
    """LOG_SEEK_RESP.

    `sequence` lies before the first live message with that timestamp or a later one.
    """

    type: ClassVar[int] = LOG_SEEK_RESP
    layout: ClassVar[str] = "correlation i64, sequence i64"

    def __init__(
        self,
        correlation: int,
        sequence: int,
    ) -> None:
        self.correlation: int = correlation
        self.sequence: int = sequence


class LogCommit(Packet):
    """LOG_COMMIT.

    Commits the session's transaction under a durable sink id; answered by NullResponse.
    """

    type: ClassVar[int] = LOG_COMMIT
    layout: ClassVar[str] = "correlation i64, query str, batch i64, partition i32"

    def __init__(
        self,
        correlation: int,
        query: str,
        batch: int,
        partition: int,
    ) -> None:
        self.correlation: int = correlation
        self.query: str = query
        self.batch: int = batch
        self.partition: int = partition


PACKETS: Final[list[type[Packet]]] = [
    LogPosition,
    LogPositionResponse,
    LogPlan,
    LogPlanResponse,
    LogRead,
    LogAckThrough,
    LogAckThroughResponse,
    LogLease,
    LogLeaseResponse,
    LogLost,
    LogLostResponse,
    LogSeek,
    LogSeekResponse,
    LogCommit,
]
