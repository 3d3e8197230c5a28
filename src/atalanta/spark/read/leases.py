"""The lease of a group on each node's queue: taken at the start, renewed until the query ends.

At its end the query releases the lease of each node where everything that it has planned is acknowledged. Elsewhere a
failed query that is started again must find the messages of its unfinished batch in the queue: that lease expires
`leaseTimeout` after the last renewal.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Final

from atalanta.client import Lease
from atalanta.message import dataclass
from atalanta.spark.errors import LeaseEnded, LeaseTaken, NodeUnavailable, SparkSourceError
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.members import Located, PolledMembers
from atalanta.spark.read.shared_lease import SharedLease, key_of

RENEWAL_MAX_S: Final = 30.0

log = logging.getLogger("atalanta.spark")


@dataclass(frozen=True)
class Hold:
    """The lease of one node's queue, for a task: it asks the node whether the query still has it."""

    owner: str
    ttl_ms: int
    epoch: int

    def check(self, options: ReadOptions, gateway: Gateway) -> None:
        """Raises LeaseTaken, with the reason for the user, if another query took the lease over."""
        try:
            gateway.lease(options.queue, options.group, self.owner, self.ttl_ms, self.epoch)
        except LeaseTaken as error:
            raise fenced(options, error) from error


def fenced(options: ReadOptions, error: LeaseTaken) -> LeaseTaken:
    """Returns the error for the user after a takeover by another query, or the end of the lease by an operator."""
    if isinstance(error, LeaseEnded):
        return LeaseEnded(
            f"group {options.group!r} of queue {options.queue!r} has no lease any more, so this query stops: {error}. "
            "That removed no message. Start the query again when it shall have the queue: it goes on from its "
            "checkpoint, and says so if a consumer has taken messages of an unfinished batch",
            error.code,
        )
    return LeaseTaken(
        f"another query took over group {options.group!r} of queue {options.queue!r}, so this one "
        f"stops: {error}. Give each query a group (and a queue) of its own, or run only one of them (a query that "
        "joins a stream with itself loads it once)",
        error.code,
    )


class Leases:
    """The epochs by node and incarnation. `check` raises errors of the background thread."""

    def __init__(self, options: ReadOptions, members: PolledMembers, shared: SharedLease) -> None:
        self.options = options
        self.members = members
        self.shared = shared
        self.lock = threading.Lock()  # no renewal follows the release
        self.owner = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self.ttl_ms = int(options.lease_timeout_s * 1000)
        self.epochs: dict[tuple[str, str], int] = {}
        self.beginning: set[tuple[str, str]] = set()  # at these nodes the group had no position before this query
        self.renewed_at_s: dict[tuple[str, str], float] = {}
        self.failure: SparkSourceError | None = None
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def check(self) -> None:
        """Raises the error of a renewal, such as a takeover of the group by another query."""
        if self.failure is not None:
            raise self.failure

    def take(self, found: Mapping[str, Located]) -> bool:
        """Leases the queue of every new node, with a new epoch. Returns True if there was one. Raises LeaseTaken."""
        new = [
            node_id
            for node_id, located in found.items()
            if (node_id, located.position.incarnation) not in self.epochs
        ]
        if new:
            with self.shared.epochs() as taken:
                for node_id in new:
                    self._take(node_id, found[node_id].position.incarnation, taken)
        if self.thread is None and self.epochs:
            self.thread = threading.Thread(target=self._renew_until_end, daemon=True)
            self.thread.name = "atalanta-leases"
            self.thread.start()
        return bool(new)

    def had_begun(self, node_id: str, incarnation: str) -> bool:
        """Returns True if the group had a position at the node when this query leased its queue."""
        return (node_id, incarnation) not in self.beginning

    def epoch(self, node_id: str, incarnation: str) -> int:
        return self.epochs[node_id, incarnation]

    def shown(self, node_id: str, incarnation: str) -> dict[str, int]:
        """Returns the epoch and the rest of the lease for the query's progress; nothing without a lease."""
        epoch = self.epochs.get((node_id, incarnation))
        if epoch is None:
            return {}
        ends_s = self.renewed_at_s[node_id, incarnation] + self.options.lease_timeout_s
        return {"epoch": epoch, "lease_seconds": max(0, int(ends_s - time.monotonic()))}

    def verify(self, node_id: str, incarnation: str) -> None:
        """Raises LeaseTaken if another query has taken over the lease of that node; without one, any other lease."""
        epoch = self.epochs.get((node_id, incarnation))
        held = {node: each for (node, _), each in self.epochs.items()} if epoch is None else {node_id: epoch}
        for node, number in held.items():
            try:
                self.members.call(node, partial(self._lease, number))
            except LeaseTaken as error:
                raise self.fenced(error) from error

    def stop(self, kept: set[str]) -> None:
        """Ends the renewals, and releases the leases of all nodes but `kept`. A node that is away keeps its lease."""
        self.ended.set()
        kept_by_all = self.shared.end(self.options.queue, kept)
        if kept_by_all is None:
            return
        with self.lock:
            for (node_id, incarnation), epoch in self.epochs.items():
                gateway = self.members.gateway(node_id)
                if node_id in kept_by_all or gateway is None:
                    continue
                try:
                    gateway.lease(self.options.queue, self.options.group, self.owner, 0, epoch)
                except SparkSourceError as error:
                    log.info("lease of node %s (%s) not released: %s", node_id, incarnation, error)

    def hold(self, node_id: str, incarnation: str) -> Hold | None:
        """Returns the lease as a task needs it; None if the queue was created again, which the task will find."""
        epoch = self.epochs.get((node_id, incarnation))
        return None if epoch is None else Hold(self.owner, self.ttl_ms, epoch)

    def fenced(self, error: LeaseTaken) -> LeaseTaken:
        """Returns the error for the user after a takeover by another query."""
        return fenced(self.options, error)

    def refused(self, error: LeaseTaken) -> LeaseTaken:
        """Returns the error for a queue that another group or a consumer uses."""
        consumed = "has consumers" in str(error)
        remedy = ". Stop them: a queue is read by its consumers or by one group" if consumed else ""
        return LeaseTaken(
            f"group {self.options.group!r} cannot lease queue {self.options.queue!r}: {error}{remedy}", error.code
        )

    # Private: one node, and the thread.
    def _take(self, node_id: str, incarnation: str, taken: dict[str, tuple[int, bool]]) -> None:
        """Leases one node, if no other source of the query has it in `taken`."""
        shared = taken.get(key_of(node_id, incarnation))
        asked_at_s = time.monotonic()
        if shared is not None:
            self.epochs[node_id, incarnation], begun = shared
            if not begun:
                self.beginning.add((node_id, incarnation))
            self.renewed_at_s[node_id, incarnation] = asked_at_s
            return
        try:
            grant = self.members.call(node_id, partial(self._lease, 0))
        except LeaseTaken as error:
            raise self.refused(error) from error
        self.epochs[node_id, grant.incarnation] = grant.epoch
        if not grant.begun:
            self.beginning.add((node_id, grant.incarnation))
        self.renewed_at_s[node_id, grant.incarnation] = asked_at_s
        limits = self.options.retention
        if limits is not None:
            self.members.call(node_id, partial(self._retain, grant.incarnation, grant.epoch, limits, -1))
        taken[key_of(node_id, grant.incarnation)] = grant.epoch, grant.begun

    def replay(self, node_id: str, incarnation: str, sequence: int) -> None:
        """Sets the group back to an acknowledged sequence, durably. Raises RangeLost if that is not retained."""
        epoch = self.epoch(node_id, incarnation)
        self.members.call(node_id, partial(self._retain, incarnation, epoch, (-1, -1), sequence))

    def _retain(
        self, incarnation: str, epoch: int, limits: tuple[int, int], replay_from: int, gateway: Gateway
    ) -> int:
        return gateway.retain(
            self.options.queue, incarnation, self.options.group, epoch, limits, replay_from
        )

    def _lease(self, epoch: int, gateway: Gateway) -> Lease:
        return gateway.lease(self.options.queue, self.options.group, self.owner, self.ttl_ms, epoch)

    def _renew_until_end(self) -> None:
        pause_s = min(RENEWAL_MAX_S, self.options.lease_timeout_s / 3)
        while not self.ended.wait(pause_s):
            try:
                self._renew()
            except LeaseTaken as error:
                self.failure = self.fenced(error)
                return
            except SparkSourceError as error:
                self.failure = error
                return

    def _renew(self) -> None:
        """Renews the lease at every node that answers. A node that is away keeps its queue pinned for a while."""
        found = self.members.poll(self.options.position_cache_s)
        for (node_id, incarnation), epoch in list(self.epochs.items()):
            located = found.get(node_id)
            if located is None or located.position.incarnation != incarnation:
                continue
            gateway = self.members.gateway(node_id)
            if gateway is None:
                continue
            asked_at_s = time.monotonic()
            try:
                with self.lock:
                    if not self.ended.is_set():
                        self._lease(epoch, gateway)
                        self.renewed_at_s[node_id, incarnation] = asked_at_s
            except NodeUnavailable as error:
                log.warning("lease of node %s not renewed for now: %s", node_id, error)
