"""The logins of a CORE connection: sessions of clients, and peers of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    ILLEGAL_STATE,
    INCOMPATIBLE,
    SESSION_CREATION_REJECTED,
    BrokerError,
)
from atalanta.kernel.security.cluster_proof import (
    ACCEPT,
    CHALLENGE_USER,
    DIAL,
    NONCE_BYTES,
    PROVEN_PASSWORD,
    same_proof,
)
from atalanta.kernel.security.remote_host import remote_host
from atalanta.kernel.security.resource_limits import check_name
from atalanta.kernel.sessions.session import Session
from atalanta.wire.core.packet_types import FIRST_SESSION_CHANNEL, OLDEST_CLIENT_VERSION
from atalanta.wire.core.packets.cluster import (
    ClusterChallenge,
    ClusterConnect,
    ClusterConnectReply,
    ClusterProof,
)
from atalanta.wire.core.packets.session import (
    STAY_ADDRESS,
    ZONES_ADDRESS,
    CreateSession,
    CreateSessionResponse,
    CreateSessionV2,
)
from atalanta.wire.core.server.frame_connection import SERVER_VERSION
from atalanta.wire.core.server.resend_buffer import Replay
from atalanta.wire.core.server.session import CoreSession
from atalanta.wire.login import LoginRequest
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.core.server.connection import CoreConnection

SESSIONS_MAX: Final = 10_000  # of one connection
CLUSTER_CHANNEL: Final = 3
REFUSED_PEERS_MAX: Final = 1_000
SAME_CREDENTIALS: Final = "give all nodes the same cluster-user and cluster-password"
NO_CLUSTER_USER: Final = (
    "this node has no cluster-connection and no cluster-password of its own: give it the cluster-user and"
    " cluster-password of the other nodes"
)


class CoreLogin(LoginRequest):
    """The login of a CORE client: CREATESESSION or CREATESESSION_V2."""

    def __init__(self, packet: CreateSession, password: str | None) -> None:
        client_id = packet.client_id if isinstance(packet, CreateSessionV2) else None
        super().__init__(packet.user, password, client_id)
        self.packet = packet
        self.name = packet.name


def login_of(connection: CoreConnection, packet: CreateSession) -> CoreLogin:
    """Returns the login with the cluster's password filled in, which a peer that has proved it does not send.

    Records where the client wants to be.
    """
    preference = packet.default_address or ""
    if preference == STAY_ADDRESS:
        connection.client.stays = True
    elif preference.startswith(ZONES_ADDRESS):
        connection.client.zones = preference.removeprefix(ZONES_ADDRESS)
    password = packet.password
    if connection.cluster_peer and password == PROVEN_PASSWORD:
        security = connection.host.broker.security
        if packet.user == security.cluster_user:
            password = security.cluster_password
    return CoreLogin(packet, password)


def check_version(connection: CoreConnection, request: LoginRequest) -> None:
    """Raises BrokerError INCOMPATIBLE for a client that is too old."""
    assert isinstance(request, CoreLogin)
    version = connection.version or request.packet.version
    if version < OLDEST_CLIENT_VERSION:
        raise BrokerError(
            INCOMPATIBLE,
            f"AMQ229033: client version {version} is older than {OLDEST_CLIENT_VERSION}, the oldest served",
        )


def open_session(
    connection: CoreConnection, now: int, request: LoginRequest, identity: Identity
) -> None:
    """Creates the session and answers CREATESESSION_RESP. BrokerError: the login is refused."""
    assert isinstance(request, CoreLogin)
    packet = request.packet
    broker = connection.host.broker
    connection.agree_on_version(packet.version)
    channel = packet.session_channel
    if broker.stopping or channel < FIRST_SESSION_CHANNEL or channel in connection.sessions:
        why = "the node is stopping" if broker.stopping else f"channel {channel} cannot be used"
        # If the creation is rejected, a client that comes from another node repeats it here
        # (ActiveMQSessionContext.recreateSession); after any other error it tries another node.
        reconnects = broker.stopping and connection.came_from is not None
        raise BrokerError(ILLEGAL_STATE if reconnects else SESSION_CREATION_REJECTED, why)
    if len(connection.sessions) >= SESSIONS_MAX:
        raise BrokerError(
            SESSION_CREATION_REJECTED, f"more than {SESSIONS_MAX} sessions on one connection"
        )
    for text in (packet.name, request.client_id or ""):
        check_name(text)
    connection.check_session_limit(identity)
    first = not connection.authenticated
    broker.clients.count_login()
    connection.login_succeeded()
    if first:
        connection.count_for(identity.user)
    session = CoreSession(connection, channel, connection.version, packet.confirmation_window)
    if session.old:
        session.default_address = packet.default_address
    # The client's own name for the session is a secret (wire/core/server/reattach.py): nobody else learns it.
    kernel = Session(
        broker.session_services, connection.client, broker.ids.uuid().hex(), session, identity,
        packet.xa or packet.auto_commit_sends, packet.xa or packet.auto_commit_acks,
        packet.pre_acknowledge,
    )  # fmt: skip
    kernel.xa = packet.xa
    session.kernel = kernel
    redirected = connection.pending_redirect is not None
    kernel.set_blocked(connection.blocked or connection.full or redirected)
    if connection.client.client_id is None:
        connection.client.client_id = request.client_id
    connection.client.sessions[kernel.name] = kernel
    if connection.replaying:
        # Unwritten frames of an earlier session of this channel must not count for this one.
        connection.write_out(now)
    connection.sessions[channel] = session
    if packet.confirmation_window > 0 and not identity.cluster:
        session.replay = Replay(packet.name, packet.confirmation_window)
        connection.replaying = True
        connection.resumable.add(now, session, connection)
    connection.send(CreateSessionResponse(SERVER_VERSION), 1)
    if first:
        connection.logged_in(now)


def log_in_peer(connection: CoreConnection, now: int, packet: ClusterConnect) -> None:
    """Processes CLUSTER_CONNECT: another node sends the cluster's credentials."""
    if connection.disconnect_delayed:
        connection.host.closing.append((connection.conn, "the node leaves"))
        return
    broker = connection.host.broker
    security = broker.security
    if packet.user == CHALLENGE_USER:
        accept = broker.ids.secret(NONCE_BYTES).hex()
        nonces = connection.peer_challenge.begin(packet.password, accept)
        node_id = broker.node_id
        password = security.cluster_password
        if password is None:  # no proof fits, so the peer does not send its password as to a real Artemis
            password = broker.ids.secret(NONCE_BYTES).hex()
        proof = nonces.proof(security.cluster_user, password, ACCEPT, node_id)
        connection.send(ClusterChallenge(node_id, nonces.accept, proof), CLUSTER_CHANNEL)
        return
    connection.sent_password = security.authenticate_cluster(packet.user, packet.password)
    _answer_peer(connection, now, connection.sent_password)


def check_peer(connection: CoreConnection, now: int, packet: ClusterProof) -> None:
    """Processes CLUSTER_PROOF: another node of ours proves the cluster's password. Each challenge serves once."""
    nonces = connection.peer_challenge.end()
    if nonces is None:
        raise ProtocolError("CLUSTER_PROOF without CLUSTER_CONNECT before it")
    host = connection.host
    security = host.broker.security
    password = security.cluster_password
    if password is None:
        _answer_peer(connection, now, False)
        return
    proof = nonces.proof(security.cluster_user, password, DIAL, packet.node_id, packet.target)
    here = not packet.target or host.cluster.leads_here(packet.target)
    _answer_peer(connection, now, here and same_proof(proof, packet.proof))


def _answer_peer(connection: CoreConnection, now: int, known: bool) -> None:
    connection.cluster_peer = known
    connection.send(ClusterConnectReply(known), CLUSTER_CHANNEL)
    broker = connection.host.broker
    reported = connection.host.refused_peers
    remote = connection.client.remote
    peer = remote_host(remote)
    if not known:
        connection.count_login_failure()
        # A node with wrong credentials dials for ever.
        if peer not in reported and len(reported) < REFUSED_PEERS_MAX:
            reported[peer] = True
            remedy = SAME_CREDENTIALS if broker.security.cluster_password is not None else NO_CLUSTER_USER
            broker.trace.event("cluster_login_refused", {"remote": remote, "what_to_do": remedy})
        return
    if reported.pop(peer, False):
        broker.trace.event("cluster_login_accepted", {"remote": remote})
    if not connection.authenticated:
        connection.login_succeeded()
        connection.count_for(broker.security.cluster_user)
        connection.logged_in(now)


def time_to_live_ms(connection: CoreConnection, wanted_ms: int) -> int:
    """Returns the client's value, unless broker or acceptor replace or limit it; -1 is no limit."""
    override_ms = connection.host.broker.config.connection_ttl_override_ms
    acceptor = connection.acceptor
    if override_ms >= 0:
        return override_ms
    if acceptor is None:
        return wanted_ms
    if acceptor.connection_ttl_ms >= 0:
        return acceptor.connection_ttl_ms
    longest_ms = acceptor.connection_ttl_max_ms
    if longest_ms is not None and not 0 <= wanted_ms <= longest_ms:
        return longest_ms
    return wanted_ms if wanted_ms < 0 else max(wanted_ms, acceptor.connection_ttl_min_ms)
