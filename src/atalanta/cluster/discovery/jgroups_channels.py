"""Channels of JGroups stacks: one for each stack and channel that the groups of this node name.

Broadcast groups send to a channel and discovery groups read from it, every broadcast-period (2 s without).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import ProtocolError, TransportConnection
from atalanta.wire.jgroups_discovery import (
    FILE_SUFFIX,
    JgroupsStack,
    decode_channel_message,
    decode_posted,
    encode_channel_message,
    encode_posted,
)

if TYPE_CHECKING:
    from atalanta.cluster.config import BroadcastGroupConfig
    from atalanta.cluster.discovery.discovery import Discovery, DiscoveryGroup

JGROUPS_PREFIX: Final = "jgroups/"  # prefix of the names of groups and listeners at the Links port
PERIOD_MS: Final = 2_000
# A file with a time further off is ignored until it changes: its node may be gone, or its clock wrong.
FRESH_MS: Final = 60_000
FILES_MAX: Final = 10_000


class JgroupsChannel:
    """A channel. `key` is that of its timer, dials and DNS queries."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        self.discovery = discovery
        self.stack = stack
        self.key = f"discovery.channel.{number}"
        self.name = f"{JGROUPS_PREFIX}{number}"
        self.broadcast: BroadcastGroupConfig | None = None
        self.groups: list[DiscoveryGroup] = []
        self.failing = False

    def open(self, now: int) -> None:
        """Opens the channel and records it once. The first tick follows at once."""
        self.discovery.trace.event(
            "jgroups_channel_opened",
            {
                "protocol": self.stack.protocol,
                "channel": self.stack.channel,
                "location": self.stack.describe(),
                "note": "for Atalanta nodes and clients; real JGroups members are not found",
            },
        )

    def close(self) -> None:
        """Leaves the channel."""

    def tick(self, now: int) -> None:
        """Sends and reads announcements, once a period."""

    def period_ns(self) -> int:
        period_ms = PERIOD_MS if self.broadcast is None else self.broadcast.broadcast_period_ms
        return period_ms * 1_000_000

    def announcement(self) -> bytes:
        """Returns this node's announcement; empty without a broadcast group."""
        return b"" if self.broadcast is None else self.discovery.announcement(self.broadcast)

    def on_announcement(self, now: int, announcement: bytes) -> None:
        for group in list(self.groups):
            self.discovery.on_announcement(now, group, announcement)

    def failed(self, why: str) -> None:
        """Records a failure once, until the channel works again."""
        if why and not self.failing:
            self.discovery.trace.event(
                "jgroups_channel_failed", {"location": self.stack.describe(), "why": why}
            )
        self.failing = bool(why)

    # -- inputs, of the kinds that have them ------------------------------------------------------
    def on_datagram(self, now: int, data: bytes) -> None:
        """Handles a datagram of a multicast group."""

    def on_posted(self, now: int, files: dict[str, bytes], why: str) -> None:
        """Handles the files of a folder."""

    def on_resolved(self, now: int, rest: str, addresses: list[tuple[str, int]], why: str) -> None:
        """Handles the addresses of a name."""

    def on_dialed(self, now: int, conn: int, rest: str) -> TransportConnection | None:
        """Handles a connection to a host."""
        return None

    def on_dial_failed(self, now: int, rest: str) -> None:
        """Handles a failed dial to a host."""

    def on_accepted(self, now: int, conn: int) -> TransportConnection | None:
        """Handles a connection to this node's port."""
        return None


class MulticastChannel(JgroupsChannel):
    """The multicast group of a stack, for UDP and MPING."""

    def open(self, now: int) -> None:
        super().open(now)
        stack = self.stack
        self.discovery.links.join(self.name, stack.address, stack.port, stack.interface, -1)

    def close(self) -> None:
        self.discovery.links.leave(self.name)

    def tick(self, now: int) -> None:
        announcement = self.announcement()
        if announcement:
            self.discovery.links.multicast(
                self.name, encode_channel_message(self.stack.channel, announcement)
            )

    def on_datagram(self, now: int, data: bytes) -> None:
        try:
            announcement = decode_channel_message(self.stack.channel, data)
        except ProtocolError:
            self.discovery.trace.count("datagrams_unreadable")
            return
        if announcement:
            self.on_announcement(now, announcement)


class FolderChannel(JgroupsChannel):
    """A shared folder with a file for each node, for FILE_PING."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.folder = f"{stack.folder.rstrip('/')}/{stack.channel}"
        self.file = discovery.node_id + FILE_SUFFIX
        self.seen: dict[str, bytes] = {}

    def tick(self, now: int) -> None:
        announcement = self.announcement()
        posted = b""
        if announcement:
            posted = encode_posted(self.stack.channel, now // 1_000_000, announcement)
        self.discovery.links.post(self.key, self.folder, self.file, posted)

    def close(self) -> None:
        if self.broadcast is not None:
            self.discovery.links.unpost(self.folder, self.file)

    def on_posted(self, now: int, files: dict[str, bytes], why: str) -> None:
        self.failed(why)
        if why:
            return
        for name in [name for name in self.seen if name not in files]:
            del self.seen[name]
        for name, data in files.items():
            before = self.seen.get(name)
            if data == before or (before is None and len(self.seen) >= FILES_MAX):
                continue
            self.seen[name] = data
            try:
                posted = decode_posted(self.stack.channel, data)
            except ProtocolError:
                self.discovery.trace.count("discovery_files_unreadable")
                continue
            if posted is None:
                continue
            time_ms, announcement = posted
            if before is not None or abs(now // 1_000_000 - time_ms) <= FRESH_MS:
                self.on_announcement(now, announcement)
