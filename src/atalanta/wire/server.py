"""The state that the client connections of one node share, whatever their protocol, and the hooks of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.ports import Passwords
from atalanta.kernel.security.authentication import Logins
from atalanta.kernel.security.remote_host import ONCE_NS, RefusalLimit, remote_host
from atalanta.kernel.settings.scheduler import Scheduler
from atalanta.message.fqqn import split_fqqn
from atalanta.message.repetition import PERIOD_MS_MIN
from atalanta.wire.connection import ClientConnection
from atalanta.wire.memory_share import UnfinishedMessages

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.ports import Directories, Wire
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.connection import TransportConnection
    from atalanta.wire.core.packets.cluster import NodeAnnounce, ScaleDownAnnouncement
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.protocol import Protocol

# Connections of one host that stay without a login. Each scanner of a real Artemis is one.
WITHOUT_LOGIN_MAX: Final = 100
FINISHING_MAX: Final = 100  # of the node
ADDRESS_DELAY: Final = -1  # the redelivery-delay of the address
AGAIN_MS: Final = 60_000
UNREAD: Final = "answers are not read before login"
TOO_MANY_WITHOUT_LOGIN: Final = "too many older connections of its host have no login"


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterHooks:
    """The questions of a connection to the cluster. This base class serves a node without a cluster."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id

    def subscribe(self, now: int, connection: ClientConnection, is_cluster: bool) -> None:
        """Sends the topology: the node's own entry before login, all members after it."""
        connection.member_up(self.node_id, 0, None, None, True, None, None)

    def logged_in(self, now: int, connection: ClientConnection) -> None:
        """Sends the whole topology to a subscriber that has logged in."""
        return None

    def unsubscribe(self, connection: ClientConnection) -> None:
        """Removes the connection from the subscribers."""
        return None

    def may_fail_over(self, node_id: str | None) -> bool:
        """Returns True if a client of that node may reconnect here (CHECK_FOR_FAILOVER)."""
        return True

    def primary_of(
        self, connection: ClientConnection, node_id: str
    ) -> TransportConfiguration | None:
        """Returns the primary's connector of a member; None if there is no such member."""
        return None

    def backup_call(self, body: bytes) -> bytes:
        """Returns the answer to a member that asks for a hosted backup, b"" for none. DecodeError."""
        return b""

    def backup_answer(self, now: int, node_id: str, body: bytes) -> None:
        """Handles a member's answer to such a call of this node. DecodeError."""
        return None

    def leads_here(self, target: str) -> bool:
        """Returns True if this node announces the address `host:port` for itself."""
        return False

    def scaled_down(self, now: int, packet: ScaleDownAnnouncement) -> None:
        """Records that a peer has sent all its messages to this node."""
        return None

    def announced(self, now: int, connection: ClientConnection, packet: NodeAnnounce) -> None:
        """Adds a peer that knows the cluster's credentials to the topology."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class Routing:
    """A decision about the clients that log in: the connection routers of a node, or the zones of its cluster."""

    def route(
        self, now: int, connection: ClientConnection, client_id: str | None, identity: Identity
    ) -> bool:
        """Returns True if the login may go on here. Else `connection.routed` follows, now or later."""
        raise NotImplementedError


class Successor:
    """The node that takes the messages of this leaving node; clients are sent there."""

    def __init__(self, node_id: str, transport: TransportConfiguration | None) -> None:
        self.node_id = node_id
        self.transport = transport


class WireServer:
    """The shared state of the connections of one node.

    `connections` are all connections of the node, by the event loop's number. `dirty` are connections with bytes to
    write, `closing` (connection, reason) those to close after that, `resumed` those that process held input again.
    `unsent` are messages that could not be encoded for their client: session, consumer, message. `successor` is None
    unless the node leaves.
    """

    def __init__(
        self,
        broker: Broker,
        wire: Wire,
        connections: dict[int, TransportConnection],
        passwords: Passwords | None = None,
        directories: Directories | None = None,
    ) -> None:
        self.broker = broker
        self.refusals: RefusalLimit = RefusalLimit()
        self.refused_sessions: RefusalLimit = RefusalLimit(ONCE_NS)
        self.logins: Logins = Logins(
            broker.security,
            passwords if passwords is not None else Passwords(),
            broker.ids,
            broker.config.security_invalidation_interval_ms * 1_000_000,
            broker.config.authentication_cache_size,
            directories,
            broker.trace,
        )
        self.wire = wire
        self.unfinished: UnfinishedMessages = UnfinishedMessages(wire, broker.trace)
        self.refused_peers: dict[str, bool] = {}  # hosts with wrong cluster credentials; reported
        self.protocols: list[Protocol] = []
        self.schedulers: dict[str, Scheduler] = {}  # by acceptor
        self.bridge_scheduler: Scheduler = Scheduler("", True, PERIOD_MS_MIN)  # of the bridges that the node dials
        self.connections = connections
        self.cluster: ClusterHooks = ClusterHooks(broker.node_id)
        self.routings: list[Routing] = []  # asked in this order at each login
        self.successor: Successor | None = None
        self.dirty: list[int] = []
        self.closing: list[tuple[int, str]] = []
        self.resumed: list[int] = []
        self.unsent: list[tuple[Session, int, int]] = []
        self.finishing: list[ClientConnection] = []

    def follow_acceptors(self, acceptors: list[AcceptorConfig]) -> None:
        """Makes the node's own bridges schedule as its acceptors do: not if none for OpenWire and STOMP does."""
        serving = [each for each in acceptors if each.serves("OPENWIRE") or each.serves("STOMP")]
        if serving and not any(each.scheduler_support for each in serving):
            self.bridge_scheduler = self.scheduler_of(serving[0])

    def scheduler_of(self, acceptor: AcceptorConfig | None) -> Scheduler:
        """Returns the scheduler of an acceptor; None is one without parameters."""
        if acceptor is None:
            return Scheduler("", True, PERIOD_MS_MIN)
        found = self.schedulers.get(acceptor.name)
        if found is None:
            found = Scheduler(acceptor.name, acceptor.scheduler_support, acceptor.scheduler_period_min_ms)
            self.schedulers[acceptor.name] = found
        return found

    def may_finish(self, connection: ClientConnection) -> bool:
        """Returns True if a client that has hung up may wait for its login. A flood of them leaves no descriptors."""
        self.finishing = [each for each in self.finishing if not each.gone and not each.authenticated]
        if len(self.finishing) >= FINISHING_MAX:
            return False
        self.finishing.append(connection)
        return True

    def close(self, conn: int, why: str) -> None:
        """Closes a connection after this batch of inputs."""
        self.closing.append((conn, why))

    def end_client(self, conn: int, why: str) -> None:
        """Ends a client after this batch of inputs, also one that may come back to its sessions."""
        if conn in self.connections:
            self.closing.append((conn, why))
        else:
            for protocol in self.protocols:
                protocol.end(self.broker.now, conn)

    def set_aside(self, kernel: Session, consumer: int, message_id: int) -> None:
        """Records a message that is moved to the dead-letter address behind the dispatch that found it."""
        self.unsent.append((kernel, consumer, message_id))

    def settle_unsent(self, now: int) -> None:
        """Moves the messages that could not be encoded.

        One of the dead-letter address itself is delayed: moved, it would come again at once, for ever.
        """
        unsent = self.unsent
        self.unsent = []
        for kernel, consumer, message_id in unsent:
            try:
                address = kernel.consumer(consumer).queue.spec.address
                target = self.broker.settings.match(address).dead_letter_address
                moves = target is None or split_fqqn(target)[0] != address
                delay_ms = ADDRESS_DELAY if moves else AGAIN_MS
                kernel.settle(now, consumer, message_id, moves, delay_ms, SILENT)
            except BrokerError:
                continue  # its consumer has closed meanwhile: the message is in its queue
        self.broker.wake(now)

    def register_routing(self, routing: Routing) -> None:
        """Adds a decision about the clients that log in."""
        self.routings.append(routing)

    def leave_to(self, node_id: str, transport: TransportConfiguration | None) -> None:
        """Registers the node to which clients of this leaving node are sent."""
        self.successor = Successor(node_id, transport)

    def timed_out(self, connection: ClientConnection, why: str) -> None:
        """Reports a connection that is closed because its peer was silent."""
        self.broker.trace.event("connection_timed_out", {"remote": connection.peer(), "why": why})

    def tell_refused(self, now: int, remote: str, why: str) -> None:
        """Reports a client that gets no session, once for each host and reason: it may try for ever."""
        if self.refused_sessions.admits(now, remote, why):
            self.broker.trace.event("session_refused", {"remote": remote, "why": why})

    def close_unread(self, now: int, connection: ClientConnection) -> None:
        """Closes the connection of a peer that reads no answers before its login: no client needs so many."""
        self.tell_refused(now, connection.peer(), UNREAD)
        self.close(connection.conn, UNREAD)

    def too_many_without_login(self, now: int) -> list[int]:
        """Returns the newest connections of hosts that have too many without a login.

        The reserves of failover clients are counted apart from what else stays.
        """
        staying: dict[tuple[str, int], int] = {}
        found: list[int] = []
        for conn, connection in self.connections.items():
            if isinstance(connection, ClientConnection) and connection.stays_without_login(now):
                limit = connection.reserves_max() or WITHOUT_LOGIN_MAX
                key = (remote_host(connection.peer()), limit)
                staying[key] = staying.get(key, 0) + 1
                if staying[key] > limit:
                    self.timed_out(connection, TOO_MANY_WITHOUT_LOGIN)
                    found.append(conn)
        return found

    def end_lost(self, now: int) -> None:
        """Ends the sessions that wait for a client whose connection is lost."""
        for protocol in self.protocols:
            protocol.end_all(now)

    def take_dirty(self) -> list[int]:
        """Returns the connections with bytes to write, and forgets them."""
        dirty = self.dirty
        self.dirty = []
        return dirty

    def take_resumed(self) -> list[int]:
        """Returns the connections that process held input again, and forgets them."""
        resumed = self.resumed
        self.resumed = []
        return resumed

    def take_closing(self) -> list[tuple[int, str]]:
        """Returns the connections to close, each with the reason, and forgets them."""
        closing = self.closing
        self.closing = []
        return closing
