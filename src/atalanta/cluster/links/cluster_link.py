"""A connection that this node opened to another member, with the cluster's login.

The kinds of link differ in the packets after the login: a locator (cluster/connection/scanner.py), a bridge
(cluster/connection/bridge.py) or the link of a scale-down (cluster/scale_down/link.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.cluster.links.outbound_link import DialedLink, link_settings
from atalanta.kernel.security.cluster_proof import (
    ACCEPT,
    CHALLENGE_USER,
    DIAL,
    NONCE_BYTES,
    PROVEN_PASSWORD,
    ClusterNonces,
    same_proof,
)
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL, NEWEST_VERSION, PING_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import (
    ClusterChallenge,
    ClusterConnect,
    ClusterConnectReply,
    ClusterProof,
    NodeAnnounce,
)
from atalanta.wire.core.packets.topology import ClusterTopology, SubscribeTopologyV2

if TYPE_CHECKING:
    from atalanta.cluster.topology.members import Members


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterLink(DialedLink):
    """The link's state. `ready`: the peer accepted the cluster's credentials; `refused`: it did not.

    `discovered` is the dialed address if discovery named it: any host can send that. Its peer must prove that it knows
    the password (`proven`), unless the configuration allows plain text. Other peers, such as a real Artemis, get the
    password if they do not know the challenge.
    """

    def __init__(self, members: Members, conn: int, now: int, again: bool = False) -> None:
        """`again`: there was a link to that member before, so the timeout of reconnects applies."""
        local = members.local
        config = local.config
        timeout_ms = config.call_failover_timeout_ms if again else config.call_timeout_ms
        settings = link_settings(config.connection_ttl_ms, config.check_period_ms, timeout_ms)
        super().__init__(local.host, conn, now, settings)
        self.members = members
        self.local = local
        self.ready: bool = False
        self.refused: bool = False
        self.discovered: str = ""
        self.proven: bool = False
        self.plain: bool = False  # the password was sent
        self.nonce: str = ""

    # -- conversation ---------------------------------------------------------------------------
    def log_in(self, now: int) -> None:
        """Sends the challenge in place of the cluster's credentials."""
        self.nonce = self.local.ids.secret(NONCE_BYTES).hex()
        self.send(ClusterConnect(CHALLENGE_USER, self.nonce), CLUSTER_CHANNEL)

    def _challenged(self, packet: ClusterChallenge) -> None:
        """Checks the peer's proof, and sends this node's, or none for a peer with another password."""
        if not self.nonce:
            raise ProtocolError("CLUSTER_CHALLENGE that was not asked for")
        settings = self.local.settings
        user, password = settings.cluster_user, settings.cluster_password
        nonces = ClusterNonces(self.nonce, packet.nonce)
        self.nonce = ""
        expected = nonces.proof(user, password, ACCEPT, packet.node_id)
        own_id = self.local.node_id
        proof = ""
        if same_proof(expected, packet.proof):
            self.proven = True
            proof = nonces.proof(user, password, DIAL, own_id, self.discovered)
        self.send(ClusterProof(own_id, self.discovered, proof), CLUSTER_CHANNEL)

    def _answered(self, now: int, authorized: bool) -> None:
        local = self.local
        may_be_plain = not self.discovered or local.plain_password
        challenged = not self.nonce
        if not self.proven and not may_be_plain:
            if not challenged:
                local.report_no_password(self.discovered)
            raise ProtocolError("the peer does not prove the cluster-password")
        if authorized:
            self.ready = True
            self.on_ready(now)
        elif challenged or self.plain:
            self.refused = True
            raise ProtocolError("the peer refuses our cluster-user and cluster-password")
        else:
            self.plain = True
            settings = local.settings
            credentials = ClusterConnect(settings.cluster_user, settings.cluster_password)
            self.send(credentials, CLUSTER_CHANNEL)

    @property
    def session_password(self) -> str:
        """Returns the password for sessions on this link: none after a proof."""
        return PROVEN_PASSWORD if self.proven else self.local.settings.cluster_password

    def on_ready(self, now: int) -> None:
        """Handles the peer's acceptance of the credentials."""
        raise NotImplementedError

    def on_other_packet(self, now: int, packet: Packet, channel: int) -> None:
        """Handles every packet but the login's answer and the topology."""
        raise NotImplementedError

    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, ClusterConnectReply):
            self._answered(now, packet.authorized)
        elif isinstance(packet, ClusterChallenge):
            self._challenged(packet)
        elif isinstance(packet, ClusterTopology):
            if self.ready:  # from nobody else: members get the password
                self.members.on_topology(now, packet)
        else:
            self.on_other_packet(now, packet, channel)

    def announce(self, as_cluster: bool) -> None:
        """Announces this node, and subscribes to the topology."""
        own = self.local.member()
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
