"""Leases of the log view: the group and owner that may acknowledge a queue, and for how long."""

from __future__ import annotations


class ReaderLease:
    """A lease. `epoch` only grows and is durable; `until` (ns) is not: a restart adds one `ttl_ns` to the lease."""

    def __init__(self, group: str, epoch: int, owner: str, ttl_ns: int) -> None:
        self.group = group
        self.epoch = epoch
        self.owner = owner
        self.ttl_ns = ttl_ns
        self.until: int = 0
        self.active: bool = False
