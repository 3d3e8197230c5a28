"""The client's side of a CORE connection, without I/O: bytes in by `feed`, bytes out by `write`.

One BrokerConnection outlives its transports: `start` follows a connect, `lost` follows the end of the transport.
With settings.resume every session, consumer and unconfirmed message continues on the next transport.
`now` is integer nanoseconds. The handshake is that of artemis-jms-client 2.44: ARTEMIS, PING, SUBSCRIBE_TOPOLOGY_V2,
and, when the topology has told the broker's version, one CREATESESSION_V2 for each session
(wire/core/client/version_negotiation.py). wire/core/client/transport.py has frames, pings and timeouts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.errors import (
    FINAL_REFUSALS,
    ClientError,
    Closed,
    ConnectionLost,
    error_of,
)
from atalanta.wire.core.client.events import ClientEvents
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.client.settings import ConnectionSettings, SessionSettings
from atalanta.wire.core.client.topology import Member, apply_topology
from atalanta.wire.core.client.transport import (
    CoreTransport,
    DisconnectNotice,
    disconnect_notice_of,
)
from atalanta.wire.core.client.version_negotiation import VersionNegotiation
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import CheckForFailover, ExceptionResponse
from atalanta.wire.core.packets.session import CreateSessionResponse, SessionClose
from atalanta.wire.core.packets.topology import ClusterTopology
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.core.client.consumer import ClientConsumer

# The node starts or stops (104: for a client that came from another node), or a connection router redirects the client
# or has no target yet.
NOT_HERE_OR_NOW: Final = (104, 112, 222)
LATE_NS: Final = 12_000_000_000  # between two calls of on_timer
MEMBERS_MAX: Final = 10_000


class BrokerConnection:
    """The connection's state. `connected`: there is a transport. `version` is 0 until the broker sent it.

    `failed` is set by `fail` and stays: no request is accepted any more.
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
        self.now: int = 0
        self.failed: ClientError | None = None
        self.sessions: dict[int, ClientSession] = {}
        self.topology: dict[str, Member] = {}
        self.topology_complete: bool = False
        self.node_id: str | None = None
        self._named: dict[str, bool] = {}  # members that the broker named on this transport
        self._write = write
        self._transport: CoreTransport = CoreTransport(settings)
        self._negotiation = VersionNegotiation(self._send_on)
        self._opening: deque[ClientSession] = deque()
        self._unready: int = 0
        self._next_channel: int = packet_types.FIRST_SESSION_CHANNEL
        self._last_tick: int = 0
        self._flush: list[ClientConsumer] = []

    @property
    def version(self) -> int:
        return self._negotiation.version if self._negotiation.known else 0

    @property
    def between_frames(self) -> bool:
        """Returns whether the next byte of the broker begins a frame."""
        return self._transport.framer.kept_bytes == 0

    # -- transport ------------------------------------------------------------------------------
    def write(self, frame: bytes) -> None:
        """Writes bytes to the broker. Without a transport they are dropped."""
        if self.connected and not self._transport.hold(frame):
            self._write(frame)

    def start(self, now: int) -> None:
        """Starts on a new transport: sends the greeting and creates the sessions (again)."""
        self.now = now
        self.connected = True
        self._negotiation = VersionNegotiation(self._send_on)
        self.topology_complete = False
        self._named.clear()
        self._last_tick = now
        upgrade = self.settings.upgrade
        self._write(self._transport.begin(now, None if upgrade is None else upgrade()))
        if self.settings.subscribe_topology:
            self._negotiation.subscribe(self.settings.cluster_connection)
        if self.settings.may_move:
            # Artemis clients send it when they reconnect. Atalanta nodes may redirect a client that sent it.
            self.send(packet_types.SESSION_CHANNEL, CheckForFailover(self.node_id))
        self.node_id = None
        self._opening.clear()
        self._unready = len(self.sessions)
        for session in list(self.sessions.values()):
            self._opening.append(session)
        if self._opening:
            self._open_next()
        else:
            self.events.ready()

    def feed(self, now: int, data: bytes) -> None:
        """Takes bytes of the broker. ClientEvents.broken is called if they are invalid."""
        self.now = now
        transport = self._transport
        try:
            released = transport.receive(now, data)
            if released:
                self._write(released)
            while self.connected and transport.step():
                framer = transport.framer
                channel = framer.channel
                if channel >= packet_types.FIRST_SESSION_CHANNEL:
                    session = self.sessions.get(channel)
                    if session is not None:
                        session.receive(framer.type, framer.data, int(framer.start), int(framer.end))
                else:
                    self._control(channel, transport.packet(self.version))
        except (DecodeError, ProtocolError) as error:
            self.events.broken(f"the broker sent what cannot be understood: {error}")

    def lost(self, now: int, why: str) -> None:
        """Records that the transport is gone."""
        self.now = now
        if not self.connected:
            return
        self.connected = False
        self._opening.clear()
        self._transport.answered()
        self._flush.clear()
        error = ConnectionLost(f"connection lost: {why}", 4)
        for session in list(self.sessions.values()):
            session.lost(error)

    def fail(self, error: ClientError) -> None:
        """Ends the connection for ever: all pending and all later requests fail with the error."""
        if self.failed is None:
            self.failed = error
        self.connected = False
        for session in list(self.sessions.values()):
            session.finish(error)
        self.sessions.clear()
        self.events.failed()

    def close(self) -> None:
        """Closes the connection: pending requests fail with Closed."""
        self.fail(Closed("the connection is closed"))

    # -- time -----------------------------------------------------------------------------------
    def on_timer(self, now: int) -> None:
        """Sends pings and checks timeouts. To be called about every second."""
        self.now = now
        if not self.connected:
            return
        transport = self._transport
        if now - self._last_tick > LATE_NS:
            transport.resumed(now)
        self._last_tick = now
        failure = transport.failure(now)
        if failure:
            self.events.broken(failure)
            return
        if transport.ping_due(now):
            self.write(transport.ping(now))
        for session in list(self.sessions.values()):
            session.check_deadlines(now)
            session.confirm()

    def want_flush(self, consumer: ClientConsumer) -> None:
        """Registers the consumer for `flush`: acknowledgements of it are collected."""
        self._flush.append(consumer)
        if len(self._flush) == 1:
            self.events.want_flush()

    def flush(self) -> None:
        """Sends the collected acknowledgements. To be called at the end of an event-loop iteration."""
        if self._flush:
            consumers = self._flush
            self._flush = []
            for consumer in consumers:
                consumer.flush_acknowledge()

    # -- sessions -------------------------------------------------------------------------------
    def session(self, settings: SessionSettings) -> ClientSession:
        """Returns a new session. Its `opened` reply is done when the broker has created it."""
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
        """Removes a session that has ended."""
        self.sessions.pop(session.channel, None)

    def send(self, channel: int, packet: Packet) -> None:
        """Sends a packet on a channel."""
        self.write(codec.encode(packet, channel, self.version))

    def _send_on(self, packet: Packet, channel: int) -> None:
        self.send(channel, packet)

    def _open_next(self) -> None:
        """Creates the next session. One at a time: answers on channel 1 do not name the session."""
        self._transport.answered()
        while self._opening and self._opening[0].closed:
            self._opening.popleft()
            self._unready -= 1
        if self._opening:
            self._transport.await_answer(self.now)
            session = self._opening[0]
            self._negotiation.create(session.settings, session.channel, self.settings.subscribe_topology)

    def _session_made(self) -> None:
        if not self._opening:
            return
        session = self._opening.popleft()
        self._unready -= 1
        if session.closed:
            self.send(session.channel, SessionClose())  # closed by the program before the answer came
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
            self._open_next()  # closed by the program before the answer came
            if self._unready == 0:
                self.events.ready()
            return
        known = session.opened.done
        again = packet.code in NOT_HERE_OR_NOW or (known and packet.code not in FINAL_REFUSALS)
        first = not any(each.opened.done for each in self.sessions.values())
        if again and (self.settings.resume or first):
            # The node is starting or stopping. The session is created on the next transport, if there is one: the
            # first login goes on to the other servers of the list.
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
        if self._negotiation.on_packet(packet, channel):
            return
        if channel == packet_types.SESSION_CHANNEL and isinstance(packet, CreateSessionResponse):
            self._session_made()
        elif channel == packet_types.SESSION_CHANNEL and isinstance(packet, ExceptionResponse):
            self._session_refused(packet)
        elif isinstance(packet, ClusterTopology):
            self.events.packet(channel, packet)
            self._topology(packet)
        else:
            goodbye = disconnect_notice_of(packet)
            if goodbye is not None:
                self._disconnected(goodbye)
            else:
                self.events.packet(channel, packet)

    def _topology(self, packet: ClusterTopology) -> None:
        if not packet.exit and self.node_id is None:
            self.node_id = packet.node_id
        if len(self.topology) >= MEMBERS_MAX and packet.node_id not in self.topology:
            raise ProtocolError(f"a topology of more than {MEMBERS_MAX} members")
        first = not self.topology_complete and packet.node_id not in self._named
        changed = apply_topology(self.topology, packet, first)
        if not self.topology_complete:
            self._named[packet.node_id] = True
            if packet.last:
                self.topology_complete = True
                self._forget_members()
        if changed or packet.last:
            self.events.topology_changed()

    def _forget_members(self) -> None:
        """Removes members that left while this client was disconnected: the new topology does not name them."""
        for node_id in list(self.topology):
            if node_id not in self._named:
                del self.topology[node_id]

    def _disconnected(self, goodbye: DisconnectNotice) -> None:
        self.events.disconnected(goodbye.reason, goodbye.target_node_id, goodbye.target)
        self.events.broken("the broker said good-bye")
