"""TCPPING and DNS_PING: every node listens on its stack's port and connects to the hosts of the stack or the DNS.

The visited node answers with its own announcement and all that it received lately. So all nodes find each other,
even if only some are configured, as with JGroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.host_connection import InboundExchange, OutboundExchange
from atalanta.cluster.discovery.jgroups_channels import JgroupsChannel
from atalanta.wire.connection import ProtocolError, TransportConnection
from atalanta.wire.core.broadcast_datagram import decode_announcement
from atalanta.wire.jgroups_discovery import DNS, JgroupsStack

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery

DIAL_TIMEOUT_MS: Final = 2_000
VISITORS_MAX: Final = 1_000  # announcements that are kept for answers


class HostsChannel(JgroupsChannel):
    """The hosts of a stack: `dialing` are visits under way, `own` are addresses of this node.

    `visitors` has the time and announcement of each visitor, by node id.
    """

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.dialing: dict[tuple[str, int], int] = {}
        self.own: dict[tuple[str, int], bool] = {}
        self.visitors: dict[str, tuple[int, bytes]] = {}
        self.resolved: list[list[tuple[str, int]]] = [[] for _ in stack.names]

    def open(self, now: int) -> None:
        super().open(now)
        stack = self.stack
        if not self.discovery.silent:
            self.discovery.links.listen(self.name, stack.interface, stack.port, stack.port_range)

    def close(self) -> None:
        self.discovery.links.unlisten(self.name)

    def tick(self, now: int) -> None:
        refresh_ns = 3 * self.period_ns()
        for node_id, (at, _) in list(self.visitors.items()):
            if now - at > refresh_ns:
                del self.visitors[node_id]
        if self.stack.kind == DNS:
            port = 0 if self.stack.srv else self.stack.port
            for number, name in enumerate(self.stack.names):
                self.discovery.links.resolve(f"{self.key}.{number}", name, port)
        else:
            self._visit(now, self.stack.hosts)

    def on_resolved(self, now: int, rest: str, addresses: list[tuple[str, int]], why: str) -> None:
        self.failed(why)
        number = int(rest)
        if not why:
            self.resolved[number] = addresses
        self._visit(now, self.resolved[number])

    def _visit(self, now: int, hosts: list[tuple[str, int]]) -> None:
        for target in self.stack.targets(hosts):
            since = self.dialing.get(target)
            if target in self.own or (since is not None and now - since < 2 * self.period_ns()):
                continue
            self.dialing[target] = now
            host, port = target
            key = f"{self.key}.{host}:{port}"
            self.discovery.links.dial_within(key, host, port, DIAL_TIMEOUT_MS)

    def on_dialed(self, now: int, conn: int, rest: str) -> TransportConnection | None:
        host, _, port = rest.rpartition(":")
        self.dialing.pop((host, int(port)), None)
        return OutboundExchange(self, conn, now, (host, int(port)))

    def on_dial_failed(self, now: int, rest: str) -> None:
        host, _, port = rest.rpartition(":")
        self.dialing.pop((host, int(port)), None)

    def on_accepted(self, now: int, conn: int) -> TransportConnection | None:
        return InboundExchange(self, conn, now)

    # -- announcements ----------------------------------------------------------------------------
    def known(self) -> list[bytes]:
        """Returns the known announcements, this node's first."""
        own = self.announcement()
        found = [own] if own else []
        found.extend(data for _, data in self.visitors.values())
        return found

    def on_announcement(self, now: int, announcement: bytes) -> None:
        """Stores the announcement of a visitor, for answers to others."""
        try:
            decoded = decode_announcement(announcement)
        except ProtocolError:
            self.discovery.trace.count("datagrams_unreadable")
            return
        if decoded.node_id in self.visitors or len(self.visitors) < VISITORS_MAX:
            if decoded.node_id != self.discovery.node_id:
                self.visitors[decoded.node_id] = (now, announcement)
        super().on_announcement(now, announcement)

    def on_answer(self, now: int, target: tuple[str, int], announcements: list[bytes]) -> None:
        """Handles the answer of a host. The first announcement is the host's own."""
        if announcements and announcements[0] == self.announcement():
            self.own[target] = True
            return
        for announcement in announcements:
            super().on_announcement(now, announcement)
