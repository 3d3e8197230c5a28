"""The lease of a group on each node's queue: taken at the start, renewed until the query ends.

A lease is never released on purpose. A failed query is started again and must find the messages of its unfinished
batch in the queue. The lease expires `leaseTimeout` after the last renewal.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from atalanta.client import Lease
from atalanta.spark.errors import Fenced, NodeUnavailable, SparkSourceError
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.members import Located, Members

RENEWAL_MAX_S: Final = 30.0

log = logging.getLogger("atalanta.spark")


@dataclass(frozen=True)
class Hold:
    """The lease of one node's queue, for a task: it asks the node whether the query still has it."""

    owner: str
    ttl_ms: int
    epoch: int

    def check(self, options: ReadOptions, gateway: Gateway) -> None:
        """Raises Fenced, with the reason for the user, if another query took the lease over."""
        try:
            gateway.lease(options.queue, options.group, self.owner, self.ttl_ms, self.epoch)
        except Fenced as error:
            raise fenced(options, error) from error


def fenced(options: ReadOptions, error: Fenced) -> Fenced:
    """Returns the error for the user after a takeover by another query."""
    return Fenced(
        f"another query took over group {options.group!r} of queue {options.queue!r}, so this one "
        f"stops: {error}. Give each query a group (and a queue) of its own, or run only one of them",
        error.code,
    )


class Leases:
    """The epochs by node and incarnation. `check` raises errors of the background thread."""

    def __init__(self, options: ReadOptions, members: Members) -> None:
        self.options = options
        self.members = members
        self.owner = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self.ttl_ms = int(options.lease_timeout_s * 1000)
        self.epochs: dict[tuple[str, str], int] = {}
        self.renewed_at_s: dict[tuple[str, str], float] = {}
        self.failure: SparkSourceError | None = None
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def check(self) -> None:
        """Raises the error of a renewal, such as a takeover of the group by another query."""
        if self.failure is not None:
            raise self.failure

    def take(self, found: Mapping[str, Located]) -> None:
        """Leases the queue of every new node, with a new epoch. Raises Fenced."""
        for node_id, located in found.items():
            key = (node_id, located.position.incarnation)
            if key not in self.epochs:
                asked_at_s = time.monotonic()
                try:
                    grant = self.members.call(node_id, self._take_over)
                except Fenced as error:
                    raise self.refused(error) from error
                self.epochs[node_id, grant.incarnation] = grant.epoch
                self.renewed_at_s[node_id, grant.incarnation] = asked_at_s
        if self.thread is None and self.epochs:
            self.thread = threading.Thread(target=self._renew_until_end, daemon=True)
            self.thread.name = "atalanta-leases"
            self.thread.start()

    def epoch(self, node_id: str, incarnation: str) -> int:
        return self.epochs[node_id, incarnation]

    def shown(self, node_id: str, incarnation: str) -> dict[str, int]:
        """Returns the epoch and the rest of the lease for the query's progress; nothing without a lease."""
        epoch = self.epochs.get((node_id, incarnation))
        if epoch is None:
            return {}
        ends_s = self.renewed_at_s[node_id, incarnation] + self.options.lease_timeout_s
        return {"epoch": epoch, "lease_seconds": max(0, int(ends_s - time.monotonic()))}

    def stop(self) -> None:
        self.ended.set()

    def hold(self, node_id: str, incarnation: str) -> Hold | None:
        """Returns the lease as a task needs it; None if the queue was created again, which the task will find."""
        epoch = self.epochs.get((node_id, incarnation))
        return None if epoch is None else Hold(self.owner, self.ttl_ms, epoch)

    def fenced(self, error: Fenced) -> Fenced:
        """Returns the error for the user after a takeover by another query."""
        return fenced(self.options, error)

    def refused(self, error: Fenced) -> Fenced:
        """Returns the error for a queue that another group or a consumer uses."""
        return Fenced(
            f"group {self.options.group!r} cannot lease queue {self.options.queue!r}: {error}. The "
            "lease of a query that ended lasts until its leaseTimeout is over",
            error.code,
        )

    # Private: one node, and the thread.
    def _take_over(self, gateway: Gateway) -> Lease:
        return gateway.lease(self.options.queue, self.options.group, self.owner, self.ttl_ms, 0)

    def _renew_until_end(self) -> None:
        pause_s = min(RENEWAL_MAX_S, self.options.lease_timeout_s / 3)
        while not self.ended.wait(pause_s):
            try:
                self._renew()
            except Fenced as error:
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
                gateway.lease(
                    self.options.queue, self.options.group, self.owner, self.ttl_ms, epoch
                )
                self.renewed_at_s[node_id, incarnation] = asked_at_s
            except NodeUnavailable as error:
                log.warning("lease of node %s not renewed for now: %s", node_id, error)
