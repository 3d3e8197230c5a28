"""Connections of a TCP channel: with members of JGroups, which hear this node, and with nodes and clients of ours.

Who dials greets as a member does. A member takes the greeting, and the announcements behind it, and says nothing; one
of ours answers with all that it knows. Nodes of releases before these greet in a form of their own, ATLMEET1
(wire/jgroups_discovery.py): that is answered in its form, and never sent to a host that is dialled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import TransportConnection
from atalanta.wire.jgroups.address import place_of
from atalanta.wire.jgroups.bundle import Datagram, decode_datagram, encode_answer, encode_bundle
from atalanta.wire.jgroups.connection_start import (
    Greeting,
    MemberFrames,
    decode_greeting,
    encode_frame,
    encode_greeting,
)
from atalanta.wire.jgroups_discovery import MAGIC, channel_message_size, decode_channel_message
from atalanta.wire.jgroups_discovery import encode_answer as encode_own_answer
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.discovery.tcp_channel import TcpChannel

SILENCE_NS: Final = 10_000_000_000
LIFE_NS: Final = 600_000_000_000  # then a host is dialled anew: the network may have lost it without a word


class HostConnection(TransportConnection):
    """A connection in JGroups' form, of the version `version`; 0 until it is known."""

    def __init__(self, channel: TcpChannel, conn: int, now: int) -> None:
        self.channel = channel
        self.conn = conn
        self.opened = now
        self.version = 0
        self.frames = MemberFrames()
        self.over = False
        channel.connections[conn] = self

    def feed(self, now: int, data: bytes) -> None:
        if not self.over:
            self.on_data(now, data)

    def on_data(self, now: int, data: bytes) -> None:
        """Handles bytes. Raises ProtocolError."""
        for frame in self.frames.feed(data):
            if self.over:
                return
            try:
                datagram = decode_datagram(self.channel.stack.channel, frame)
            except ProtocolError:
                self.channel.discovery.trace.count("datagrams_unreadable")
                continue
            self.on_datagram(now, datagram)

    def on_datagram(self, now: int, datagram: Datagram) -> None:
        """Handles a frame."""
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        self.channel.discovery.wire.write(self.conn, data)

    def send_announcement(self) -> None:
        """Sends this node's announcement, if it has one."""
        announcement = self.channel.announcement()
        if announcement:
            sender = self.channel.discovery.sender
            self.send(encode_frame(encode_bundle(self.version, self.channel.stack.channel, sender, [announcement])))

    def speak(self) -> None:
        """Tells a member what this node announces, once a period."""

    def end(self, why: str) -> None:
        self.over = True
        self.channel.discovery.close(self.conn, why)

    def flush(self, now: int) -> None:
        """Writes nothing: `send` writes at once."""

    def closed(self, now: int, why: str) -> None:
        self.over = True
        self.channel.connections.pop(self.conn, None)

    def check_alive(self, now: int) -> bool:
        return now - self.opened < SILENCE_NS


class OutboundConnection(HostConnection):
    """A connection that this node opened to `target`. Where no member can be met, only one of ours gets more than a
    greeting."""

    def __init__(self, channel: TcpChannel, conn: int, now: int, target: tuple[str, int], version: int) -> None:
        super().__init__(channel, conn, now)
        self.target = target
        self.version = version
        self.ours = False
        local = place_of(channel.discovery.wire.local_address(conn))
        if local is None:
            self.end("the connection is closed already")
            return
        try:
            greeting = encode_greeting(version, local)
        except ValueError as error:
            self.end(f"it has no IP address: {error}")
            return
        self.send(greeting)
        if not channel.stack.unmet:
            self.send_announcement()

    def on_datagram(self, now: int, datagram: Datagram) -> None:
        if not datagram.ours:
            return  # of a member: it has nothing for one who is not in its view
        self.ours = True
        self.channel.on_answer(now, self.target, datagram.payloads)
        if self.channel.stack.unmet:
            self.send_announcement()
        self.end("the exchange is complete")

    def speak(self) -> None:
        if not self.over and not self.channel.stack.unmet:
            self.send_announcement()

    def closed(self, now: int, why: str) -> None:
        super().closed(now, why)
        self.channel.on_left(now, self)

    def check_alive(self, now: int) -> bool:
        return now - self.opened < LIFE_NS


class InboundConnection(HostConnection):
    """A connection from `remote`: a member, or a node or client of ours, in either form."""

    def __init__(self, channel: TcpChannel, conn: int, now: int, remote: str) -> None:
        super().__init__(channel, conn, now)
        self.remote = place_of(remote)
        self.received = b""
        self.member = False
        self.place: tuple[str, int] | None = None  # where the member listens, if it is its own address

    def on_data(self, now: int, data: bytes) -> None:
        if self.version:
            super().on_data(now, data)
            return
        self.received += data
        if self.received[:1] == MAGIC[:1]:
            self._exchange(now, self.received)
            return
        greeting = decode_greeting(self.received)
        if greeting is not None:
            rest = self.received[greeting.size :]
            self.received = b""
            self.version = greeting.version
            self._greeted(now, greeting)
            super().on_data(now, rest)

    def _greeted(self, now: int, greeting: Greeting) -> None:
        channel = self.channel
        # One of ours greets with the address of its end of the connection, a member with that of its server.
        if self.remote is not None and self.remote[1] == greeting.place[1]:
            channel.lines.hint = greeting.version
            sender = channel.discovery.sender
            self.send(encode_frame(encode_answer(self.version, channel.stack.channel, sender, channel.known())))
            return
        self.member = True
        if self.remote is not None and self.remote[0] == greeting.place[0]:
            self.place = greeting.place
        channel.on_member(now, greeting.version, self.place)
        self.speak()

    def on_datagram(self, now: int, datagram: Datagram) -> None:
        for payload in datagram.payloads:
            if payload:
                self.channel.on_announcement(now, payload)

    def speak(self) -> None:
        if self.member and not self.over and not self.channel.stack.unmet:
            self.send_announcement()

    def check_alive(self, now: int) -> bool:
        return self.member or super().check_alive(now)

    def _exchange(self, now: int, data: bytes) -> None:
        """Answers a node or client of an earlier release, which sends one message and waits for one answer."""
        size = channel_message_size(data)
        if size is None or len(data) < size:
            return
        if len(data) > size:
            raise ProtocolError("JGroups discovery: more than one message")
        announcement = decode_channel_message(self.channel.stack.channel, data)
        if announcement is None:
            self.end("another channel")
            return
        self.send(encode_own_answer(self.channel.known()))
        if announcement:
            self.channel.on_announcement(now, announcement)
        self.end("the exchange is complete")
