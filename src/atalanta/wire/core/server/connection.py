"""The server's side of one CORE connection: handshake, login, topology, and frames to their sessions.

Before login only PING, SUBSCRIBE_TOPOLOGY(_V2), CREATESESSION(_V2), REATTACH_SESSION, CHECK_FOR_FAILOVER and
CLUSTER_CONNECT are processed; any other packet closes the connection. PACKETS_CONFIRMED of a client that reconnects
from another node is ignored. Until login the topology is the node's own entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.security.cluster_proof import PeerChallenge
from atalanta.wire.connection import ARRIVAL_NS, DEFAULT_TTL_NS, Redirect
from atalanta.wire.core import packet_types
from atalanta.wire.core.frames import FRAME_BYTES_MAX, Framer
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.cluster import (
    BackupRegistration,
    BackupRequest,
    ClusterConnect,
    ClusterProof,
    NodeAnnounce,
    QuorumVote,
    ScaleDownAnnouncement,
)
from atalanta.wire.core.packets.connection import (
    REASON_REDIRECT,
    REASON_SCALE_DOWN,
    CheckForFailover,
    CheckForFailoverReply,
    DisconnectV3,
    Ping,
    disconnect_of,
)
from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2, ReattachSession
from atalanta.wire.core.packets.topology import SubscribeTopology, SubscribeTopologyV2
from atalanta.wire.core.server.frame_connection import SERVER_VERSION, FrameConnection
from atalanta.wire.core.server.pair_requests import answer_pair_request
from atalanta.wire.core.server.reattach import end_session, reattach, remember
from atalanta.wire.core.server.redirect import CoreRedirect
from atalanta.wire.core.server.requests.closed_session import answer_closed
from atalanta.wire.core.server.requests.session_requests import receive
from atalanta.wire.core.server.session_creation import (
    CLUSTER_CHANNEL,
    CoreLogin,
    check_peer,
    check_version,
    log_in_peer,
    login_of,
    open_session,
    time_to_live_ms,
)
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.core.server.reattach import Resumable
    from atalanta.wire.core.server.resend_buffer import Replay
    from atalanta.wire.core.server.session import CoreSession
    from atalanta.wire.core.server.shared_state import SharedState
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.login import LoginRequest
    from atalanta.wire.server import WireServer

UNAUTHENTICATED_FRAME_BYTES_MAX: Final = 64 << 10
REDIRECT_VERSION_MIN: Final = 131  # reads DISCONNECT_V3
ROUTING_VERSION_MIN: Final = 131  # Artemis 2.18
CLUSTER_PACKETS: Final = (
    packet_types.NODE_ANNOUNCE,
    packet_types.SCALEDOWN_ANNOUNCEMENT,
    packet_types.QUORUM_VOTE,
    packet_types.BACKUP_REGISTRATION,
    packet_types.BACKUP_REQUEST,
)
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
    packet_types.CLUSTER_PROOF: CLUSTER_CHANNEL,
}


class CoreConnection(FrameConnection):
    """A CORE client or peer."""

    def __init__(
        self,
        host: WireServer,
        shared: SharedState,
        resumable: Resumable,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None,
    ) -> None:
        super().__init__(host, shared, conn, remote, now, acceptor)
        self.resumable = resumable
        self.framer: Framer = Framer(True, UNAUTHENTICATED_FRAME_BYTES_MAX)
        self.subscribed: bool = False
        self.sessions: dict[int, CoreSession] = {}
        self.ended: dict[int, bool] = {}  # channels of sessions that an operator closed
        self.ttl_ns: int = DEFAULT_TTL_NS
        self.peer_challenge = PeerChallenge()
        self.login_repeated: bool = False  # a login was refused for its missing client id
        self.replaying: bool = False  # a session keeps its frames until they are confirmed
        self.pending_redirect: CoreRedirect | None = None  # until the client closes the connection

    # -- bytes in -------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.holds > 0 or self.held:  # released, but `resume` comes first
            self.held.append(data)
            return
        self.framer.begin(data)
        self.take_up(now)
        self.count_unfinished()

    def drop_unfinished(self) -> None:
        self.framer.drop()

    def unfinished_bytes(self) -> int:
        return self.framer.kept_bytes + self.large_bytes

    def take_up(self, now: int) -> None:
        framer = self.framer
        command = self.host.broker.command
        command.begin()
        while self.holds == 0 and framer.step():
            if self.gone:
                break
            channel = framer.channel
            if channel < packet_types.FIRST_SESSION_CHANNEL:
                payload = framer.data[framer.start : framer.end]
                self._control(now, framer.type, channel, payload)
            else:
                session = self.sessions.get(channel)
                if session is None:
                    self._unknown_channel(now, framer.type, channel)
                else:
                    receive(session, now, framer.type, framer.data, framer.start, framer.end)
            command.begin()
        if self.pending_redirect is not None:
            self.pending_redirect.mark_received()

    def command_name(self) -> str:
        return packet_types.packet_name(self.framer.type)

    def decode_next(self, data: bytes) -> None:
        self.framer.begin(data)

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
                answer_closed(self, packet_type, channel, framer.data, framer.start, framer.end)
                if packet_type == packet_types.SESS_CLOSE:
                    del self.ended[channel]

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
            self.log_in(now, login_of(self, packet))
        elif isinstance(packet, ReattachSession):
            reattach(self, now, packet)
        elif isinstance(packet, CheckForFailover):
            self.came_from = packet.node_id or ""
            ok = not self.host.broker.stopping and self.host.cluster.may_fail_over(packet.node_id)
            self.send(CheckForFailoverReply(ok), channel)
        elif isinstance(packet, ClusterConnect):
            log_in_peer(self, now, packet)
        elif isinstance(packet, ClusterProof):
            check_peer(self, now, packet)
        elif isinstance(packet, NodeAnnounce):
            self.host.broker.command.begin_change()
            self.host.cluster.announced(now, self, packet)
        elif isinstance(packet, ScaleDownAnnouncement):
            self.host.broker.command.begin_change()
            self.host.cluster.scaled_down(now, packet)
        elif isinstance(packet, BackupRegistration | BackupRequest | QuorumVote):
            self.host.broker.command.begin_change()
            answer_pair_request(self, now, packet)
        else:
            self.host.closing.append((self.conn, "the peer disconnected"))

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
        if version > 0:
            self.agree_on_version(version)
        self.subscribed = True
        self.host.cluster.subscribe(now, self, is_cluster)

    def agree_on_version(self, version: int) -> None:
        """Keeps the first version that the client names, if this node knows it; else its own.

        A Java client that creates a session again names the version of the server before (newCreateSession of
        ActiveMQSessionContext), not its own, which SUBSCRIBE_TOPOLOGY_V2 of this connection had.
        """
        if self.version == 0:
            self.version = min(version, SERVER_VERSION)

    # -- logins ---------------------------------------------------------------------------------
    def check_login(self, request: LoginRequest) -> None:
        check_version(self, request)

    def open_session(self, now: int, request: LoginRequest, identity: Identity) -> None:
        open_session(self, now, request, identity)

    def logged_in_by_session(self, now: int, user: str) -> None:
        """Records a login by the name of a session: the name is a secret of its user."""
        first = not self.authenticated
        self.login_succeeded()
        if first:
            self.count_for(user)
            self.logged_in(now)

    def login_succeeded(self) -> None:
        if not self.authenticated:
            self.authenticated = True
            self.framer.frame_bytes_max = FRAME_BYTES_MAX
            self.host.wire.logged_in(self.conn)

    def logged_in(self, now: int) -> None:
        if self.subscribed:
            self.host.cluster.logged_in(now, self)

    # -- redirects ------------------------------------------------------------------------------
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
        request = self.logins[0]
        version = self.version
        if version == 0 and isinstance(request, CoreLogin):
            version = request.packet.version
        if version < ROUTING_VERSION_MIN:
            return "clients before Artemis 2.18 cannot be routed"
        return None

    def can_repeat_login(self) -> bool:
        """Returns True for a Java client that has the topology, but not yet the version of this node.

        Such a client logs in as soon as it has the topology. A moment later it records that this node accepts a
        client id (ActiveMQClientProtocolManager.Channel0Handler).
        """
        request = self.logins[0]
        knows_version = isinstance(request, CoreLogin) and isinstance(request.packet, CreateSessionV2)
        if knows_version or not self.subscribed or self.login_repeated:
            return False
        self.login_repeated = True
        return True

    def redirect(self, node_id: str, target: TransportConfiguration) -> None:
        """Sends the client to another node. The client closes the connection; wire/core/server/redirect.py explains the
        empty node id."""
        self.send(
            DisconnectV3(node_id="", reason=REASON_REDIRECT, target_node_id=node_id, target=target),
            0,
        )

    # -- bytes out ------------------------------------------------------------------------------
    def flush(self, now: int) -> None:
        if self.pending_redirect is not None and len(self.out):
            self.pending_redirect.answered(now)
        self.write_out(now)

    def write(self, now: int, data: bytes) -> None:
        if self.replaying:
            remember(self.sessions, data)
        self.host.wire.write(self.conn, data)

    def settle(self, now: int) -> None:
        """Keeps all written frames for the sessions that may be reattached to another connection."""
        if not self.gone:
            self.write_out(now)
        elif len(self.out):
            remember(self.sessions, self.out.getvalue())
            self.out.truncate(0)

    def holds_deliveries(self) -> bool:
        return self.pending_redirect is not None or self.reconnecting

    def block_deliveries(self, blocked: bool) -> None:
        for session in self.sessions.values():
            session.session.set_blocked(blocked)

    # -- life -----------------------------------------------------------------------------------
    def end_by_operator(self, channel: int) -> None:
        self.remove_session(channel)
        self.ended[channel] = True

    def remove_session(self, channel: int) -> None:
        self.sessions.pop(channel, None)

    def forget_replay(self, replay: Replay) -> None:
        self.resumable.forget(replay)

    def check_alive(self, now: int) -> bool:
        """Returns False if the peer is silent for longer than its TTL, or its login takes too long."""
        for session in self.sessions.values():
            session.confirm()
        before_login = not self.authenticated and not self.subscribed
        return self.holds > 0 or self.is_in_time(now, self.ttl_ns, before_login)

    def stop(self, now: int) -> None:
        """Sends DISCONNECT (reason 4) for a node that shuts down.

        An Artemis client that reconnects from another node ignores the loss of this connection until it has its
        sessions here: failover, DISCONNECT and losses are tasks of one OrderedExecutor
        (ClientSessionFactoryImpl.closeExecutor). A request without an answer would block it for its call-timeout. So
        its requests get refusals, until it closes the connection or the node has waited long enough.

        It gets no more deliveries: its messages would go from one such client to the next as these close, and every
        delivery counts as an attempt (max-delivery-attempts).
        """
        may_reconnect = self.came_from is not None or not self.authenticated
        self.reconnecting = may_reconnect and now - self.opened < ARRIVAL_NS
        self.block_deliveries(True)
        self.send_disconnect()
        if not self.reconnecting:
            self.host.closing.append((self.conn, "the node stops"))

    def send_disconnect(self) -> None:
        """Sends DISCONNECT, with the successor of a node that leaves unless the peer must not know of it yet."""
        successor = self.host.successor
        node_id = self.host.broker.node_id
        if successor is None or self.disconnect_delayed:
            self.tell(disconnect_of(self.version, node_id), 0)
            return
        self.tell(
            disconnect_of(self.version, node_id, REASON_SCALE_DOWN, successor.node_id, successor.transport), 0
        )

    def disconnect(self, now: int, held_ns: int) -> None:
        super().disconnect(now, held_ns)
        if self.reconnecting:
            if self.pending_redirect is not None:
                self.pending_redirect.restore_sessions()
            for channel in self.sessions:
                self.ended[channel] = True
            self.end_sessions(now)
            self.release_input()

    def refuse_requests(self, notified: bool) -> None:
        super().refuse_requests(notified)
        if notified and self.host.successor is not None:
            self.send_disconnect()

    def send_delayed_disconnect(self) -> None:
        super().send_delayed_disconnect()
        self.send_disconnect()

    def closed(self, now: int, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        self.forget_unfinished()
        if self.pending_redirect is not None:
            self.pending_redirect.restore_sessions()
        self.host.cluster.unsubscribe(self)
        self.end_sessions(now)

    def end_sessions(self, now: int) -> None:
        for session in list(self.sessions.values()):
            session.closed(now, True)
        self.sessions.clear()
        self.client.close(now, self.host.broker.session_services, True)

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
        self.forget_unfinished()
        self.settle(now)
        self.host.cluster.unsubscribe(self)
        self.block_deliveries(True)
        self.resumable.keep(now, self)
