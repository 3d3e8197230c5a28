"""The multicast group of a stack over UDP: members of JGroups hear this node there, and this node hears them.

A member takes only messages of its own version line, and logs one of another. So an announcement goes out in each
line that was heard; at first a node listens for a moment, unless the configuration names a line.

Where no member can be met (an encrypted stack), nodes of ours find each other by messages of their own form, ATLMEET1.
Members log those, at most once a minute: so their pause grows while members are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.jgroups_channels import JgroupsChannel
from atalanta.wire.jgroups.bundle import decode_datagram, encode_bundle
from atalanta.wire.jgroups.member_request import is_member_request
from atalanta.wire.jgroups_discovery import (
    MAGIC,
    JgroupsStack,
    decode_channel_message,
    encode_channel_message,
)
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery

LISTEN_NS: Final = 3_000_000_000
PRESENT_NS: Final = 300_000_000_000  # a member that was heard so lately is there
LONGEST_PAUSE_NS: Final = 300_000_000_000
OLDER: Final = "/older"  # suffix of the name of a second group


class MulticastChannel(JgroupsChannel):
    """The group of a stack over UDP."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.speaks_ns = 0
        self.member_ns = 0  # the last time of a member, where none can be met
        self.pause_ns = 0

    def open(self, now: int) -> None:
        super().open(now)
        stack, links = self.stack, self.discovery.links
        links.join(self.name, stack.address, stack.port, stack.interface, -1)
        if stack.group_port:
            links.join(self.name + OLDER, stack.group_address, stack.group_port, stack.group_interface, -1)
        if not stack.version and not stack.unmet:
            self.speaks_ns = now + LISTEN_NS

    def close(self) -> None:
        self.discovery.links.leave(self.name)
        if self.stack.group_port:
            self.discovery.links.leave(self.name + OLDER)

    def tick(self, now: int) -> None:
        announcement = self.announcement()
        if not announcement or now < self.speaks_ns:
            return
        name, links = self.stack.channel, self.discovery.links
        if not self.stack.unmet:
            for version in self.lines.spoken(now):
                links.multicast(self.name, encode_bundle(version, name, self.discovery.sender, [announcement]))
            return
        links.multicast(self.name, encode_channel_message(name, announcement))
        if self.member_ns and now - self.member_ns < PRESENT_NS:
            self.pause_ns = min(2 * (self.pause_ns or self.period_ns()), LONGEST_PAUSE_NS)
            self.speaks_ns = now + self.pause_ns
        else:
            self.pause_ns = 0

    def on_datagram(self, now: int, data: bytes) -> None:
        try:
            payloads = self._read(now, data)
        except ProtocolError:
            if self.stack.unmet and is_member_request(self.stack.channel, data):
                self.member_ns = now
            else:
                self.discovery.trace.count("datagrams_unreadable")
            return
        for payload in payloads:
            if payload:
                self.on_announcement(now, payload)

    def _read(self, now: int, data: bytes) -> list[bytes]:
        """Returns the messages for the channel in a datagram, and records who has sent it. ProtocolError."""
        if data[: len(MAGIC)] == MAGIC:
            announcement = decode_channel_message(self.stack.channel, data)
            return [announcement] if announcement else []
        datagram = decode_datagram(self.stack.channel, data)
        if not datagram.named:
            return []
        if datagram.ours:
            self.lines.hint = datagram.version
            if now < self.speaks_ns and not self.stack.unmet:
                self._speak_at_once(now)  # it has listened before
        elif self.stack.unmet:
            self.member_ns = now
            return []
        elif self.lines.hear(now, datagram.version):
            self.heard_line(datagram.version)
            self._speak_at_once(now)
        return datagram.payloads

    def _speak_at_once(self, now: int) -> None:
        self.speaks_ns = now
        self.tick(now)
