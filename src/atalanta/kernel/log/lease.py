"""Leases of the log view: the group and owner that may acknowledge a queue, and for how long."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import FENCED, LEASE_ENDED, BrokerError
from atalanta.message.encoding.buffer import Reader, Writer

SECOND_NS: Final = 1_000_000_000


class ReaderLease:
    """A lease. `epoch` only grows and is durable; `until` (ns) is not: a restart adds one `ttl_ns` to the lease.

    `has_position` (durable): the group has acknowledged, so that it goes on from a position of its own.
    `begun_at` (ns, durable): when the epoch began; 0 if an earlier version wrote it. `ended_by` (durable): the user
    that ended the lease before its owner did; this epoch is then nobody's. `refusals` counts the consumers and groups
    that were refused because of the lease, the last one at `refused_at` (ns); a restart forgets them.
    """

    def __init__(
        self, group: str, epoch: int, owner: str, ttl_ns: int, begun_at: int = 0, ended_by: str = "",
        has_position: bool = True,
    ) -> None:
        self.group = group
        self.epoch = epoch
        self.owner = owner
        self.ttl_ns = ttl_ns
        self.begun_at = begun_at
        self.ended_by = ended_by
        self.has_position = has_position
        self.until: int = 0
        self.active: bool = False
        self.refusals: int = 0
        self.refused_at: int = 0

    def restore(self, now: int) -> None:
        """Starts the lease again after a restart of the node, whose length nobody knows."""
        self.active = self.ttl_ns > 0
        self.until = now + self.ttl_ns
        if self.begun_at == 0:
            self.begun_at = now

    def rest_ns(self, now: int) -> int:
        """Returns how long the lease lasts without a further renewal; 0 once it has ended."""
        return max(0, self.until - now) if self.active else 0

    def refuse(self, now: int, queue: str) -> BrokerError:
        """Counts a consumer, or another group, that asks for the queue. Returns the error for it."""
        self.refusals += 1
        self.refused_at = now
        rest_s = -(-self.rest_ns(now) // SECOND_NS)
        return BrokerError(
            FENCED,
            f"queue {queue} is leased to the log-view group {self.group} of {self.owner} for {rest_s} s more, longer "
            f"if it is renewed. `atalanta queue stat {queue}` shows the lease, `atalanta queue end-lease {queue}` ends "
            "it and removes no message",
        )

    def fence(self, queue: str, epoch: int) -> BrokerError:
        """Returns the error for an older epoch: LEASE_ENDED if a user has ended the lease, else FENCED."""
        if self.ended_by:
            return BrokerError(
                LEASE_ENDED,
                f"the lease of group {self.group} of queue {queue} was ended by {self.ended_by} "
                f"(epoch {self.epoch}, yours is {epoch})",
            )
        return BrokerError(
            FENCED,
            f"group {self.group} of queue {queue} was taken over by {self.owner} "
            f"(epoch {self.epoch}, yours is {epoch})",
        )

    def record(self, queue_id: int) -> bytes:
        """Returns the payload of a LEASE record."""
        writer = Writer()
        writer.int64(queue_id)
        self.encode(writer)
        self.encode_history(writer)
        return writer.getvalue()

    def encode(self, writer: Writer) -> None:
        """Encodes the lease. The time of a group without a position is negative: -1 - `ttl_ns`.

        So records of versions that did not know this are those of groups with one.
        """
        writer.simple_string(self.group)
        writer.int64(self.epoch)
        writer.simple_string(self.owner)
        writer.int64(self.ttl_ns if self.has_position else -1 - self.ttl_ns)

    def encode_history(self, writer: Writer) -> None:
        """Encodes what earlier versions do not have, behind everything else in a record."""
        writer.int64(self.begun_at)
        writer.simple_string(self.ended_by)

    def decode_history(self, reader: Reader) -> None:
        """Takes what `encode_history` wrote. A record of an earlier version ends before."""
        if reader.left():
            self.begun_at = reader.int64("lease.begun_at")
            self.ended_by = reader.simple_string("lease.ended_by")


def decode_lease(reader: Reader) -> ReaderLease:
    """Returns the lease that `encode` wrote, without its history. DecodeError names a bad field."""
    group = reader.simple_string("lease.group")
    epoch = reader.int64("lease.epoch")
    owner = reader.simple_string("lease.owner")
    ttl_ns = reader.int64("lease.ttl")
    has_position = ttl_ns >= 0
    return ReaderLease(group, epoch, owner, ttl_ns if has_position else -1 - ttl_ns, has_position=has_position)
