"""The protocol of an active node for its followers, at the ordinary acceptors, and its connections.

A follower dials, both prove the cluster password, and the follower says who it is. Nothing else is read before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from typing import Protocol as Interface

from atalanta.cluster.replication.member_codec import (
    FromActive,
    FromFollower,
    MemberFramer,
    decode_from_follower,
    encode_message,
)
from atalanta.cluster.replication.member_handshake import (
    ANOTHER_GROUP,
    ANOTHER_NODE_ID,
    HANDSHAKE_NS,
    MAGIC,
    NO_NODE_ID,
    NONCE_SIZE,
    ActiveHandshake,
    Hello,
    Welcome,
)
from atalanta.message.encoding.buffer import DecodeError
from atalanta.store.segment import SEGMENT_VERSION
from atalanta.wire.connection import TransportConnection
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.protocol import MORE, NO, YES, Peer, Protocol
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.replication.active.seat import ReplicationSeat
    from atalanta.kernel.ports import Ids
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

# A follower answers several heartbeats in a second. One that is silent for this time is gone.
SILENT_NS: Final = 30_000_000_000


class ActiveSide(Interface):
    """The active side, as its connections see it."""

    seat: ReplicationSeat

    @property
    def epoch(self) -> int:
        """Returns the epoch of the active node."""

    @property
    def stopped(self) -> str:
        """Returns why the service has ended, "" before."""

    def on_member(self, now: int, connection: MemberConnection) -> None:
        """Begins the stream to a follower that has proven to be a member."""

    def on_message(self, now: int, connection: MemberConnection, message: FromFollower) -> None:
        """Handles a message of a follower."""

    def on_gone(self, now: int, connection: MemberConnection, why: str) -> None:
        """Handles the end of a follower's connection."""

    def on_blocked(self, connection: MemberConnection, blocked: bool) -> None:
        """Records that a follower reads too slowly, or reads again."""


class ReplicationProtocol(Protocol):
    """The protocol of the members of a group, at every acceptor that serves CORE."""

    def __init__(self, host: WireServer, members: ActiveSide, node_id: bytes, ids: Ids) -> None:
        self.name = "CORE"
        self.host = host
        self.members = members
        self.seat = members.seat
        self.node_id = node_id
        self.ids = ids
        self.trace = host.broker.trace

    def recognises(self, first: bytes) -> int:
        """Implements Protocol.recognises."""
        if first.startswith(MAGIC):
            return YES
        return MORE if MAGIC.startswith(first) else NO

    def open(self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None) -> TransportConnection:
        """Implements Protocol.open."""
        self.host.wire.exempt(conn)
        return MemberConnection(self, conn, peer.remote, now)

    def tell_refusal(self, now: int, remote: str, member: str, why: str) -> None:
        """Reports a refused connection, not too often."""
        if not why.startswith(ANOTHER_GROUP) and self.host.refusals.admits(now, remote, why):
            self.trace.event("replica_refused", {"member": member, "remote": remote, "why": why})

    def refusal(self, hello: Hello) -> str:
        """Returns the reason why a member cannot follow this node, "" if it can."""
        if self.members.stopped:
            return f"this node is not active any more: {self.members.stopped}"
        if hello.member == self.seat.follower.name:
            return (
                f"it has this node's own member name, {hello.member}: give every member a data folder of "
                "its own, not a copy of another one"
            )
        if hello.group != self.seat.group:
            if hello.group and self.seat.group:
                return f"{ANOTHER_GROUP}: it is of {hello.group!r}, this node of {self.seat.group!r}"
            return (
                f"it is of group {hello.group!r}, this node of {self.seat.group!r}: give each group a group-name of "
                "its own, the same one to all of its members"
            )
        if hello.node_id not in (NO_NODE_ID, self.node_id):
            return f"its data is of node {hello.node_id.hex()}, this is node {self.node_id.hex()}: {ANOTHER_NODE_ID}"
        if hello.segment_version != SEGMENT_VERSION:
            return (
                f"it reads journals of version {hello.segment_version}, this node writes {SEGMENT_VERSION}: run the "
                "same release on all members"
            )
        return ""


class MemberConnection(TransportConnection):
    """A connection of a follower. `member` is "" before its handshake."""

    def __init__(self, protocol: ReplicationProtocol, conn: int, remote: str, now: int) -> None:
        self.conn = conn
        self.remote = remote
        self.member: str = ""
        self.primary: bool = False  # its configured role
        self.asynchronous: bool = False
        self.connectors: Mapping[str, TransportConfiguration] = {}
        self._protocol = protocol
        self._wire = protocol.host.wire
        self._opened = now
        self._last_seen = now
        self._closing = False
        self._handshake = ActiveHandshake(protocol.seat.key, protocol.ids.secret(NONCE_SIZE))
        self._framer = MemberFramer()

    def peer(self) -> str:
        """Returns the address of the follower."""
        return self.remote

    # --- bytes --------------------------------------------------------------------------------------------

    def feed(self, now: int, data: bytes) -> None:
        """Implements TransportConnection.feed. ProtocolError, DecodeError."""
        self._last_seen = now
        if self._closing:
            return
        if not self.member:
            hello = self._shake(now, data)
            if hello is None:
                return
            self._welcome(now, hello)
            data = self._handshake.rest()
        self._framer.feed(data)
        command = self._protocol.host.broker.command
        while not self._closing:
            command.begin()
            frame = self._framer.next()
            if frame is None:
                break
            message = decode_from_follower(frame)
            command.begin_change()
            self._protocol.members.on_message(now, self, message)

    def _shake(self, now: int, data: bytes) -> Hello | None:
        """Continues the handshake. Returns the proven hello, None before it is there."""
        try:
            output = self._handshake.feed(data)
        except (ProtocolError, DecodeError) as error:
            self._refuse(now, "", str(error))
            return None
        if output:
            self._wire.write(self.conn, output)
        return self._handshake.hello

    def _refuse(self, now: int, member: str, why: str) -> None:
        """Reports a refusal and closes the connection."""
        self._protocol.tell_refusal(now, self.remote, member, why)
        self.close(why)

    def _welcome(self, now: int, hello: Hello) -> None:
        """Ends the handshake: with a stream, or with a refusal."""
        protocol = self._protocol
        refusal = protocol.refusal(hello)
        welcome = Welcome(protocol.node_id, protocol.members.epoch, protocol.seat.follower.name, refusal)
        self._wire.write(self.conn, self._handshake.answer(welcome))
        if refusal:
            self._refuse(now, hello.member, refusal)
            return
        self.member = hello.member
        self.connectors = hello.connectors
        self.primary = hello.primary
        self.asynchronous = hello.asynchronous
        self._wire.logged_in(self.conn)
        protocol.host.broker.command.begin_change()
        protocol.members.on_member(now, self)

    def send(self, message: FromActive) -> None:
        """Writes a message at once: also a node that has just stopped says so."""
        if not self._closing:
            self._wire.write(self.conn, encode_message(message))

    def flush(self, now: int) -> None:
        """Implements TransportConnection.flush: everything is written at once."""

    # --- life -----------------------------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Closes the connection, after what was written."""
        if not self._closing:
            self._closing = True
            self._wire.close(self.conn, why)

    def closed(self, now: int, why: str) -> None:
        """Implements TransportConnection.closed."""
        self._closing = True
        if self.member:
            self._protocol.members.on_gone(now, self, why)

    def on_blocked(self, now: int, blocked: bool) -> None:
        """Implements TransportConnection.on_blocked."""
        if self.member:
            self._protocol.members.on_blocked(self, blocked)
        elif blocked:
            self.close("answers are not read during the handshake")

    def check_alive(self, now: int) -> bool:
        """Implements TransportConnection.check_alive."""
        if not self.member:
            return now - self._opened < HANDSHAKE_NS
        return now - self._last_seen < SILENT_NS
