"""Exchange of two nodes at a meeting port: the visitor sends its announcement and gets the known ones.

The format is in wire/jgroups_discovery.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import Connection, ProtocolError
from atalanta.wire.jgroups_discovery import (
    decode_answer,
    decode_said,
    encode_answer,
    encode_said,
    said_size,
)

if TYPE_CHECKING:
    from atalanta.cluster.discovery.host_list import HostsPlace

SILENCE_NS: Final = 10_000_000_000


class Talk(Connection):
    """A connection with one question and one answer."""

    def __init__(self, place: HostsPlace, conn: int, now: int) -> None:
        self.place = place
        self.conn = conn
        self.started = now
        self.got = bytearray()
        self.over = False

    def say(self, data: bytes) -> None:
        self.place.discovery.wire.write(self.conn, data)

    def end(self, why: str) -> None:
        self.over = True
        self.place.discovery.host.closing.append((self.conn, why))

    def feed(self, now: int, data: bytes) -> None:
        if not self.over:
            self.got += data
            self.heard(now, bytes(self.got))

    def heard(self, now: int, data: bytes) -> None:
        """Handles all bytes received so far. Raises ProtocolError."""
        raise NotImplementedError

    def flush(self, now: int) -> None:
        """Writes nothing: `say` writes at once."""

    def closed(self, now: int, why: str) -> None:
        self.over = True

    def check_alive(self, now: int) -> bool:
        return now - self.started < SILENCE_NS


class Call(Talk):
    """The visit of this node at `target`."""

    def __init__(self, place: HostsPlace, conn: int, now: int, target: tuple[str, int]) -> None:
        super().__init__(place, conn, now)
        self.target = target
        self.say(encode_said(place.meeting.channel, place.announcement()))

    def heard(self, now: int, data: bytes) -> None:
        answer = decode_answer(data)
        if answer is None:
            return
        self.place.met(now, self.target, answer)
        self.end("all was said")


class Visitor(Talk):
    """The visit of a node, whose announcement is taken, or of a client that only asks."""

    def heard(self, now: int, data: bytes) -> None:
        size = said_size(data)
        if size is None or len(data) < size:
            return
        if len(data) > size:
            raise ProtocolError("meeting place: more than one word")
        said = decode_said(self.place.meeting.channel, data)
        if said is None:
            self.end("another channel")
            return
        self.say(encode_answer(self.place.known()))
        if said:
            self.place.heard(now, said)
        self.end("all was said")
