"""The client's side of a CORE connection, without any I/O: bytes in by `feed`, bytes out by `write`.

One ClientConnection outlives its transports: `start` when one stands, `lost` when it is gone, and
with settings.resume every session, consumer and unconfirmed message is there again on the next.
`now` is integer nanoseconds. Handshake as artemis-jms-client 2.44 does it (fact sheet A1.a,
"Observed JMS conversation"): ARTEMIS, PING, SUBSCRIBE_TOPOLOGY_V2, CREATESESSION_V2 per session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.errors import (
    CallTimedOut,
    ClientError,
    Closed,
    ConnectionLost,
    error_of,
)
from atalanta.wire.core.client.events import ClientEvents
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.client.settings import ConnectionSettings, SessionSettings
from atalanta.wire.core.client.topology import Member, apply_topology
from atalanta.wire.core.frames import FRAME_BYTES_MAX, Framer
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    CheckForFailover,
    Disconnect,
    DisconnectV2,
    DisconnectV3,
    ExceptionResponse,
    Ping,
)
from atalanta.wire.core.packets.session import CreateSessionResponse, SessionClose
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2
from atalanta.wire.http_upgrade import UpgradeRequest

if TYPE_CHECKING:
    from atalanta.wire.core.client.consumer import ClientConsumer

# A broker that refuses a session for one of these reasons will do so again.
FINAL_REFUSALS: Final = (105, 108, 212)
# A node that starts or stops; a connection router that sends us elsewhere (said before) or has no target yet.
NOT_HERE_OR_NOW: Final = (112, 222)
NO_REASON: Final = -1
MILLISECOND_NS: Final = 1_000_000
LATE_NS: Final = 12_000_000_000  # between two calls of on_timer
MEMBERS_MAX: Final = 10_000


class ClientConnection:
    """`connected`: a transport stands. `version` is the protocol's, 0 until the broker told it.

    `failed` is set for good by `fail`: no request is taken any more.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        settings: ConnectionSettings,
        events: ClientEvents | None = None,
    ) -> None:
        self.settings = settings
        self.events: ClientEvents = ClientEvents() if events is None else events
        self.connected: bool = False
        self.version: int = 0
        self.now: int = 0
        self.failed: ClientError | None = None
        self.sessions: dict[int, ClientSession] = {}
        self.topology: dict[str, Member] = {}
        self.topology_complete: bool = False
        self.node_id: str | None = None
        self._named: dict[str, bool] = {}  # members that this transport's broker has told of
        self._write = write
        self._framer = Framer(False, FRAME_BYTES_MAX)
        self._upgrade: UpgradeRequest | None = None
        self._early: list[bytes] = []  # until the other side agrees to speak CORE
        self._opening: deque[ClientSession] = deque()
        self._opening_deadline: int = 0
        self._unready: int = 0
        self._next_channel: int = packet_types.FIRST_SESSION_CHANNEL
        self._last_seen: int = 0
        self._last_tick: int = 0
        self._next_ping: int = 0
        self._flush: list[ClientConsumer] = []

    # -- transport ------------------------------------------------------------------------------
    def write(self, frame: bytes) -> None:
        """Bytes to the broker; nothing without a transport."""
        if self.connected:
            if self._upgrade is not None:
                self._early.append(frame)
            else:
                self._write(frame)

    def start(self, now: int) -> None:
        """A transport stands: greet, and make the sessions (again)."""
        self.now = now
        self.connected = True
        self.version = 0
        self.topology_complete = False
        self._named.clear()
        self._framer = Framer(False, FRAME_BYTES_MAX)
        self._last_seen = now
        self._last_tick = now
        self._early.clear()
        self._upgrade = None if self.settings.upgrade is None else self.settings.upgrade()
        if self._upgrade is not None:
            self._write(self._upgrade.request)
        self.write(packet_types.HANDSHAKE)
        self._ping(now)
        if self.settings.subscribe_topology:
            flag = self.settings.cluster_connection
            self.send(packet_types.PING_CHANNEL, SubscribeTopologyV2(flag, packet_types.NEWEST_VERSION))
        if self.settings.may_move:
            # As an Artemis client asks when it reconnects; nodes of ours see by it whom they may send elsewhere.
            self.send(packet_types.SESSION_CHANNEL, CheckForFailover(self.node_id))
        self.node_id = None
        self._opening.clear()
        self._opening_deadline = 0
        self._unready = len(self.sessions)
        for session in list(self.sessions.values()):
            self._opening.append(session)
        if self._opening:
            self._open_next()
        else:
            self.events.ready()

    def feed(self, now: int, data: bytes) -> None:
        """Bytes of the broker. ClientEvents.broken is told when they cannot be understood."""
        self.now = now
        self._last_seen = now
        try:
            if self._upgrade is not None:
                data = self._upgraded(self._upgrade, data)
            for frame in self._framer.feed(data):
                if not self.connected:
                    return
                channel = frame.channel
                if channel >= packet_types.FIRST_SESSION_CHANNEL:
                    session = self.sessions.get(channel)
                    if session is not None:
                        session.receive(frame.type, frame.data, int(frame.start), int(frame.end))
                elif frame.type != packet_types.PACKETS_CONFIRMED:
                    self._control(channel, codec.decode_frame(frame, self.version))
        except (DecodeError, ProtocolError) as error:
            self.events.broken(f"the broker sent what cannot be understood: {error}")

    def _upgraded(self, upgrade: UpgradeRequest, data: bytes) -> bytes:
        """What came behind the answer to the HTTP request; what waited for it goes out."""
        upgrade.feed(data)
        if upgrade.done:
            self._upgrade = None
            for frame in self._early:
                self._write(frame)
            self._early.clear()
        return upgrade.rest

    def lost(self, now: int, why: str) -> None:
        """The transport is gone."""
        self.now = now
        if not self.connected:
            return
        self.connected = False
        self._opening.clear()
        self._opening_deadline = 0
        self._flush.clear()
        error = ConnectionLost(f"connection lost: {why}", 4)
        for session in list(self.sessions.values()):
            session.lost(error)

    def fail(self, error: ClientError) -> None:
        """For good: everything that waits gets the error, and so does whoever asks anew."""
        if self.failed is None:
            self.failed = error
        self.connected = False
        for session in list(self.sessions.values()):
            session.finish(error)
        self.sessions.clear()

    def close(self) -> None:
        """This program is done: what still waits learns that."""
        self.fail(Closed("the connection is closed"))

    # -- time -----------------------------------------------------------------------------------
    def on_timer(self, now: int) -> None:
        """About every second: pings, silence, answers that do not come."""
        self.now = now
        if not self.connected:
            return
        settings = self.settings
        if now - self._last_tick > LATE_NS:
            # It was this program that stood still: it may have heard nothing for that reason.
            self._last_seen = max(self._last_seen, now - settings.ttl_ns // 2)
        self._last_tick = now
        if settings.ttl_ns >= 0 and now - self._last_seen > settings.ttl_ns:
            self.events.broken(f"nothing was heard for {settings.ttl_ns // 1_000_000_000} s")
            return
        if self._opening_deadline and now >= self._opening_deadline:
            self.events.broken("the broker did not answer a login within callTimeout")
            return
        if settings.ping_period_ns >= 0 and now >= self._next_ping:
            self._ping(now)
        for session in list(self.sessions.values()):
            session.check_deadlines(now)
            session.confirm()

    def _ping(self, now: int) -> None:
        settings = self.settings
        period = settings.ping_period_ns
        if settings.ttl_ns >= 0:
            period = min(period, settings.ttl_ns // 2) if period >= 0 else settings.ttl_ns // 2
        self._next_ping = now + period
        ttl_ms = settings.ttl_ns // MILLISECOND_NS if settings.ttl_ns >= 0 else -1
        self.send(packet_types.PING_CHANNEL, Ping(ttl_ms))

    def timed_out(self) -> CallTimedOut:
        """For a request whose answer is late."""
        return CallTimedOut(f"no answer within {self.settings.call_timeout_ns // 1_000_000} ms", 3)

    def want_flush(self, consumer: ClientConsumer) -> None:
        """`consumer` has something to say at the end of the turn."""
        self._flush.append(consumer)
        if len(self._flush) == 1:
            self.events.want_flush()

    def flush(self) -> None:
        """The end of a turn: acknowledgements that were collected."""
        if self._flush:
            consumers = self._flush
            self._flush = []
            for consumer in consumers:
                consumer.flush_acknowledge()

    # -- sessions -------------------------------------------------------------------------------
    def session(self, settings: SessionSettings) -> ClientSession:
        """A new session; its `opened` reply is done when the broker has made it."""
        if self.failed is not None:
            raise self.failed
        session = ClientSession(self, self._next_channel, settings)
        self._next_channel += 1
        self.sessions[session.channel] = session
        if self.connected:
            self._unready += 1
            self._opening.append(session)
            if len(self._opening) == 1:
                self._open_next()
        return session

    def forget(self, session: ClientSession) -> None:
        """The session has ended."""
        self.sessions.pop(session.channel, None)

    def send(self, channel: int, packet: Packet) -> None:
        """Any packet on any channel."""
        self.write(codec.encode(packet, channel, self.version))

    def _open_next(self) -> None:
        """One at a time: answers on channel 1 do not say whom they are for."""
        self._opening_deadline = 0
        while self._opening and self._opening[0].closed:
            self._opening.popleft()
            self._unready -= 1
        if self._opening:
            self._opening_deadline = self.now + self.settings.call_timeout_ns
            self.send(packet_types.SESSION_CHANNEL, self._opening[0].creation())

    def _session_made(self, packet: CreateSessionResponse) -> None:
        if not self._opening:
            return
        self.version = min(packet.server_version, packet_types.NEWEST_VERSION)
        session = self._opening.popleft()
        self._unready -= 1
        if session.closed:
            self.send(session.channel, SessionClose())  # it was given up while it was made
        else:
            session.begin()
        self._open_next()
        if self._unready == 0:
            self.events.ready()

    def _session_refused(self, packet: ExceptionResponse) -> None:
        if not self._opening:
            return
        error = error_of(packet.code, packet.message)
        session = self._opening.popleft()
        self._unready -= 1
        if session.closed:
            self._open_next()  # it was given up while it was made
            if self._unready == 0:
                self.events.ready()
            return
        known = session.opened.done
        again = packet.code in NOT_HERE_OR_NOW or (known and packet.code not in FINAL_REFUSALS)
        if again and self.settings.resume:
            # A node that is starting or stopping: the session is wanted still.
            self.events.broken(f"the broker refused a session: {error.text}")
            return
        session.finish(error)
        if known:
            self.fail(error)
            self.events.broken(f"the broker refused a session: {error.text}")
            return
        self._open_next()

    # -- channels below the sessions' -----------------------------------------------------------
    def _control(self, channel: int, packet: Packet) -> None:
        if isinstance(packet, Ping):
            return
        if channel == packet_types.SESSION_CHANNEL and isinstance(packet, CreateSessionResponse):
            self._session_made(packet)
        elif channel == packet_types.SESSION_CHANNEL and isinstance(packet, ExceptionResponse):
            self._session_refused(packet)
        elif isinstance(packet, ClusterTopology):
            self.events.packet(channel, packet)
            self._topology(packet)
        elif isinstance(packet, DisconnectV3):
            self._disconnected(packet.reason, packet.target_node_id, packet)
        elif isinstance(packet, DisconnectV2):
            self._disconnected(NO_REASON, packet.scale_down_node_id, None)
        elif isinstance(packet, Disconnect):
            self._disconnected(NO_REASON, None, None)
        else:
            self.events.packet(channel, packet)

    def _topology(self, packet: ClusterTopology) -> None:
        if not packet.exit and self.node_id is None:
            self.node_id = packet.node_id
        if len(self.topology) >= MEMBERS_MAX and packet.node_id not in self.topology:
            raise ProtocolError(f"a topology of more than {MEMBERS_MAX} members")
        changed = apply_topology(self.topology, packet)
        if not self.topology_complete:
            self._named[packet.node_id] = True
            if packet.last:
                self.topology_complete = True
                self._forget_members()
        if changed or packet.last:
            self.events.topology_changed()

    def _forget_members(self) -> None:
        """Who left while this client was away is not told of: it is just not among those that are named."""
        for node_id in list(self.topology):
            if node_id not in self._named:
                del self.topology[node_id]

    def _disconnected(
        self, reason: int, target_node_id: str | None, packet: DisconnectV3 | None
    ) -> None:
        target = None if packet is None else packet.target
        self.events.disconnected(reason, target_node_id, target)
        self.events.broken("the broker said good-bye")
