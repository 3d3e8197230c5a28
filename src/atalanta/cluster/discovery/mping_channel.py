"""MPING below TCP: a multicast group in which a node asks who is there, with the address at which it listens.

Members dial that address, and so greet this node. Nodes of ours that hear the question dial it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.tcp_channel import Place, TcpChannel
from atalanta.wire.jgroups.address import place_of
from atalanta.wire.jgroups.member_request import decode_member_request, encode_member_request
from atalanta.wire.jgroups.version import FOUR, LIKELY
from atalanta.wire.jgroups_discovery import MAGIC, JgroupsStack, decode_channel_message
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.discovery.discovery import Discovery

ASKERS_MAX: Final = 1_000
NO_ADDRESS: Final = "there is no address at which members could dial this node: name one as bind_addr of the transport"
SOON_NS: Final = 500_000_000


class MpingChannel(TcpChannel):
    """The group. `askers` has the nodes of ours that asked, with the time."""

    def __init__(self, discovery: Discovery, number: int, stack: JgroupsStack) -> None:
        super().__init__(discovery, number, stack)
        self.askers: dict[Place, int] = {}
        self.early = False  # a member of a version before 4.0 asked
        self.asked_ns = 0

    def open(self, now: int) -> None:
        super().open(now)
        stack = self.stack
        self.discovery.links.join(self.name, stack.address, stack.group_port, stack.group_interface, -1)

    def close(self) -> None:
        super().close()
        self.discovery.links.leave(self.name)

    def hosts(self, now: int) -> list[Place]:
        silence_ns = max(10 * self.period_ns(), 30_000_000_000)
        for place, at in list(self.askers.items()):
            if now - at > silence_ns:
                del self.askers[place]
        return list(self.askers)

    def tick(self, now: int) -> None:
        super().tick(now)
        self._ask(now)

    def _ask(self, now: int) -> None:
        if self.discovery.silent:
            return
        place = place_of(self.discovery.links.listening(self.name, self.stack.group_interface or self.stack.address))
        self.failed("" if place is not None else NO_ADDRESS)
        if place is None:
            return
        self.own[place] = True
        self.asked_ns = now
        heard = self.lines.heard(now)
        version = heard[0] if heard else self.lines.named or LIKELY[0]
        if self.early and not heard:
            version = next(early for early in LIKELY if early < FOUR)
        try:
            question = encode_member_request(version, self.stack.channel, place)
        except ValueError as error:
            self.failed(f"{NO_ADDRESS} ({error})")
            return
        self.discovery.links.multicast(self.name, question)

    def on_datagram(self, now: int, data: bytes) -> None:
        try:
            if data[: len(MAGIC)] == MAGIC:
                announcement = decode_channel_message(self.stack.channel, data)
                if announcement:
                    self.on_announcement(now, announcement)
                return
            asked = decode_member_request(self.stack.channel, data)
        except ProtocolError:
            self.discovery.trace.count("datagrams_unreadable")
            return
        if asked is None:
            return
        late, place = asked
        if place is None:
            self.early = not late
            if now - self.asked_ns > SOON_NS:
                self._ask(now)  # a member that has just come dials at once
        elif place not in self.own and (place in self.askers or len(self.askers) < ASKERS_MAX):
            new = place not in self.askers
            self.askers[place] = now
            if new:
                self.visit(now)
