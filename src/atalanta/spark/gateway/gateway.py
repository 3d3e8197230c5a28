"""The narrow, synchronous side of one node that the Spark source and sink use.

`Gateway` is what they see, `CoreGateway` (spark/gateway/core_gateway.py) what talks to real nodes; tests put a
fake in its place. Ranges are (start, end], sequences are per queue and node (log view,
docs/internals/protocols/log-view.md). Methods raise the errors of errors.py, NodeUnavailable whenever the
connection is gone: the caller then makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from atalanta.client.log_entries import PropertyValue


@dataclass(frozen=True)
class Member:
    """A node of the cluster as the topology tells it; `server` is host:port."""

    node_id: str
    server: str


@dataclass(frozen=True)
class Position:
    """Where a queue stands; `first` is the lowest live sequence (last + 1 if none)."""

    node_id: str
    incarnation: str
    first: int
    last: int
    messages: int
    bytes: int
    acked_through: int


@dataclass(frozen=True)
class Plan:
    """The range from a start up to `end` holds `messages` of `bytes` in all."""

    end: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Chunk:
    """A part of a range in order, `count` messages as they travelled; go on at `next` unless `last`."""

    next: int
    last: bool
    count: int
    entries: bytes


@dataclass(frozen=True)
class LeaseGrant:
    """The epoch under which a group may acknowledge."""

    epoch: int
    incarnation: str
    acked_through: int


@dataclass(frozen=True)
class LostRange:
    """Sequences (start..end, both included) that left the queue otherwise than by `ack_through`."""

    start: int
    end: int
    why: str


@dataclass
class OutMessage:
    """One message to send. Body and text exclude each other; times in ms, timestamp None: now."""

    address: str
    routing: str | None
    body: bytes | None
    text: str | None
    kind: int
    durable: bool
    priority: int
    expiration_ms: int
    timestamp_ms: int | None
    properties: dict[str, PropertyValue]
    group_id: str | None
    correlation_id: str | None
    reply_to: str | None
    duplicate_id: str | None


@dataclass(frozen=True)
class Credentials:
    """How to log in, and how long connecting and one request may take (s); `tls`: parameters of the URL."""

    user: str | None
    password: str | None = field(repr=False)
    connect_timeout_s: float
    request_timeout_s: float
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)


class Gateway(Protocol):
    """One connection to one node. Calls from several threads are answered one after another."""

    def topology(self) -> Sequence[Member]:
        """Every node of the cluster this one knows of, itself included."""

    def position(self, queue: str) -> Position: ...

    def plan(
        self, queue: str, incarnation: str, start: int, max_messages: int, max_bytes: int
    ) -> Plan:
        """The longest range from `start` within the limits (-1: none), one message at least."""

    def read(
        self,
        queue: str,
        incarnation: str,
        start: int,
        end: int,
        max_bytes: int,
        selector: str | None,
    ) -> Iterator[Chunk]:
        """(start, end] in pieces, up to one that is the last."""
        ...

    def ack_through(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        """Messages acknowledged; durable when it returns, and a repeat does no harm."""

    def lease(self, queue: str, group: str, owner: str, ttl_ms: int, epoch: int) -> LeaseGrant:
        """Epoch 0 takes over with a new epoch, any other renews that one."""

    def lost_ranges(
        self, queue: str, incarnation: str, start: int, end: int
    ) -> Sequence[LostRange]: ...

    def seek(self, queue: str, timestamp_ms: int) -> int:
        """The sequence before the first live message that is not older."""

    def send_transaction(
        self, messages: Sequence[OutMessage], query: str, batch: int, partition: int
    ) -> bool:
        """All or nothing, at most once for an id; False: it was there already."""

    def close(self) -> None: ...


Connector = Callable[[str, Credentials], Gateway]
"""Server (host:port or URL) and credentials -> a connection. NodeUnavailable, LoginRefused."""
