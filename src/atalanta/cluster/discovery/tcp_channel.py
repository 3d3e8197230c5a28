"""A channel whose hosts are dialled: this node is heard by members of JGroups, and exchanges with nodes of ours.

Members send to members only, so nothing is heard from them; a member that hears this node dials it. They close the
connections of others at each new view, so a host is dialled again in each period. A host that refuses a version gets
another one, after growing pauses: each refusal is a line in its log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.host_connection import (
    HostConnection,
    InboundConnection,
    OutboundConnection,
)
from atalanta.cluster.discovery.host_record import HostRecord
from atalanta.cluster.discovery.jgroups_channels import JgroupsChannel
from atalanta.wire.connection import TransportConnection
from atalanta.wire.core.broadcast_datagram import decode_announcement
from atalanta.wire.jgroups.version import version_text
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.wire.jgroups_discovery import JgroupsStack

DIAL_TIMEOUT_MS: Final = 2_000
VISITORS_MAX: Final = 1_000  # announcements that are kept for answers
CALLERS_MAX: Final = 200  # members that dialled this node, and are dialled by it from then on
SPEAKERS_MAX: Final = 400  # connections, of either direction

Place = tuple[str, int]


class TcpChannel(JgroupsChannel):
    """The hosts of a stack: `dialing` are dials under way, `own` are addresses of this node.

    `visitors` has the time and announcement of each visitor, by node id; `callers` the members that dialled this node.
    """

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.dialing: dict[Place, int] = {}
        self.own: dict[Place, bool] = {}
        self.visitors: dict[str, tuple[int, bytes]] = {}
        self.records: dict[Place, HostRecord] = {}
        self.callers: dict[Place, None] = {}
        self.connections: dict[int, HostConnection] = {}

    def open(self, now: int) -> None:
        super().open(now)
        if not self.discovery.silent:
            self.discovery.links.listen(self.name, self.stack.interface, self.stack.port, self.stack.port_range)

    def close(self) -> None:
        self.discovery.links.unlisten(self.name)

    def end(self) -> None:
        super().end()
        for connection in list(self.connections.values()):
            connection.end("no group of this node needs the channel any more")

    def hosts(self, now: int) -> list[Place]:
        """Returns the hosts of the stack, as far as they are known now."""
        raise NotImplementedError

    def tick(self, now: int) -> None:
        refresh_ns = 3 * self.period_ns()
        for node_id, (at, _) in list(self.visitors.items()):
            if now - at > refresh_ns:
                del self.visitors[node_id]
        for connection in list(self.connections.values()):
            connection.speak()
        self.visit(now)

    # -- dials ------------------------------------------------------------------------------------
    def visit(self, now: int) -> None:
        """Dials every host without a connection, and every member that dialled this node."""
        wanted = dict.fromkeys([*self.stack.targets(self.hosts(now)), *self.callers])
        for place in [place for place in self.records if place not in wanted]:
            del self.records[place]
        connected = self._connected()
        for target in wanted:
            since = self.dialing.get(target)
            record = self.records.get(target)
            if target in self.own or target in connected or (record is not None and now < record.due):
                continue
            if since is not None and now - since < 2 * self.period_ns():
                continue
            if len(self.connections) >= SPEAKERS_MAX:
                return
            self.dialing[target] = now
            host, port = target
            self.discovery.links.dial_within(f"{self.key}.{host}:{port}", host, port, DIAL_TIMEOUT_MS)

    def _connected(self) -> dict[Place, bool]:
        found: dict[Place, bool] = {}
        for connection in self.connections.values():
            if isinstance(connection, OutboundConnection):
                found[connection.target] = True
            elif isinstance(connection, InboundConnection) and connection.place is not None:
                found[connection.place] = True
        return found

    def on_dialed(self, now: int, conn: int, rest: str) -> TransportConnection | None:
        host, _, port = rest.rpartition(":")
        target = (host, int(port))
        self.dialing.pop(target, None)
        record = self.records.setdefault(target, HostRecord())
        return OutboundConnection(self, conn, now, target, record.version(now, self.lines))

    def on_dial_failed(self, now: int, rest: str) -> None:
        host, _, port = rest.rpartition(":")
        target = (host, int(port))
        self.dialing.pop(target, None)
        self.callers.pop(target, None)

    def on_left(self, now: int, connection: OutboundConnection) -> None:
        """Records how a connection to a host ended."""
        record = self.records.get(connection.target)
        if record is None:
            return
        if connection.ours:
            record.takes(connection.version)
        elif record.closed(now, connection.opened, connection.version):
            host, port = connection.target
            self.discovery.trace.event(
                "jgroups_member_refused",
                {
                    "member": f"{host}:{port}",
                    "version": version_text(connection.version),
                    "what_to_do": self.remedy(),
                },
            )

    def remedy(self) -> str:
        """Returns what an operator can do about a member that refuses this node's greeting."""
        if self.stack.unmet:
            return "nothing: real members are not met by this stack; it is tried again after growing pauses"
        return (
            "name the version of its JGroups in atalanta.toml (jgroups-version); others are tried after growing pauses."
            " Nothing is wrong if it is an Atalanta node of an earlier release: it dials this one"
        )

    # -- those who dial -----------------------------------------------------------------------------
    def on_accepted(self, now: int, conn: int, remote: str) -> TransportConnection | None:
        if len(self.connections) >= SPEAKERS_MAX:
            self.discovery.trace.count("discovery_overflow")
            return None
        return InboundConnection(self, conn, now, remote)

    def on_member(self, now: int, version: int, place: Place | None) -> None:
        """Handles a member that greeted: it has shown its version, and `place`, if that is its own address."""
        if self.lines.hear(now, version):
            self.heard_line(version)
            for record in self.records.values():
                record.try_again()
        if place is None or (place not in self.callers and len(self.callers) >= CALLERS_MAX):
            return
        self.callers[place] = None
        self.records.setdefault(place, HostRecord()).takes(version)

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

    def on_answer(self, now: int, target: Place, announcements: list[bytes]) -> None:
        """Handles the answer of a host. The first announcement is the host's own."""
        if announcements and announcements[0] == self.announcement():
            self.own[target] = True
            return
        for announcement in announcements:
            super().on_announcement(now, announcement)
