"""OpenWire as one of the protocols of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.options import MAGIC, WireFormatOptions
from atalanta.wire.openwire.server.advisories.consumers_elsewhere import ELSEWHERE_TIMER
from atalanta.wire.openwire.server.advisories.watchers import ADVISORIES_TIMER
from atalanta.wire.openwire.server.bridge.other_ways import WAYS_TIMER
from atalanta.wire.openwire.server.bridge.refused_demands import REFUSED_TIMER
from atalanta.wire.openwire.server.bridge.stuck_queues import STUCK_TIMER
from atalanta.wire.openwire.server.client_load import PROVIDER
from atalanta.wire.openwire.server.connection import OpenWireConnection
from atalanta.wire.openwire.server.held_client_ids import IDS_TIMER
from atalanta.wire.openwire.server.node_clients import KEEP_ALIVE_TIMER, QUEUES_TIMER, NodeClients
from atalanta.wire.openwire.server.peer_brokers import PeerBrokers
from atalanta.wire.openwire.server.returned_clients import RETURNED_TIMER
from atalanta.wire.openwire.server.sessions.inflations import INFLATION_TIMER
from atalanta.wire.openwire.server.sessions.pulls import PULL_TIMER
from atalanta.wire.protocol import MORE, NO, YES, Peer, Protocol

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.wire.connection import ClientConnection
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer

# Behind the int32 size of the first frame: WireFormatInfo and the begin of its magic.
SIZE_BYTES: Final = 4
BEGINNING: Final = b"\x01" + MAGIC[:3]


class OpenWireProtocol(Protocol):
    """The OpenWire protocol of one node. A client begins with a WireFormatInfo."""

    def __init__(self, host: WireServer, timers: Timers) -> None:
        self.host = host
        self.name = "OPENWIRE"
        broker = host.broker
        self.node_clients = NodeClients(broker.node_id, broker.config, timers, broker.queue_registry)
        broker.add_observer(self.node_clients.wildcard_queues)
        bridges = self.node_clients.bridges
        broker.add_observer(bridges.stuck_queues)
        broker.add_observer(bridges.refused_demands)
        broker.add_observer(bridges.other_ways)
        advisories = self.node_clients.advisories
        for observer in advisories.observers:
            broker.add_observer(observer)

    def recognises(self, first: bytes) -> int:
        if first[:1] != b"\x00":  # a first frame of 16 MiB is no WireFormatInfo
            return NO
        found = first[SIZE_BYTES : SIZE_BYTES + len(BEGINNING)]
        if found == BEGINNING:
            return YES
        return MORE if BEGINNING.startswith(found) else NO

    def open(
        self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None
    ) -> ClientConnection:
        options = WireFormatOptions() if acceptor is None else options_for(acceptor)
        connection = OpenWireConnection(self.host, self.node_clients, conn, peer.remote, now, acceptor, options)
        connection.describe(peer.server_name, peer.certificate)
        return connection

    def on_timer(self, now: int, key: str) -> None:
        if key == KEEP_ALIVE_TIMER:
            self.node_clients.keep_alives.on_timer(now)
        elif key == PULL_TIMER:
            self.node_clients.pulls.on_timer(now)
        elif key == QUEUES_TIMER:
            self.node_clients.wildcard_queues.on_timer(now)
        elif key == INFLATION_TIMER:
            self.node_clients.inflations.on_timer(now)
        elif key == IDS_TIMER:
            self.node_clients.held_ids.on_timer(now)
        elif key == RETURNED_TIMER:
            self.node_clients.returned.on_timer(now)
        elif key == ELSEWHERE_TIMER:
            self.node_clients.advisories.elsewhere.on_timer(now)
        elif key == ADVISORIES_TIMER:
            self.node_clients.advisories.watchers.on_timer()
        elif key == STUCK_TIMER:
            bridges = self.node_clients.bridges
            bridges.stuck_queues.on_timer(now)
        elif key == REFUSED_TIMER:
            bridges = self.node_clients.bridges
            bridges.refused_demands.on_timer(now)
        elif key == WAYS_TIMER:
            bridges = self.node_clients.bridges
            bridges.other_ways.on_timer(now)


def peer_brokers_of(host: WireServer) -> PeerBrokers | None:
    """Returns the brokers that the OpenWire clients of a node are told of; None if it does not serve OpenWire."""
    for protocol in host.protocols:
        if isinstance(protocol, OpenWireProtocol):
            return protocol.node_clients.peers
    return None


def options_for(acceptor: AcceptorConfig) -> WireFormatOptions:
    """Returns what the acceptor announces."""
    options = acceptor.options(OpenWireAcceptor)
    return WireFormatOptions(
        frame_bytes_max=options.frame_bytes_max,
        inactivity_ms=options.inactivity_ms,
        inactivity_delay_ms=options.inactivity_delay_ms,
        provider_name=PROVIDER,
    )
