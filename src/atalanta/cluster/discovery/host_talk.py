"""The short talk of two nodes at a meeting port: the visitor says who it is, and hears who is there.

What is said stands in wire/jgroups_discovery.py.
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
    """Lasts one question and one answer."""

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
        """All that came so far. ProtocolError."""
        raise NotImplementedError

    def flush(self, now: int) -> None:
        """All was written at once."""

    def closed(self, now: int, why: str) -> None:
        self.over = True

    def check_alive(self, now: int) -> bool:
        return now - self.started < SILENCE_NS


class Call(Talk):
    """We went there: `target` is where."""

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
    """Somebody came: a node, which is heard, or a client that only asks."""

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
