"""What the CORE connections of one node share: the broker, and the hooks of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.ports import Passwords
from atalanta.kernel.security.authentication import Logins
from atalanta.message.encoding.buffer import Reader
from atalanta.wire.core.server.reattach import Resumable
from atalanta.wire.core.server.topology import send_lone_topology

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.ports import Wire
    from atalanta.kernel.security.security import Identity
    from atalanta.management.management import Management
    from atalanta.wire.core.packets.cluster import NodeAnnounce, ScaleDownAnnouncement
    from atalanta.wire.core.packets.connection import DisconnectV3
    from atalanta.wire.core.packets.session import CreateSession
    from atalanta.wire.core.server.connection import CoreConnection


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterHooks:
    """What a connection asks the cluster; this base class is a node without one."""

    def subscribe(self, now: int, connection: CoreConnection, is_cluster: bool) -> None:
        """The client wants the topology: the node's own entry before login, everything after it."""
        send_lone_topology(connection)

    def logged_in(self, now: int, connection: CoreConnection) -> None:
        """A subscriber has authenticated: it may see the whole topology now."""
        return None

    def unsubscribe(self, connection: CoreConnection) -> None:
        return None

    def may_fail_over(self, node_id: str | None) -> bool:
        """A client of that node asks whether it may go on here (CHECK_FOR_FAILOVER)."""
        return True

    def scaled_down(self, now: int, packet: ScaleDownAnnouncement) -> None:
        """A peer says that all its messages have been sent here."""
        return None

    def announced(self, now: int, connection: CoreConnection, packet: NodeAnnounce) -> None:
        """A peer that knows the cluster's credentials told who it is."""
        return None


class CoreHost:
    """`dirty` are connections with bytes to write, `closing` those that must go after that."""

    def __init__(
        self,
        broker: Broker,
        management: Management,
        wire: Wire,
        passwords: Passwords | None = None,
    ) -> None:
        self.broker = broker
        self.logins: Logins = Logins(
            broker.security,
            passwords if passwords is not None else Passwords(),
            broker.ids,
            broker.config.security_invalidation_interval_ms * 1_000_000,
            broker.config.authentication_cache_size,
        )
        self.management = management
        self.wire = wire
        self.cluster: ClusterHooks = ClusterHooks()
        self.routing: Routing | None = None  # connection routers, where there are any
        # For packets that are read in place: nothing is held in it from one to the next.
        self.reader: Reader = Reader(b"")
        self.resumable = Resumable()
        self.goodbye: DisconnectV3 | None = None  # to clients, where that is not a plain shutdown
        self.dirty: list[int] = []
        self.closing: list[tuple[int, str]] = []
        self.resumed: list[int] = []  # connections that go on taking up what they got
        # (key, value) of metadata -> sessions that carry it, as (connection, channel): for unique ones.
        self.metadata: dict[tuple[str, str], dict[tuple[int, int], bool]] = {}

    def add_metadata(self, owner: tuple[int, int], key: str, value: str) -> None:
        self.metadata.setdefault((key, value), {})[owner] = True

    def remove_metadata(self, owner: tuple[int, int], key: str, value: str) -> None:
        owners = self.metadata.get((key, value))
        if owners is not None:
            owners.pop(owner, None)
            if not owners:
                del self.metadata[(key, value)]

    def take_dirty(self) -> list[int]:
        dirty = self.dirty
        self.dirty = []
        return dirty

    def take_resumed(self) -> list[int]:
        resumed = self.resumed
        self.resumed = []
        return resumed

    def take_closing(self) -> list[tuple[int, str]]:
        closing = self.closing
        self.closing = []
        return closing


ROUTING_VERSION: Final = 131  # Artemis 2.18


@mypyc_attr(allow_interpreted_subclasses=True)
class Routing:
    def route(
        self, now: int, connection: CoreConnection, packet: CreateSession, identity: Identity
    ) -> bool:
        """True: the session may begin here. Else `login.routed` follows, now or later."""
        raise NotImplementedError
