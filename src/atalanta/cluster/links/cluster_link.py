"""A connection this node opened to another member, with the cluster's login.

What is said after the login is up to the kind of link: a locator (cluster/connection/locator.py) or a bridge
(cluster/connection/bridge.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.cluster.links.outbound_link import DialedLink, LinkTimes
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL, HANDSHAKE, NEWEST_VERSION, PING_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, ClusterConnectReply, NodeAnnounce
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterLink(DialedLink):
    """`ready` after the peer accepted our credentials."""

    def __init__(self, cluster: Cluster, conn: int, now: int) -> None:
        config = cluster.config
        times = LinkTimes(config.connection_ttl_ms, config.check_period_ms, config.call_timeout_ms)
        super().__init__(cluster.host, conn, now, times)
        self.cluster = cluster
        self.ready: bool = False

    # -- conversation ---------------------------------------------------------------------------
    def open(self, now: int) -> None:
        """Handshake, ping, credentials (fact sheet, "Handshake between two real nodes")."""
        settings = self.cluster.settings
        self.write(HANDSHAKE)
        self.send(Ping(self.times.connection_ttl_ms), PING_CHANNEL)
        self.send(ClusterConnect(settings.cluster_user, settings.cluster_password), CLUSTER_CHANNEL)

    def on_ready(self, now: int) -> None:
        """The peer accepted us."""
        raise NotImplementedError

    def on_said(self, now: int, packet: Packet, channel: int) -> None:
        """Anything that is not about the link itself."""
        raise NotImplementedError

    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, ClusterConnectReply):
            if not packet.authorized:
                raise ProtocolError("the peer refuses our cluster-user and cluster-password")
            self.ready = True
            self.on_ready(now)
        elif isinstance(packet, ClusterTopology):
            self.cluster.members.on_topology(now, packet)
        else:
            self.on_said(now, packet, channel)

    def announce(self, as_cluster: bool) -> None:
        """Who we are, and that we want to hear who is there."""
        own = self.cluster.own_member()
        self.send(
            NodeAnnounce(
                node_id=own.node_id,
                event_id=own.event_id,
                connector=own.primary,
                scale_down_group=own.scale_down_group,
            ),
            CLUSTER_CHANNEL,
        )
        self.send(SubscribeTopologyV2(as_cluster, NEWEST_VERSION), PING_CHANNEL)
