"""Exchange of two nodes over a connection: the dialing node sends its announcement and gets the known ones.

The format is in wire/jgroups_discovery.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import ProtocolError, TransportConnection
from atalanta.wire.jgroups_discovery import (
    channel_message_size,
    decode_answer,
    decode_channel_message,
    encode_answer,
    encode_channel_message,
)

if TYPE_CHECKING:
    from atalanta.cluster.discovery.hosts_channel import HostsChannel

SILENCE_NS: Final = 10_000_000_000


class HostConnection(TransportConnection):
    """A connection with one request and one answer."""

    def __init__(self, channel: HostsChannel, conn: int, now: int) -> None:
        self.channel = channel
        self.conn = conn
        self.started = now
        self.received = bytearray()
        self.over = False

    def send(self, data: bytes) -> None:
        self.channel.discovery.wire.write(self.conn, data)

    def end(self, why: str) -> None:
        self.over = True
        self.channel.discovery.close(self.conn, why)

    def feed(self, now: int, data: bytes) -> None:
        if not self.over:
            self.received += data
            self.on_data(now, bytes(self.received))

    def on_data(self, now: int, data: bytes) -> None:
        """Handles all bytes received so far. Raises ProtocolError."""
        raise NotImplementedError

    def flush(self, now: int) -> None:
        """Writes nothing: `send` writes at once."""

    def closed(self, now: int, why: str) -> None:
        self.over = True

    def check_alive(self, now: int) -> bool:
        return now - self.started < SILENCE_NS


class OutboundExchange(HostConnection):
    """The exchange that this node opened to `target`."""

    def __init__(self, channel: HostsChannel, conn: int, now: int, target: tuple[str, int]) -> None:
        super().__init__(channel, conn, now)
        self.target = target
        self.send(encode_channel_message(channel.stack.channel, channel.announcement()))

    def on_data(self, now: int, data: bytes) -> None:
        answer = decode_answer(data)
        if answer is None:
            return
        self.channel.on_answer(now, self.target, answer)
        self.end("the exchange is complete")


class InboundExchange(HostConnection):
    """The exchange of a node that dialed this one, or of a client, which sends no announcement."""

    def on_data(self, now: int, data: bytes) -> None:
        size = channel_message_size(data)
        if size is None or len(data) < size:
            return
        if len(data) > size:
            raise ProtocolError("JGroups discovery: more than one message")
        announcement = decode_channel_message(self.channel.stack.channel, data)
        if announcement is None:
            self.end("another channel")
            return
        self.send(encode_answer(self.channel.known()))
        if announcement:
            self.channel.on_announcement(now, announcement)
        self.end("the exchange is complete")
