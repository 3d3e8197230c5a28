"""The server's side of one CORE connection: handshake, login, topology, and frames to their sessions.

Before login only PING, SUBSCRIBE_TOPOLOGY(_V2), CREATESESSION(_V2), REATTACH_SESSION, CHECK_FOR_FAILOVER and
CLUSTER_CONNECT are looked at; anything else closes the connection and changes nothing, but for confirmations of a
client that comes from another node, which are passed over. Until then the topology is the node's own entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from atalanta.kernel.errors import (
    BrokerError,
)
from atalanta.kernel.security.security import Identity
from atalanta.kernel.sessions.client import Client
from atalanta.wire.connection import Connection, ProtocolError
from atalanta.wire.core import packet_types
from atalanta.wire.core.frames import FRAME_BYTES_MAX, Framer, write_frame_header
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, NodeAnnounce, ScaleDownAnnouncement
from atalanta.wire.core.packets.connection import (
    REASON_REDIRECT,
    CheckForFailover,
    CheckForFailoverReply,
    DisconnectV3,
    ExceptionResponse,
    Ping,
)
from atalanta.wire.core.packets.session import CreateSession, ReattachSession
from atalanta.wire.core.packets.topology import SubscribeTopology, SubscribeTopologyV2
from atalanta.wire.core.server.closed_session import answer_ended
from atalanta.wire.core.server.login import CLUSTER_CHANNEL, Login, answered, log_in, log_in_peer
from atalanta.wire.core.server.reattach import end_session, reattach, remember
from atalanta.wire.core.server.session import DELIVERED_BYTES_MAX, CoreSession
from atalanta.wire.core.server.session_creation import SERVER_VERSION, time_to_live_ms
from atalanta.wire.sniffer import Greeting

if TYPE_CHECKING:
    from atalanta.wire.core.config import AcceptorConfig
    from atalanta.wire.core.server.host import CoreHost
    from atalanta.wire.core.server.redirect import Redirect
    from atalanta.wire.core.transport import TransportConfiguration

DEFAULT_HANDSHAKE_TIMEOUT_S: Final = 10
DEFAULT_TTL_NS: Final = 60_000_000_000
UNAUTHENTICATED_FRAME_BYTES_MAX: Final = 64 << 10
ARRIVAL_NS: Final = 5_000_000_000  # a client that comes from another node has made its sessions by then
CLUSTER_PACKETS: Final = (packet_types.NODE_ANNOUNCE, packet_types.SCALEDOWN_ANNOUNCEMENT)
# Packet types that are looked at without a login, and the one channel each of them is sent on.
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


class CoreConnection(Connection):
    """`version` is 0 until the peer told it; `authenticated` once a session or a cluster login succeeded."""

    def __init__(
        self,
        host: CoreHost,
        conn: int,
        remote: str,
        now: int,
        acceptor: AcceptorConfig | None = None,
    ) -> None:
        self.host = host
        self.acceptor = acceptor
        self.conn = conn
        self.client = Client(conn, remote)
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False
        self.blocked: bool = False  # by the shell: the peer does not take what was written
        self.full: bool = False  # this turn has delivered its share
        self.framer: Framer = Framer(True, UNAUTHENTICATED_FRAME_BYTES_MAX)
        self.greeted: bool = False
        self.greeting: Greeting = Greeting()
        self.version: int = 0
        self.authenticated: bool = False
        self.cluster_peer: bool = False
        self.subscribed: bool = False
        self.sessions: dict[int, CoreSession] = {}
        self.ended: dict[int, bool] = {}  # channels of sessions that an operator closed
        self.last_seen: int = now
        self.opened: int = now
        self.ttl_ns: int = DEFAULT_TTL_NS
        self.login: Login = Login()
        self.server_name: str | None = None  # that a client with TLS asked for
        self.holds: int = 0  # how many of its sessions wait for the disk: nothing more is taken up
        self.held: list[bytes] = []
        self.replaying: bool = False  # at least one session keeps what it sends until it is confirmed
        self.gone: bool = False
        self.pending_redirect: Redirect | None = None  # until the client has gone
        self.came_from: str | None = None  # a client that reconnects says where it was before
        self.pinned: bool = False  # it needs this node and no other
        self.arriving: bool = False  # the node stops while its client comes from another one
        self.untold: bool = False  # the node leaves, and this may be a member, who must not hear of it yet

    # -- bytes in -------------------------------------------------------------------------------
    def security_domain(self) -> str:
        """Of its acceptor; "" is the usual one."""
        return "" if self.acceptor is None else self.acceptor.security_domain

    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.holds > 0 or self.held:  # released just now: what was held comes first (`resume`)
            self.held.append(data)
            return
        if not self.greeted:
            data = self.greeting.take(self, data)
            if not data:
                return
        self.framer.begin(data)
        self._take_up(now)
        if self.pending_redirect is not None:
            self.pending_redirect.mark_received()

    def _take_up(self, now: int) -> None:
        """What the framer has, until a session must wait for the disk."""
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
        """A session waits for the disk: what comes is not looked at, and the shell should read no more."""
        self.holds += 1
        if self.holds == 1:
            self.host.wire.pause(self.conn)

    def release_input(self) -> None:
        """Goes on in `resume`, which the node calls."""
        self.holds -= 1
        if self.holds == 0:
            self.host.resumed.append(self.conn)

    def resume(self, now: int) -> None:
        self.last_seen = now
        while self.holds == 0 and not self.gone:
            self._take_up(now)
            if self.holds > 0 or not self.held:
                break
            data = self.held.pop(0)
            if not self.greeted:  # held before its first bytes
                data = self.greeting.take(self, data)
                if not data:
                    continue
            self.framer.begin(data)
        if self.pending_redirect is not None:
            self.pending_redirect.mark_received()
        if self.holds == 0:
            self.host.wire.resume(self.conn)

    def _unknown_channel(self, now: int, packet_type: int, channel: int) -> None:
        if not self.authenticated:
            if packet_type == packet_types.PACKETS_CONFIRMED and self.came_from is not None:
                # With its pings a client confirms what its session got elsewhere (ChannelImpl.flushConfirmations).
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
        """Channels below the sessions'. What is not named here closes the connection."""
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
        """ProtocolError unless a peer that logged in may send this here; nothing of the packet is read before."""
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
        """From `host.logins`. ProtocolError after too many wrong passwords."""
        if not self.gone:
            answered(self, now, identity)

    def redirect(self, node_id: str, target: TransportConfiguration) -> None:
        """Sends the client to another node. The client closes the connection; wire/core/server/redirect.py explains the
        empty node id."""
        self.send(
            DisconnectV3(node_id="", reason=REASON_REDIRECT, target_node_id=node_id, target=target),
            0,
        )

    def logged_in_by_session(self, now: int) -> None:
        """Who knows a session's name is its user."""
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
        """Header of a frame whose body of exactly `body_bytes` the caller writes into the returned writer."""
        out = self.out
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)
        write_frame_header(out, packet_type, channel, body_bytes)
        return out

    def start_writing(self) -> None:
        """Before something is written into `out` by another's own means."""
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)

    def sent_large(self) -> None:
        """A piece of a large message was written: enough for this turn?"""
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
        """Writes the output buffer to the wire, also in the middle of a turn."""
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
        """What is written and not yet on its way is kept by the sessions that may go on elsewhere."""
        if not self.gone:
            self.write_out(now)
        elif len(self.out):
            remember(self.sessions, self.out.getvalue())
            self.out.truncate(0)

    # -- a peer that reads slowly ---------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        """Deliveries stop until the peer has taken what was written; what it sends is still taken up.

        A stranger who lets answers pile up is let go: nobody needs that many before login.
        """
        self.blocked = blocked
        if blocked and not self.authenticated:
            self.host.closing.append((self.conn, "answers are not read before login"))
        if not self.full:
            self._hold(blocked)

    def delivered_enough(self) -> None:
        """No more deliveries in this turn."""
        if not self.full:
            self.full = True
            if not self.blocked:
                self._hold(True)

    def _hold(self, hold: bool) -> None:
        hold = hold or self.pending_redirect is not None
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
        """The session of a channel: its client is told as soon as it asks for something."""
        self.remove_session(channel)
        self.ended[channel] = True

    def remove_session(self, channel: int) -> None:
        self.sessions.pop(channel, None)

    def check_alive(self, now: int) -> bool:
        """Silent for longer than its time to live, or slow with its login: the connection goes."""
        for session in self.sessions.values():
            session.confirm()
        if self.holds > 0:
            return True  # it is not listened to
        acceptor = self.acceptor
        timeout_s = (
            DEFAULT_HANDSHAKE_TIMEOUT_S if acceptor is None else acceptor.handshake_timeout_s
        )
        if (
            timeout_s > 0
            and not self.authenticated
            and not self.subscribed
            and now - self.opened > timeout_s * 1_000_000_000
        ):
            self._timed_out(f"it has not logged in within {timeout_s:g} s")
            return False
        if self.ttl_ns < 0 or now - self.last_seen <= self.ttl_ns:
            return True
        self._timed_out(f"nothing came from it for {(now - self.last_seen) / 1e9:.1f} s")
        return False

    def _timed_out(self, why: str) -> None:
        self.host.broker.trace.event(
            "connection_timed_out", {"remote": self.client.remote, "why": why}
        )

    def peer(self) -> str:
        return self.client.remote

    def stop(self, now: int) -> None:
        """The node shuts down in good order (reason 4, fact sheet A1.b).

        An Artemis client that comes from another node is deaf until it has made its sessions here, also to the loss of
        this connection (its failover, its good-byes and its losses are tasks of one OrderedExecutor,
        ClientSessionFactoryImpl.closeExecutor): a question without an answer blocks it for its call-timeout. So it is
        answered, with refusals, until it closes the connection or the shell's patience ends.
        """
        comes = self.came_from is not None or not self.authenticated
        self.arriving = comes and now - self.opened < ARRIVAL_NS
        if self.greeted:
            self.say_goodbye()
            if not self.arriving:
                self.host.closing.append((self.conn, "the node stops"))

    def say_goodbye(self) -> None:
        goodbye = None if self.untold else self.host.goodbye
        self.send(goodbye or DisconnectV3(node_id=self.host.broker.node_id), 0)

    def turn_away(self, now: int, held_ns: int) -> None:
        """`stop` of a node that leaves, behind a `hold_input` of `held_ns`: it takes nothing up any more, and who
        arrives just now only gets refusals until it goes.
        """
        self.opened += held_ns  # it could not go on meanwhile
        self.stop(now)
        if self.arriving:
            if self.pending_redirect is not None:
                self.pending_redirect.restore_sessions()
            for channel in self.sessions:
                self.ended[channel] = True
            self.end_sessions(now)
            self.release_input()

    def refuse(self) -> None:
        """Before any login: only refusals, as in `turn_away`, and no good-bye before `tell`."""
        self.untold = True
        self.arriving = True

    def tell(self) -> None:
        """The good-bye after `refuse`."""
        self.untold = False
        if self.greeted:
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
        """Sessions that can be reattached wait for their client, for the time to live of the connection."""
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
        self.host.resumable.keep(now, self)
