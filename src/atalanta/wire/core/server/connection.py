"""The server's side of one CORE connection: handshake, login, topology, and frames to their sessions.

Before login only PING, SUBSCRIBE_TOPOLOGY(_V2), CREATESESSION(_V2), REATTACH_SESSION, CHECK_FOR_FAILOVER and
CLUSTER_CONNECT are processed; any other packet closes the connection. PACKETS_CONFIRMED of a client that reconnects
from another node is ignored. Until login the topology is the node's own entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from atalanta.kernel.errors import (
    BrokerError,
)
from atalanta.kernel.security.security import Identity
from atalanta.wire.connection import (
    ARRIVAL_NS,
    DEFAULT_TTL_NS,
    ClientConnection,
    ProtocolError,
    Redirect,
)
from atalanta.wire.core import packet_types
from atalanta.wire.core.frames import FRAME_BYTES_MAX, Framer, write_frame_header
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, NodeAnnounce, ScaleDownAnnouncement
from atalanta.wire.core.packets.connection import (
    REASON_REDIRECT,
    REASON_SCALE_DOWN,
    CheckForFailover,
    CheckForFailoverReply,
    DisconnectV3,
    ExceptionResponse,
    Ping,
)
from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2, ReattachSession
from atalanta.wire.core.packets.topology import SubscribeTopology, SubscribeTopologyV2
from atalanta.wire.core.server.closed_session import answer_ended
from atalanta.wire.core.server.login import (
    CLUSTER_CHANNEL,
    Login,
    answered,
    log_in,
    log_in_peer,
    routed,
)
from atalanta.wire.core.server.reattach import end_session, reattach, remember
from atalanta.wire.core.server.redirect import CoreRedirect
from atalanta.wire.core.server.session import DELIVERED_BYTES_MAX, CoreSession
from atalanta.wire.core.server.session_creation import SERVER_VERSION, time_to_live_ms
from atalanta.wire.core.server.topology import send_member, send_member_gone

if TYPE_CHECKING:
    from atalanta.wire.core.config import AcceptorConfig
    from atalanta.wire.core.server.protocol import CoreProtocol
    from atalanta.wire.core.transport import TransportConfiguration

UNAUTHENTICATED_FRAME_BYTES_MAX: Final = 64 << 10
REDIRECT_VERSION_MIN: Final = 131  # reads DISCONNECT_V3
ROUTING_VERSION_MIN: Final = 131  # Artemis 2.18
CLUSTER_PACKETS: Final = (packet_types.NODE_ANNOUNCE, packet_types.SCALEDOWN_ANNOUNCEMENT)
# Packet types that are processed before login, each with its only channel.
HANDSHAKE_CHANNELS: Final[dict[int, int]] = {
    packet_types.PING: 0,
    packet_types.SUBSCRIBE_TOPOLOGY: 0,
    packet_types.SUBSCRIBE_TOPOLOGY_V2: 0,
    packet_types.CREATESESSION: 1,
    packet_types.CREATESESSION_V2: 1,
    packet_types.REATTACH_SESSION: 1,
    packet_types.CHECK_FOR_FAILOVER: 1,
    packet_types.CLUSTER_CONNECT: CLUSTER_CHANNEL,
}


class CoreConnection(ClientConnection):
    """A CORE client or peer. `version` is 0 until the peer sent it."""

    def __init__(
        self,
        protocol: CoreProtocol,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None = None,
    ) -> None:
        super().__init__(conn, remote, now, acceptor)
        self.protocol = protocol
        self.host = protocol.host
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False
        self.blocked: bool = False  # the peer reads too slowly
        self.full: bool = False  # no more deliveries in this batch of inputs
        self.framer: Framer = Framer(True, UNAUTHENTICATED_FRAME_BYTES_MAX)
        self.version: int = 0
        self.subscribed: bool = False
        self.sessions: dict[int, CoreSession] = {}
        self.ended: dict[int, bool] = {}  # channels of sessions that an operator closed
        self.ttl_ns: int = DEFAULT_TTL_NS
        self.login: Login = Login()
        self.holds: int = 0  # sessions that wait for the disk: input is held
        self.held: list[bytes] = []
        self.replaying: bool = False  # a session keeps its frames until they are confirmed
        self.pending_redirect: CoreRedirect | None = None  # until the client closes the connection
        self.pinned: bool = False  # the client needs this node

    # -- bytes in -------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.holds > 0 or self.held:  # released, but `resume` comes first
            self.held.append(data)
            return
        self.framer.begin(data)
        self._take_up(now)
        if self.pending_redirect is not None:
            self.pending_redirect.mark_received()

    def _take_up(self, now: int) -> None:
        """Processes the frames of the framer, until a session must wait for the disk."""
        framer = self.framer
        while self.holds == 0 and framer.step():
            if self.gone:
                return
            channel = framer.channel
            if channel < packet_types.FIRST_SESSION_CHANNEL:
                payload = framer.data[framer.start : framer.end]
                self._control(now, framer.type, channel, payload)
                continue
            session = self.sessions.get(channel)
            if session is None:
                self._unknown_channel(now, framer.type, channel)
            else:
                session.receive(now, framer.type, framer.data, framer.start, framer.end)

    def hold_input(self) -> None:
        """Holds input back while a session waits for the disk; the node stops reading from the socket."""
        self.holds += 1
        if self.holds == 1:
            self.host.wire.pause(self.conn)

    def release_input(self) -> None:
        """Ends one `hold_input`. The node calls `resume` after the last one."""
        self.holds -= 1
        if self.holds == 0:
            self.host.resumed.append(self.conn)

    def resume(self, now: int) -> None:
        self.last_seen = now
        while self.holds == 0 and not self.gone:
            self._take_up(now)
            if self.holds > 0 or not self.held:
                break
            self.framer.begin(self.held.pop(0))
        if self.pending_redirect is not None:
            self.pending_redirect.mark_received()
        if self.holds == 0:
            self.host.wire.resume(self.conn)

    def _unknown_channel(self, now: int, packet_type: int, channel: int) -> None:
        if not self.authenticated:
            if packet_type == packet_types.PACKETS_CONFIRMED and self.came_from is not None:
                # Such a client confirms packets of the other node with its pings (ChannelImpl.flushConfirmations).
                return
            raise ProtocolError(f"{packet_types.packet_name(packet_type)} before login")
        framer = self.framer
        redirect = self.pending_redirect
        if redirect is not None and channel in redirect.sessions:
            redirect.receive(now, packet_type, channel, framer.data, framer.start, framer.end)
        elif packet_type != packet_types.PACKETS_CONFIRMED:
            self.host.broker.trace.count("frames_for_closed_sessions")
            if channel in self.ended:
                answer_ended(self, packet_type, channel, framer.data, framer.start, framer.end)

    def _control(self, now: int, packet_type: int, channel: int, body: bytes) -> None:
        """Processes a packet below the sessions' channels. An unknown one closes the connection."""
        if HANDSHAKE_CHANNELS.get(packet_type) != channel:
            self._check_control(packet_type, channel)
            if packet_type == packet_types.PACKETS_CONFIRMED:
                return
        packet = codec.decode(packet_type, body, self.version)
        if isinstance(packet, Ping):
            self._ping(packet)
        elif isinstance(packet, SubscribeTopologyV2):
            self._subscribe(now, packet.is_cluster_connection, packet.client_version)
        elif isinstance(packet, SubscribeTopology):
            self._subscribe(now, packet.is_cluster_connection, 0)
        elif isinstance(packet, CreateSession):
            log_in(self, now, packet)
        elif isinstance(packet, ReattachSession):
            reattach(self, now, packet)
        elif isinstance(packet, CheckForFailover):
            self.came_from = packet.node_id or ""
            ok = not self.host.broker.stopping and self.host.cluster.may_fail_over(packet.node_id)
            self.send(CheckForFailoverReply(ok), channel)
        elif isinstance(packet, ClusterConnect):
            log_in_peer(self, now, packet)
        elif isinstance(packet, NodeAnnounce):
            self.host.cluster.announced(now, self, packet)
        elif isinstance(packet, ScaleDownAnnouncement):
            self.host.cluster.scaled_down(now, packet)
        else:
            self.host.closing.append((self.conn, "the peer said good-bye"))

    def _check_control(self, packet_type: int, channel: int) -> None:
        """Raises ProtocolError if the peer may not send this packet here; the body is not read before."""
        if self.authenticated:
            if packet_type == packet_types.PACKETS_CONFIRMED:
                return
            if packet_type in CLUSTER_PACKETS and channel == CLUSTER_CHANNEL and self.cluster_peer:
                return
            if channel == 0 and packet_type in (
                packet_types.DISCONNECT,
                packet_types.DISCONNECT_V2,
                packet_types.DISCONNECT_V3,
            ):
                return
        state = "" if self.authenticated else " before login"
        raise ProtocolError(f"{packet_types.packet_name(packet_type)} on channel {channel}{state}")

    # -- control packets ------------------------------------------------------------------------
    def _ping(self, packet: Ping) -> None:
        self.ttl_ns = time_to_live_ms(self, packet.connection_ttl_ms) * 1_000_000
        self.send(packet, 0)

    def _subscribe(self, now: int, is_cluster: bool, version: int) -> None:
        if version > 0 and self.version == 0:
            self.version = min(version, SERVER_VERSION)
        self.subscribed = True
        self.host.cluster.subscribe(now, self, is_cluster)

    def login_done(self, now: int, identity: Identity | None) -> None:
        """Processes the result of a login from `host.logins`. ProtocolError after too many wrong passwords."""
        if not self.gone:
            answered(self, now, identity)

    # -- topology and redirects -----------------------------------------------------------------
    def member_up(
        self,
        node_id: str,
        event_id: int,
        primary: TransportConfiguration | None,
        backup: TransportConfiguration | None,
        last: bool,
        backup_group: str | None,
        scale_down_group: str | None,
    ) -> None:
        send_member(
            self, node_id, event_id, primary, backup, last, backup_group, scale_down_group
        )

    def member_down(self, node_id: str, event_id: int) -> None:
        send_member_gone(self, node_id, event_id)

    def can_move(self) -> str | None:
        if self.version < REDIRECT_VERSION_MIN:
            return "too old for a redirect"
        return "reads this node's log" if self.pinned else None

    def begin_redirect(self, now: int, target_node: str) -> Redirect:
        redirect = CoreRedirect(self, now, target_node)
        redirect.begin()
        return redirect

    def current_redirect(self) -> Redirect | None:
        return self.pending_redirect

    def can_be_routed(self) -> str | None:
        if self.login.waiting[0].version < ROUTING_VERSION_MIN:
            return "clients before Artemis 2.18 cannot be routed"
        return None

    def can_repeat_login(self) -> bool:
        """Returns True for a Java client that has the topology, but not yet the version of this node.

        Such a client logs in as soon as it has the topology. A moment later it records that this node accepts a
        client id (ActiveMQClientProtocolManager.Channel0Handler).
        """
        login = self.login
        if isinstance(login.waiting[0], CreateSessionV2) or not self.subscribed or login.repeated:
            return False
        login.repeated = True
        return True

    def routed(self, now: int, error: BrokerError | None) -> None:
        routed(self, now, error)

    def redirect(self, node_id: str, target: TransportConfiguration) -> None:
        """Sends the client to another node. The client closes the connection; wire/core/server/redirect.py explains the
        empty node id."""
        self.send(
            DisconnectV3(node_id="", reason=REASON_REDIRECT, target_node_id=node_id, target=target),
            0,
        )

    def logged_in_by_session(self, now: int) -> None:
        """Records a login by the name of a session: the name is a secret of its user."""
        first = not self.authenticated
        self.login_succeeded()
        if first:
            self.logged_in(now)

    def login_succeeded(self) -> None:
        self.authenticated = True
        self.framer.frame_bytes_max = FRAME_BYTES_MAX

    def logged_in(self, now: int) -> None:
        if self.subscribed:
            self.host.cluster.logged_in(now, self)

    # -- frames out -----------------------------------------------------------------------------
    def start_frame(self, packet_type: int, channel: i64, body_bytes: i64) -> BytesWriter:
        """Writes the header of a frame; the caller writes exactly `body_bytes` into the returned writer."""
        out = self.out
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)
        write_frame_header(out, packet_type, channel, body_bytes)
        return out

    def start_writing(self) -> None:
        """Prepares `out` for a caller that writes frames into it directly."""
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)

    def sent_large(self) -> None:
        """Stops the deliveries of this batch of inputs if the pieces of large messages are enough."""
        if len(self.out) > DELIVERED_BYTES_MAX:
            self.delivered_enough()

    def send_frame(self, packet_type: int, channel: i64, body: bytes) -> None:
        self.start_frame(packet_type, channel, len(body)).write(body)

    def send(self, packet: Packet, channel: int) -> None:
        self.send_bytes(codec.encode(packet, channel, self.version))

    def send_bytes(self, frame: bytes) -> None:
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)
        self.out.write(frame)

    def send_exception(
        self, channel: i64, error: BrokerError, correlation: int, version: int
    ) -> None:
        """Channel 1 has a short form without the correlation (the codec knows)."""
        self.send_bytes(
            codec.encode(
                ExceptionResponse(error.code, error.text, correlation), int(channel), version
            )
        )

    def flush(self, now: int) -> None:
        if self.pending_redirect is not None and len(self.out):
            self.pending_redirect.answered(now)
        self.write_out(now)

    def write_out(self, now: int) -> None:
        """Writes the output buffer to the wire, also in the middle of a batch of inputs."""
        self.dirty = False
        if len(self.out):
            data = self.out.getvalue()
            self.out.truncate(0)
            if self.replaying:
                remember(self.sessions, data)
            self.host.wire.write(self.conn, data)
        if self.full:
            self.full = False
            if not self.blocked:
                self._hold(False)
                self.host.broker.wake(now)

    def settle(self, now: int) -> None:
        """Keeps all written frames for the sessions that may be reattached to another connection."""
        if not self.gone:
            self.write_out(now)
        elif len(self.out):
            remember(self.sessions, self.out.getvalue())
            self.out.truncate(0)

    # -- slow reader ----------------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        """Stops deliveries until the peer has read the output; its input is still processed.

        Before login the connection is closed instead: no client needs so many answers before login.
        """
        self.blocked = blocked
        if blocked and not self.authenticated:
            self.host.closing.append((self.conn, "answers are not read before login"))
        if not self.full:
            self._hold(blocked)

    def delivered_enough(self) -> None:
        """Stops the deliveries of this batch of inputs."""
        if not self.full:
            self.full = True
            if not self.blocked:
                self._hold(True)

    def _hold(self, hold: bool) -> None:
        hold = hold or self.pending_redirect is not None or self.arriving
        for session in self.sessions.values():
            session.session.set_blocked(hold)

    def hold_deliveries(self) -> None:
        """Stops the deliveries to a client with a pending redirect."""
        self._hold(True)

    def release_deliveries(self) -> None:
        """Delivers again to a client whose redirect was given up."""
        self._hold(self.blocked or self.full)

    # -- life -----------------------------------------------------------------------------------
    def end_by_operator(self, channel: int) -> None:
        """Ends the session of a channel; the client gets an error for its next request."""
        self.remove_session(channel)
        self.ended[channel] = True

    def remove_session(self, channel: int) -> None:
        self.sessions.pop(channel, None)

    def check_alive(self, now: int) -> bool:
        """Returns False if the peer is silent for longer than its TTL, or its login takes too long."""
        for session in self.sessions.values():
            session.confirm()
        if self.holds > 0:
            return True  # its input is held
        before_login = not self.authenticated and not self.subscribed
        why = self.overdue(now, self.ttl_ns, before_login)
        if why:
            self.host.timed_out(self, why)
        return not why

    def stop(self, now: int) -> None:
        """Says goodbye for a node that shuts down (DISCONNECT, reason 4).

        An Artemis client that reconnects from another node ignores the loss of this connection until it has its
        sessions here: failover, DISCONNECT and losses are tasks of one OrderedExecutor
        (ClientSessionFactoryImpl.closeExecutor). A request without an answer would block it for its call-timeout. So
        its requests get refusals, until it closes the connection or the node has waited long enough.

        It gets no more deliveries: its messages would go from one such client to the next as these close, and every
        delivery counts as an attempt (max-delivery-attempts).
        """
        comes = self.came_from is not None or not self.authenticated
        self.arriving = comes and now - self.opened < ARRIVAL_NS
        self._hold(True)
        self.say_goodbye()
        if not self.arriving:
            self.host.closing.append((self.conn, "the node stops"))

    def say_goodbye(self) -> None:
        """Sends DISCONNECT, with the successor of a node that leaves unless the peer must not know of it yet."""
        successor = self.host.successor
        node_id = self.host.broker.node_id
        if successor is None or self.untold:
            self.send(DisconnectV3(node_id=node_id), 0)
            return
        goodbye = DisconnectV3(
            node_id=node_id,
            reason=REASON_SCALE_DOWN,
            target_node_id=successor.node_id,
            target=successor.transport,
        )
        self.send(goodbye, 0)

    def turn_away(self, now: int, held_ns: int) -> None:
        super().turn_away(now, held_ns)
        if self.arriving:
            if self.pending_redirect is not None:
                self.pending_redirect.restore_sessions()
            for channel in self.sessions:
                self.ended[channel] = True
            self.end_sessions(now)
            self.release_input()

    def refuse(self, told: bool) -> None:
        super().refuse(told)
        if told and self.host.successor is not None:
            self.say_goodbye()

    def tell(self) -> None:
        super().tell()
        self.say_goodbye()

    def closed(self, now: int, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        if self.pending_redirect is not None:
            self.pending_redirect.restore_sessions()
        self.host.cluster.unsubscribe(self)
        self.end_sessions(now)

    def end_sessions(self, now: int) -> None:
        for session in list(self.sessions.values()):
            session.closed(now, True)
        self.sessions.clear()
        self.client.close(now, self.host.broker, True)

    def lost(self, now: int, why: str) -> None:
        """Keeps the sessions that can be reattached, for the time to live of the connection."""
        redirected = self.pending_redirect is not None
        if self.gone or not self.replaying or self.host.broker.stopping or redirected:
            self.closed(now, why)
            return
        for session in list(self.sessions.values()):
            if session.replay is None:
                end_session(session, now)
        if not self.sessions:
            self.closed(now, why)
            return
        self.gone = True
        self.settle(now)
        self.host.cluster.unsubscribe(self)
        self._hold(True)
        self.protocol.resumable.keep(now, self)
