"""The synchronous interface of one node for the Spark source and sink.

`CoreGateway` (spark/gateway/core_gateway.py) implements `Gateway` for real nodes; tests use a fake. Ranges are
(start, end], sequences are per queue and node (log view, docs/internals/protocols/log-view.md). Methods raise the
errors of errors.py. After NodeUnavailable the connection is lost and the caller creates a new one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Protocol

from atalanta.client import Chunk, Lease, LostRange, Plan, Position
from atalanta.client.log import PropertyValue
from atalanta.message import dataclass


@dataclass(frozen=True)
class GatewayMember:
    """A node of the topology. `server` is the host:port of its active member, `backup` that of the next one."""

    node_id: str
    server: str
    backup: str | None = None


@dataclasses.dataclass
class OutMessage:
    """A message to send. Body and text exclude each other; times in ms, timestamp None is the current time."""

    address: str
    routing: str | None
    body: bytes | None
    text: str | None
    kind: int
    durable: bool
    priority: int
    expires_at_ms: int
    timestamp_ms: int | None
    properties: dict[str, PropertyValue]
    group_id: str | None
    correlation_id: str | None
    reply_to: str | None
    duplicate_id: str | None


@dataclass(frozen=True)
class Credentials:
    """The login, and the timeouts (s) of connecting and of one request; `tls`: parameters of the URL.

    `body_bytes_max` is the limit of the body of a received message in memory; None is the client's. `block_timeout_s`
    is how long a send waits for an address that grants no credits.
    """

    user: str | None
    password: str | None = field(repr=False)
    connect_timeout_s: float
    request_timeout_s: float
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body_bytes_max: int | None = None
    block_timeout_s: float = 120.0


class Gateway(Protocol):
    """A connection to one node. Calls from several threads are answered one after another."""

    def topology(self) -> Sequence[GatewayMember]:
        """Returns every node of the cluster known to this one, itself included."""

    def queues(self, pattern: str) -> Sequence[str]:
        """Returns the names of the node's queues that match `pattern` and that the user may consume, sorted."""
        ...

    def position(self, queue: str) -> Position: ...

    def plan(
        self, queue: str, incarnation: str, start: int, max_messages: int, max_bytes: int
    ) -> Plan:
        """Returns the longest range from `start` within the limits (-1: none), with at least one message."""

    def read(
        self,
        queue: str,
        incarnation: str,
        start: int,
        end: int,
        max_bytes: int,
        selector: str | None,
        body_bytes_max: int,
    ) -> Iterator[Chunk]:
        """Yields (start, end] in chunks, up to one with `last`. Bodies above `body_bytes_max` are not read.

        With 0 the node sends no bodies.
        """
        ...

    def ack_through(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        """Acknowledges and returns the number of messages. The result is durable; a repeat has no effect."""

    def dead_letter(
        self, queue: str, incarnation: str, group: str, epoch: int, sequence: int, why: str
    ) -> None:
        """Moves a message to the queue's dead-letter address, durably; a repeat has no effect."""

    def lease(self, queue: str, group: str, owner: str, ttl_ms: int, epoch: int) -> Lease:
        """Leases the queue. Epoch 0 takes over with a new epoch, any other epoch is renewed."""

    def retain(
        self, queue: str, incarnation: str, group: str, epoch: int, limits: tuple[int, int], replay_from: int
    ) -> int:
        """Sets the retention: `limits` are ms and bytes (0: none; -1, -1: as it is). `replay_from`: -1 is no replay.

        Raises RangeLost if the group cannot go back to there. Returns the sequence behind which messages can be read.
        """
        ...

    def lost_ranges(
        self, queue: str, incarnation: str, start: int, end: int
    ) -> Sequence[LostRange]: ...

    def seek(self, queue: str, timestamp_ms: int) -> int:
        """Returns the sequence before the first live message of this timestamp or a later one."""

    def prepare(self, messages: Sequence[OutMessage], branch: str) -> None:
        """Sends the messages in an XA branch of this name (BranchName) and prepares it, with all of them or not at all.

        Raises DuplicateRow, or GatewayError for an address that is missing, full, or gives no credits.
        """

    def prepared_branches(self) -> list[str]:
        """Returns the names of the prepared branches of Spark's sinks."""

    def commit_branch(self, branch: str) -> bool:
        """Commits a prepared branch. Returns False if the node does not have it (any more)."""
        ...

    def roll_back_branch(self, branch: str) -> bool:
        """Rolls a prepared branch back. Returns False if the node does not have it (any more)."""
        ...

    def decisions(self, query: str) -> dict[int, str]:
        """Returns the decisions of a query, by batch; of several for a batch the first."""
        ...

    def decide(self, query: str, batch: int, decision: str) -> None:
        """Stores a decision durably, unless there is one for the batch: read `decisions` for the one that counts."""

    def take_over(self, query: str, batch: int) -> None:
        """Records durably that a driver commits branches that another one has decided, before it commits them."""

    def is_taken_over(self, query: str, batch: int) -> bool:
        """Returns True after `take_over`, until the batch is forgotten."""
        ...

    def forget_decisions(self, query: str, before: int) -> None:
        """Removes the decisions of all batches before this one."""

    def close(self) -> None: ...


Connector = Callable[[str, Credentials], Gateway]
"""Server (host:port or URL) and credentials -> a connection. Raises NodeUnavailable or LoginRefused."""
