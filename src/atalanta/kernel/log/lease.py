"""Leases of the log view: who may acknowledge a queue for a group, and until when."""

from __future__ import annotations


class Lease:
    """`epoch` only grows and is durable; `until` (ns) is not: after a restart a lease lives one `ttl_ns` more."""

    def __init__(self, group: str, epoch: int, owner: str, ttl_ns: int) -> None:
        self.group = group
        self.epoch = epoch
        self.owner = owner
        self.ttl_ns = ttl_ns
        self.until: int = 0
        self.active: bool = False
