"""Channels of JGroups stacks: one for each stack and channel that the groups of this node name.

Broadcast groups send to a channel and discovery groups read from it, every broadcast-period (2 s without).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.version_lines import VersionLines
from atalanta.wire.connection import TransportConnection
from atalanta.wire.jgroups.version import version_text
from atalanta.wire.jgroups_discovery import JgroupsStack

if TYPE_CHECKING:
    from atalanta.cluster.config import BroadcastGroupConfig
    from atalanta.cluster.discovery.discovery import Discovery, DiscoveryGroup

JGROUPS_PREFIX: Final = "jgroups/"  # prefix of the names of groups and listeners at the Links port
PERIOD_MS: Final = 2_000
MET: Final = "members of JGroups 3.6 to 5.x hear this node"


class JgroupsChannel:
    """A channel. `key` is that of its timer, dials and DNS queries."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        self.discovery = discovery
        self.stack = stack
        self.number = number
        self.key = f"discovery.channel.{number}"
        self.name = f"{JGROUPS_PREFIX}{number}"
        self.broadcast: BroadcastGroupConfig | None = None
        self.groups: list[DiscoveryGroup] = []
        self.failing = False
        self.lines = VersionLines(stack.version)

    def open(self, now: int) -> None:
        """Opens the channel. The first tick follows at once."""
        self.opened()

    def opened(self) -> None:
        """Records once that the channel is open."""
        self.discovery.trace.event(
            "jgroups_channel_opened",
            {
                "protocol": self.stack.protocol,
                "channel": self.stack.channel,
                "location": self.stack.describe(),
                "note": f"for Atalanta nodes and clients: {self.stack.unmet}" if self.stack.unmet else MET,
            },
        )

    def close(self) -> None:
        """Leaves the channel, when the node stops."""

    def end(self) -> None:
        """Leaves the channel while the node goes on: no group needs it any more."""
        self.close()

    def fall_silent(self) -> None:
        """Takes back what announces this node in the channel, before `broadcast` becomes None."""

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

    def heard_line(self, version: int) -> None:
        """Records that members of a version line were heard that was not known."""
        self.discovery.trace.event(
            "jgroups_version_heard", {"location": self.stack.describe(), "version": version_text(version)}
        )

    # -- inputs, of the kinds that have them ------------------------------------------------------
    def on_datagram(self, now: int, data: bytes) -> None:
        """Handles a datagram of a multicast group."""

    def on_posted(self, now: int, rest: str, files: dict[str, bytes], why: str) -> None:
        """Handles the files of a folder."""

    def on_resolved(self, now: int, rest: str, addresses: list[tuple[str, int]], why: str) -> None:
        """Handles the addresses of a name."""

    def on_dialed(self, now: int, conn: int, rest: str) -> TransportConnection | None:
        """Handles a connection to a host."""
        return None

    def on_dial_failed(self, now: int, rest: str) -> None:
        """Handles a failed dial to a host."""

    def on_accepted(self, now: int, conn: int, remote: str) -> TransportConnection | None:
        """Handles a connection of `remote`, host:port, to this node's port."""
        return None
