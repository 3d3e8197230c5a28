"""The brokers that OpenWire clients are told of: members of the cluster, and neighbours in a network of brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.server.client_load import hears_of_load, load_command, load_in

if TYPE_CHECKING:
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.openwire.commands.connections import ConnectionControl
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.options import WireFormatOptions

NEIGHBOURS_MAX: Final = 1_000
URL_MAX: Final = 1_000
EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")


def uri_of(acceptor: AcceptorConfig, host: str) -> str:
    """Returns the URI by which OpenWire clients reach an acceptor; `host` is taken if it listens at all addresses."""
    published = acceptor.options(OpenWireAcceptor).published_host
    told = published or (host if acceptor.host in EVERY_ADDRESS else acceptor.host)
    scheme = "tcp" if acceptor.tls is None else "ssl"
    return f"{scheme}://[{told}]:{acceptor.port}" if ":" in told else f"{scheme}://{told}:{acceptor.port}"


def is_marked(acceptor: AcceptorConfig) -> bool:
    """Returns whether clients of the acceptor are told of other brokers: others tell theirs of it."""
    options = acceptor.options(OpenWireAcceptor)
    return options.update_cluster_clients or options.rebalance_cluster_clients


def uri_at(acceptor: AcceptorConfig, address: str) -> str:
    """Returns the URI of an acceptor for OpenWire clients. `address`: the host:port of one of its connections."""
    return uri_of(acceptor, address.rpartition(":")[0].strip("[]"))


@mypyc_attr(allow_interpreted_subclasses=True)
class PeerBroker:
    """A broker. `uris` are those of its acceptors for OpenWire, `tcp://host:port` or `ssl://host:port`.

    `clients`: how many failover clients a neighbour tells that it has; None if it tells nothing.
    """

    def __init__(self, name: str, uris: tuple[str, ...]) -> None:
        self.name = name
        self.uris = uris
        self.clients: int | None = None

    def uri_for(self, scheme: str) -> str | None:
        """Returns the first URI of the scheme without its options, which are a server's; None if there is none."""
        for uri in self.uris:
            if uri.startswith(f"{scheme}://"):
                return uri.partition("?")[0]
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class ToldMembers:
    """The members that one client is told of: those in its zone, which it is to prefer, and the others.

    `own_near`: this node is in its zone.
    """

    def __init__(self, near: list[PeerBroker], far: list[PeerBroker], own_near: bool) -> None:
        self.near = near
        self.far = far
        self.own_near = own_near


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterMembers:
    """The questions to the cluster. This base serves a node without a cluster. `planned`: a plan moves the clients."""

    planned: bool = False

    def own(self, connection: ClientConnection) -> PeerBroker | None:
        """Returns this node as clients are told of it."""
        return None

    def told_to(self, now: int, connection: ClientConnection) -> ToldMembers:
        """Returns the members that a client is told of."""
        return ToldMembers([], [], True)

    def is_member(self, node_id: str) -> bool:
        """Returns True for the id of another member, also of one that is away."""
        return False

    def of_node(self, connection: ClientConnection, node_id: str) -> PeerBroker | None:
        """Returns a member of the client's cluster."""
        return None

    def place_at_login(self, now: int, connection: ClientConnection) -> str | None:
        """Returns the member to which a failover client is sent at its first login; None if it stays."""
        return None

    def successor(self, connection: ClientConnection) -> PeerBroker | None:
        """Returns the broker that takes the clients of this one when it stops or leaves; None if nobody does."""
        return None


def told_uri(url: str | None) -> tuple[str, ...]:
    """Returns the URL with which a broker introduces itself, if clients can be told of it: one URI of tcp or ssl."""
    if url is None or len(url) > URL_MAX or "," in url or not url.startswith(("tcp://", "ssl://")):
        return ()
    return (url,)


class PeerBrokers:
    """The other brokers of a node. `on_change` is called when they have changed; `serving`: acceptors for OpenWire.

    `listeners` tell the count of this node's clients to neighbours, by connection; `load` is that count, -1 if it is
    not told.
    """

    def __init__(self) -> None:
        self.members: ClusterMembers = ClusterMembers()
        self.neighbours: dict[str, PeerBroker] = {}
        self.on_change: Callable[[int], None] | None = None
        self.serving: list[AcceptorConfig] = []
        self.listeners: dict[int, Callable[[Command], None]] = {}
        self.load: int = -1

    def use_acceptors(self, acceptors: Iterable[AcceptorConfig]) -> None:
        """Registers the acceptors of the node: it introduces itself to neighbours with the first for OpenWire, those
        first whose clients are told of other brokers (BrokerService.getDefaultSocketURIString)."""
        found = [each for each in acceptors if each.auto_start and each.serves("OPENWIRE")]
        marked = [each for each in found if is_marked(each)]
        self.serving = marked + [each for each in found if each not in marked]

    def introduction(self, acceptor: AcceptorConfig, address: str) -> str:
        """Returns the URI with which this node introduces itself to who has come to `acceptor`, at that address."""
        if self.serving and is_marked(self.serving[0]) and not is_marked(acceptor):
            return uri_at(self.serving[0], address)
        return uri_at(acceptor, address)

    def own_url(self, address: str) -> str | None:
        """Returns the URI by which clients reach this node; None without an acceptor for OpenWire.

        `address`: host:port of this end of a connection, whose host is taken if the acceptor listens at all addresses.
        """
        return uri_at(self.serving[0], address) if self.serving else None

    def tell(self, now: int, key: str, peer: PeerBroker | None) -> None:
        """Records a neighbour in a network of brokers, by a key of the caller; None: its bridge is lost."""
        if peer is None:
            self.neighbours.pop(key, None)
        elif key in self.neighbours or len(self.neighbours) < NEIGHBOURS_MAX:
            self.neighbours[key] = peer
        self.changed(now)

    def introduce(self, now: int, key: str, name: str, url: str | None) -> None:
        """Records a neighbour as it introduces itself over a bridge."""
        self.tell(now, key, PeerBroker(name, told_uri(url)))

    # -- how many clients they have -------------------------------------------------------------
    def listen(self, conn: int, theirs: WireFormatOptions | None, tell: Callable[[Command], None]) -> None:
        """Tells a neighbour, if it is an Atalanta node, the count of this node's clients, now and later."""
        if hears_of_load(theirs):
            self.listeners[conn] = tell
            if self.load >= 0:
                tell(load_command(self.load))

    def end(self, conn: int) -> None:
        """Forgets the connection of a neighbour."""
        self.listeners.pop(conn, None)

    def tell_load(self, clients: int, again: bool) -> None:
        """Tells the neighbours how many clients this node has, if that is new or to be told again."""
        if clients != self.load or again:
            self.load = clients
            for tell in list(self.listeners.values()):
                tell(load_command(clients))

    def hear(self, key: str, command: ConnectionControl) -> None:
        """Records how many clients a neighbour tells that it has."""
        peer, clients = self.neighbours.get(key), load_in(command)
        if peer is not None and clients is not None:
            peer.clients = clients

    def counts(self) -> dict[str, int | None]:
        """Returns how many clients each neighbour has, by its key; None for one that does not tell."""
        return {key: peer.clients for key, peer in self.neighbours.items()}

    def changed(self, now: int) -> None:
        """Tells the clients of other brokers, as far as they want to know."""
        if self.on_change is not None:
            self.on_change(now)
