"""A connection this node opened to another member: CORE frames both ways, and the cluster's login.

What is said after the login is up to the kind of link: a locator (locator.py) or a bridge (bridge.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from atalanta.wire.base import Connection, ProtocolError
from atalanta.wire.core import codec
from atalanta.wire.core.frames import Frame, Framer
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_cluster import ClusterConnect, ClusterConnectReply, NodeAnnounce
from atalanta.wire.core.packets_connection import Disconnect, DisconnectV2, DisconnectV3, Ping
from atalanta.wire.core.packets_topology import ClusterTopology, SubscribeTopologyV2
from atalanta.wire.core.types import (
    CLUSTER_CHANNEL,
    HANDSHAKE,
    NEWEST_VERSION,
    PACKETS_CONFIRMED,
    PING_CHANNEL,
    packet_name,
)

if TYPE_CHECKING:
    from atalanta.cluster.cluster import Cluster

PINGS_PER_TTL: Final = 3


class ClusterLink(Connection):
    """`ready` after the peer accepted our credentials; `said_goodbye` when it left in good order."""

    def __init__(self, cluster: Cluster, conn: int, now: int) -> None:
        self.cluster = cluster
        self.conn = conn
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False
        self.framer: Framer = Framer(False)
        self.ready: bool = False
        self.gone: bool = False
        self.said_goodbye: bool = False
        self.last_seen: int = now
        self.last_ping: int = now
        self.waiting_since: int = now  # for the answers that open the link; 0 once it is open

    # -- conversation ---------------------------------------------------------------------------
    def open(self, now: int) -> None:
        """Handshake, ping, credentials (fact sheet, "Handshake between two real nodes")."""
        settings = self.cluster.settings
        self.write(HANDSHAKE)
        self.send(Ping(self.cluster.config.connection_ttl_ms), PING_CHANNEL)
        self.send(ClusterConnect(settings.cluster_user, settings.cluster_password), CLUSTER_CHANNEL)

    def on_ready(self, now: int) -> None:
        """The peer accepted us."""
        raise NotImplementedError

    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        """Anything that is not about the link itself."""
        raise NotImplementedError

    def on_lost(self, now: int, why: str) -> None:
        """The connection is gone; `said_goodbye` tells how."""
        raise NotImplementedError

    def announce(self, as_cluster: bool) -> None:
        """Who we are, and that we want to hear who is there."""
        own = self.cluster.own_member()
        self.send(
            NodeAnnounce(own.node_id, None, False, own.event_id, own.primary, None, None),
            CLUSTER_CHANNEL,
        )
        self.send(SubscribeTopologyV2(as_cluster, NEWEST_VERSION), PING_CHANNEL)

    # -- bytes ----------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        for frame in self.framer.feed(data):
            if self.gone:
                return
            self._frame(now, frame)

    def _frame(self, now: int, frame: Frame) -> None:
        if frame.type == PACKETS_CONFIRMED:
            return
        packet = codec.decode_frame(frame)
        if isinstance(packet, Ping):
            return
        if isinstance(packet, ClusterConnectReply):
            if not packet.authorized:
                raise ProtocolError("the peer refuses our cluster-user and cluster-password")
            self.ready = True
            self.on_ready(now)
        elif isinstance(packet, ClusterTopology):
            self.cluster.on_topology(now, packet)
        elif isinstance(packet, Disconnect | DisconnectV2 | DisconnectV3):
            self.said_goodbye = True
            self.cluster.host.closing.append(
                (self.conn, f"the peer said {packet_name(packet.type)}")
            )
        else:
            self.on_packet(now, packet, frame.channel)

    def send(self, packet: Packet, channel: int) -> None:
        self.write(codec.encode(packet, channel, NEWEST_VERSION))

    def write(self, data: bytes) -> None:
        if not self.dirty:
            self.dirty = True
            self.cluster.host.dirty.append(self.conn)
        self.out.write(data)

    def flush(self, now: int) -> None:
        self.dirty = False
        if len(self.out):
            data = self.out.getvalue()
            self.out.truncate(0)
            self.cluster.host.wire.write(self.conn, data)

    # -- life -----------------------------------------------------------------------------------
    def check_alive(self, now: int) -> bool:
        config = self.cluster.config
        if self.waiting_since and now - self.waiting_since > config.call_timeout_ms * 1_000_000:
            return False
        ttl_ns = config.connection_ttl_ms * 1_000_000
        if now - self.last_ping >= min(config.check_period_ms * 1_000_000, ttl_ns // PINGS_PER_TTL):
            self.last_ping = now
            self.send(Ping(config.connection_ttl_ms), PING_CHANNEL)
        return now - self.last_seen <= ttl_ns

    def stop(self, now: int) -> None:
        """Our own good-bye, also on connections we opened (fact sheet, "Leaving")."""
        self.send(DisconnectV3(self.cluster.node_id), PING_CHANNEL)
        self.cluster.host.closing.append((self.conn, "the node stops"))

    def closed(self, now: int, why: str) -> None:
        if not self.gone:
            self.gone = True
            self.on_lost(now, why)
