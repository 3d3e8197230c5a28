"""TCPPING and DNS_PING: every node listens on its stack's port and connects to the hosts of the stack or the DNS.

A visited node of ours answers with its own announcement and all that it received lately. So all nodes find each other,
even if only some are configured, as with JGroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.discovery.tcp_channel import TcpChannel
from atalanta.wire.jgroups_discovery import DNS, JgroupsStack

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery


class HostsChannel(TcpChannel):
    """The hosts of a stack, or what its names resolve to."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.resolved: list[list[tuple[str, int]]] = [[] for _ in stack.names]

    def hosts(self, now: int) -> list[tuple[str, int]]:
        if self.stack.kind == DNS:
            return [place for places in self.resolved for place in places]
        return self.stack.hosts

    def visit(self, now: int) -> None:
        super().visit(now)
        if self.stack.kind == DNS:
            port = 0 if self.stack.srv else self.stack.port
            for number, name in enumerate(self.stack.names):
                self.discovery.links.resolve(f"{self.key}.{number}", name, port)

    def on_resolved(self, now: int, rest: str, addresses: list[tuple[str, int]], why: str) -> None:
        self.failed(why)
        if not why:
            self.resolved[int(rest)] = addresses
        super().visit(now)
