"""The active node of a group in a small world, and followers that a test scripts."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.replication.member_codec import (
    FromActive,
    FromFollower,
    JournalBlock,
    MemberFramer,
    StoredFiles,
    decode_from_active,
    encode_message,
)
from atalanta.cluster.replication.member_handshake import FollowerHandshake, Hello, Welcome
from atalanta.ha.replication.messages import Answer, Heartbeat, Offer
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.store.config import JournalConfig
from atalanta.store.segment import SEGMENT_VERSION
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.replication.member_rig import GROUP, JOURNAL_ID, KEY, MS, GroupTime, Member
from tests.wire.core.server.server_rig import queue_request, text_message


class Scripted:
    """A follower without a disk: it keeps what it gets, and answers what a test says."""

    def __init__(
        self,
        active: Member,
        name: str = "b",
        key: bytes = KEY,
        group: str = GROUP,
        connectors: dict[str, TransportConfiguration] | None = None,
    ) -> None:
        self.active = active
        self.name = name
        self.framer = MemberFramer()
        self.messages: list[FromActive] = []
        self.welcome: Welcome | None = None
        self.answers = True  # heartbeats and blocks at once
        self.last = 0
        self.durable = 0
        self.epoch = 0
        self.conn = active.conn()
        hello = Hello(name, JOURNAL_ID, group, SEGMENT_VERSION, connectors or {})
        self.handshake = FollowerHandshake(key, name.encode().ljust(32), hello)
        self.files = StoredFiles((), ())
        active.input("on_accept", self.conn, "door", f"machine-{name}")
        active.wire.arrivals[self.conn] = self.arrive
        active.input("on_data", self.conn, self.handshake.begin())

    def arrive(self, data: bytes) -> None:
        """Takes bytes of the active node a moment after they were sent."""
        self.active.schedule.at(MS, lambda: self._take(data))

    def _take(self, data: bytes) -> None:
        if self.welcome is None:
            output = self.handshake.feed(data)
            if output:
                self.active.input("on_data", self.conn, output)
            self.welcome = self.handshake.welcome
            if self.welcome is None:
                return
            data = self.handshake.rest()
        self.framer.feed(data)
        while frame := self.framer.next():
            message = decode_from_active(frame)
            self.messages.append(message)
            self._on_message(message)

    def _on_message(self, message: FromActive) -> None:
        if isinstance(message, Offer):
            self.epoch = message.epoch
            if self.answers:
                self.say(self.files)
                self.answer()
        elif isinstance(message, JournalBlock):
            self.last = message.block.last
            if self.answers:
                self.durable = self.last
                self.answer()
        elif isinstance(message, Heartbeat) and self.answers:
            self.answer(message.sent_ns)

    def say(self, message: FromFollower) -> None:
        if self.conn not in self.active.wire.closed:
            self.active.input("on_data", self.conn, encode_message(message))

    def answer(self, sent_ns: int = -1) -> None:
        self.say(Answer(self.epoch, self.last, self.durable, sent_ns))

    def leave(self) -> None:
        """Breaks the connection."""
        self.active.wire.arrivals.pop(self.conn, None)
        self.active.input("on_closed", self.conn, "broken")

    def of(self, kind: type) -> list[FromActive]:
        return [message for message in self.messages if isinstance(message, kind)]


class Group(GroupTime):
    """A manager and the first member, which serves."""

    def __init__(
        self,
        journal: JournalConfig | None = None,
        broker: Callable[[], BrokerConfig] = BrokerConfig,
        settings: Callable[[], AddressSettingsRepository] = AddressSettingsRepository,
        min_in_sync: int = 1,
    ) -> None:
        super().__init__()
        self.active = Member(self.schedule, self.manager, "a", journal, broker, settings)
        self.active.min_in_sync = min_in_sync
        self.active.start()


def publish(active: Member, conn: int, text: str, correlation: int, queue: str = "orders") -> None:
    message = text_message(queue, text)
    active.send(conn, SendMessage(message, requires_response=True, correlation=correlation, sender_id=0))


def client(group: Group, queue: str = "orders") -> int:
    """A client of the active node, whose queue exists."""
    conn = group.active.login()
    group.active.send(conn, queue_request(queue))
    group.run(100)
    group.active.received(conn)
    return conn


def joined(group: Group, name: str = "b") -> Scripted:
    """A follower that is in sync."""
    follower = Scripted(group.active, name)
    group.until(lambda: name in group.in_sync())
    group.run(10)
    return follower


def begin_large(active: Member, conn: int, durable: bool = True, queue: str = "orders") -> None:
    """Begins a large message."""
    active.send(conn, SendLargeMessage(text_message(queue, "", durable, None)))


def send_piece(active: Member, conn: int, piece: bytes, size: int, correlation: int = 0) -> None:
    """Sends a piece of a large message of `size` bytes; with a correlation the last one."""
    active.send(
        conn,
        SendContinuation(
            piece, continues=not correlation, body_size=size, requires_response=correlation != 0,
            correlation=correlation or -1, sender_id=0,
        ),
    )  # fmt: skip
