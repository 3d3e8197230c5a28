"""Connections as the node sees them: any transport connection, and the connection of a client of any protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.security.check_turns import LoginWaiter
from atalanta.kernel.sessions.client import Client
from atalanta.wire.address_prefixes import AddressPrefixes, prefixes_of
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.web_socket import WebSocket

DEFAULT_HANDSHAKE_TIMEOUT_S: Final = 10
DEFAULT_TTL_NS: Final = 60_000_000_000
# A client that reconnects from another node has created its sessions within this time.
ARRIVAL_NS: Final = 5_000_000_000
NO_REDIRECT: Final = "its protocol has no redirect"


@mypyc_attr(allow_interpreted_subclasses=True)
class TransportConnection(LoginWaiter):
    """A transport connection, accepted or dialled. Bytes arrive in `feed` and leave through the Wire port."""

    def feed(self, now: int, data: bytes) -> None:
        """Takes bytes in order, in any pieces. After a ProtocolError the node closes the connection."""
        raise NotImplementedError

    def resume(self, now: int) -> None:
        """Processes the bytes that were held back. Errors as in `feed`."""
        return None

    def command_name(self) -> str:
        """Returns the name of the command that is processed; "" while one is decoded."""
        return ""

    def flush(self, now: int) -> None:
        """Writes the output of this batch of inputs to the Wire port."""
        raise NotImplementedError

    def closed(self, now: int, why: str) -> None:
        """Ends everything that belongs to the connection: the transport is closed."""
        raise NotImplementedError

    def lost(self, now: int, why: str) -> None:
        """Ends the connection after the peer or the network closed it. Sessions that can be reattached may wait."""
        self.closed(now, why)

    def hung_up(self, now: int) -> bool:
        """Records that the peer has gone, or sends no more, while its input is held. Returns True if the connection
        ends now; else what the peer has sent before is processed first."""
        return False

    def on_blocked(self, now: int, blocked: bool) -> None:
        """Records that the peer reads too slowly, or reads again: deliveries wait meanwhile."""
        return None

    def check_alive(self, now: int) -> bool:
        """Returns False if the peer was silent for longer than allowed: the node closes the connection."""
        return True

    def stop(self, now: int) -> None:
        """Disconnects the peer as the protocol defines it: the node stops."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientConnection(TransportConnection):
    """A connection that an acceptor accepted, and the questions that node and cluster ask of any protocol's client.

    `conn` is the event loop's number of the connection. `acceptor` is None only in tests. `opened` and `last_seen`
    are times in ns. `reconnecting`: the node
    stops or leaves while the client reconnects from another node. Its requests are still answered, by refusals.
    `disconnect_delayed`: the node leaves, and the peer must not be disconnected yet, as it may be a member.
    """

    def __init__(
        self, conn: int, remote: str, now: int, acceptor: AcceptorConfig | None
    ) -> None:
        self.conn = conn
        self.acceptor = acceptor
        self.client = Client(conn, remote)
        self.opened: int = now
        self.last_seen: int = now
        self.authenticated: bool = False  # a session or a cluster login succeeded
        self.cluster_peer: bool = False  # it showed the credentials of the cluster
        self.sent_password: bool = False  # as a real Artemis does; an Atalanta proves that it knows the password
        self.server_name: str | None = None  # that a TLS client asked for
        self.came_from: str | None = None  # the id of the client's former node, if it reconnects
        self.gone: bool = False
        self.peer_gone: bool = False  # the peer has hung up, but what it has sent is still processed
        self.share_waits: bool = False  # for memory (wire/memory_share.py)
        self.reconnecting: bool = False
        self.disconnect_delayed: bool = False

    def describe(self, server_name: str | None, certificate: str) -> None:
        """Records what the TLS handshake has shown of the peer."""
        self.server_name = server_name
        self.client.certificate = certificate

    def security_domain(self) -> str:
        """Returns the security domain of the acceptor; "" is the default domain."""
        return "" if self.acceptor is None else self.acceptor.security_domain

    def address_prefixes(self) -> AddressPrefixes | None:
        """Returns anycastPrefix and multicastPrefix of the acceptor; None if it has neither."""
        return prefixes_of(self.acceptor)

    def use_web_socket(self, now: int, socket: WebSocket, carried: bytes) -> None:
        """Continues inside a WebSocket; `carried` are the first bytes that it has carried. ProtocolError."""
        raise ProtocolError(f"{self.client.protocol} in a WebSocket is not served")

    def peer(self) -> str:
        return self.client.remote

    def left(self) -> bool:
        return self.gone

    def waits_for_room(self) -> bool:
        """Returns True while a message of the client waits until its address has room."""
        return False

    def hung_up(self, now: int) -> bool:
        """Ends the connection before the login, and one whose message waits for room or its user's share: nobody waits
        for an answer, and room may never come. Other holds are short."""
        self.peer_gone = True
        return not self.authenticated or self.share_waits or self.waits_for_room()

    # -- scale-down -----------------------------------------------------------------------------
    def hold_input(self) -> None:
        """Stops the processing of input until as many calls of `release_input` have followed."""
        raise NotImplementedError

    def release_input(self) -> None:
        """Ends one `hold_input`. The node calls `resume` after the last one."""
        raise NotImplementedError

    def disconnect(self, now: int, held_ns: int) -> None:
        """Disconnects the client of a node that leaves, after a `hold_input` of `held_ns`.

        A client that is still reconnecting stays `reconnecting`: it gets refusals until it closes the connection.
        """
        self.opened += held_ns
        self.stop(now)

    def refuse_requests(self, notified: bool) -> None:
        """Answers requests by refusals from now on.

        `notified`: the peer is told of the node's successor at once, if there is one.
        """
        self.reconnecting = True
        self.disconnect_delayed = not notified

    def send_delayed_disconnect(self) -> None:
        """Disconnects the peer that `refuse_requests` did not notify."""
        self.disconnect_delayed = False

    # -- topology -------------------------------------------------------------------------------
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
        """Tells a subscriber of the topology about a member; `last` ends the first list of members."""
        return None

    def member_down(self, node_id: str, event_id: int) -> None:
        """Tells a subscriber of the topology that a member left."""
        return None

    # -- redirects ------------------------------------------------------------------------------
    def can_move(self) -> str | None:
        """Returns the reason why this client cannot be redirected while it is connected; None if it can."""
        return NO_REDIRECT

    def can_reach(self, node_id: str) -> bool:
        """Returns True if the client's protocol is served at that member."""
        return True

    def reach(self) -> str:
        """Returns a key: clients of a node with the same one can reach the same members."""
        return "" if self.acceptor is None or self.uses_connectors() else self.acceptor.name

    def uses_connectors(self) -> bool:
        """Returns True if clients of the protocol are told the connector of a member, False if its acceptors."""
        return True

    def begin_redirect(self, now: int, target_node: str) -> Redirect:
        """Returns the redirect of a client for which `can_move` returns None; it has begun."""
        raise NotImplementedError

    def current_redirect(self) -> Redirect | None:
        """Returns the redirect that is pending or sent."""
        return None

    def can_be_routed(self) -> str | None:
        """Returns the reason why a connection router cannot send the client that logs in elsewhere; None if it can."""
        return NO_REDIRECT

    def can_repeat_login(self) -> bool:
        """Returns True, once, if the client logged in without a client id and will repeat the login with one."""
        return False

    def login_name(self) -> str:
        """Returns a name that the client gives this login again when it repeats it; "" if its protocol has none."""
        return ""

    def redirect(self, node_id: str, target: TransportConfiguration) -> None:
        """Sends a client that logs in to another node."""
        raise NotImplementedError

    def routed(self, now: int, error: BrokerError | None) -> None:
        """Continues the login that waits for a connection router, or refuses it with `error`."""
        raise NotImplementedError

    # -- time -----------------------------------------------------------------------------------
    def handshake_timeout_s(self) -> float:
        acceptor = self.acceptor
        return DEFAULT_HANDSHAKE_TIMEOUT_S if acceptor is None else acceptor.handshake_timeout_s

    def handshake_overdue(self, now: int) -> bool:
        """Returns True if the handshake-timeout of the acceptor has passed since the accept."""
        return 0 < self.handshake_timeout_s() * 1_000_000_000 < now - self.opened

    def stays_without_login(self, now: int) -> bool:
        """Returns True for a peer that has no login after the handshake-timeout and may stay: it reads the topology."""
        return False

    def reserves_max(self) -> int:
        """Returns how many such connections of one host stay, if they are reserves of clients; 0 if they are not."""
        return 0

    def overdue(self, now: int, ttl_ns: int, before_login: bool) -> str:
        """Returns the reason to close a silent connection, "" if there is none.

        With `before_login` the handshake-timeout of the acceptor counts, from the accept on. A negative `ttl_ns` is no
        limit.
        """
        if before_login and self.handshake_overdue(now):
            return f"it has not logged in within {self.handshake_timeout_s():g} s"
        silent_ns = now - self.last_seen
        if 0 <= ttl_ns < silent_ns:
            return f"no data from it for {silent_ns / 1e9:.1f} s"
        return ""


@mypyc_attr(allow_interpreted_subclasses=True)
class Redirect:
    """The redirect of one client: pending from `begin` on, sent by `send`, or given up by `cancel`.

    While the redirect is pending the client gets no deliveries, so that it can acknowledge all it has. `on_answer` is
    called at the end of a batch of inputs in which something is written to the client. `since` and `sent_at` are times
    in ns; `sent_at` is 0 while the redirect is pending. The connection of a client that does not go is closed after
    `linger_ns`.
    """

    linger_ns: int = 10_000_000_000

    def __init__(self, connection: ClientConnection, now: int, target_node: str) -> None:
        self.connection = connection
        self.target_node = target_node
        self.since: int = now
        self.sent_at: int = 0
        self.on_answer: Callable[[Redirect, int], None] | None = None

    def begin(self) -> None:
        """Stops the deliveries to the client."""
        raise NotImplementedError

    def cancel(self, now: int) -> None:
        """Gives the redirect up: the client stays and gets deliveries again."""
        raise NotImplementedError

    def send(self, now: int, target: TransportConfiguration, others: list[tuple[str, int]]) -> None:
        """Sends the client to `target`. `others` are the (node id, event id) of all other members."""
        raise NotImplementedError

    def is_sending(self) -> bool:
        """Returns True while a large message of the client has arrived in part."""
        raise NotImplementedError

    def unwritten(self) -> str | None:
        """Returns the reason why answers to the client are still to come: the journal, or bytes on their way."""
        raise NotImplementedError
