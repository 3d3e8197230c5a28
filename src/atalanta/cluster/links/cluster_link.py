"""A connection that this node opened to another member, with the cluster's login.

The kinds of link differ in the packets after the login: a locator (cluster/connection/scanner.py), a bridge
(cluster/connection/bridge.py) or the link of a scale-down (cluster/scale_down/link.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.cluster.links.cluster_login import ClusterLogin
from atalanta.cluster.links.outbound_link import DialedLink, link_settings
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import (
    ClusterChallenge,
    ClusterConnectReply,
    NodeAnnounce,
)
from atalanta.wire.core.packets.topology import ClusterTopology

if TYPE_CHECKING:
    from atalanta.cluster.topology.members import Members
    from atalanta.wire.core.transport import TransportConfiguration


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterLink(DialedLink):
    """The link's state. `ready`: the peer accepted the cluster's credentials.

    `discovered` is the dialed address if discovery named it (ClusterLogin). `trusted`: the peer gets the password
    nevertheless, because it has proven that it knows it.
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
        self.session_refused: bool = False  # for a reason that stays
        self.address: str = ""  # that was dialed
        self.discovered: str = ""
        self.trusted: bool = False
        self.login: ClusterLogin | None = None

    # -- conversation ---------------------------------------------------------------------------
    def open(self, now: int, target: TransportConfiguration | None = None) -> None:
        self.address = "" if target is None else target.address
        super().open(now, target)

    def log_in(self, now: int) -> None:
        """Sends the challenge in place of the cluster's credentials."""
        local = self.local
        plain = self.trusted or local.plain_password
        self.login = ClusterLogin(local.settings, local.node_id, self.discovered, plain, local.report_no_password)
        self.send(self.login.first(local.ids, local.is_real(self.address)), CLUSTER_CHANNEL)

    def _answered(self, now: int, login: ClusterLogin, authorized: bool) -> None:
        if login.answers_challenge:
            self.local.note_real(self.address)
        following = login.answered(authorized)
        if following is not None:
            self.send(following, CLUSTER_CHANNEL)
            return
        self.ready = True
        self.on_ready(now)

    @property
    def refused(self) -> bool:
        """Returns whether the peer will refuse this node again: other credentials of the cluster, no common version."""
        return self.session_refused or (self.login is not None and self.login.refused)

    @property
    def withheld(self) -> bool:
        """Returns whether the peer got no password, as discovery named it and it has not proven that it knows it."""
        return self.login is not None and self.login.told

    @property
    def proven(self) -> bool:
        """Returns whether the peer has proven the cluster password, as only nodes of Atalanta do."""
        return self.login is not None and self.login.proven

    @property
    def session_password(self) -> str:
        assert self.login is not None
        return self.login.session_password

    def on_ready(self, now: int) -> None:
        """Handles the peer's acceptance of the credentials."""
        raise NotImplementedError

    def on_other_packet(self, now: int, packet: Packet, channel: int) -> None:
        """Handles every packet but the login's answer and the topology."""
        raise NotImplementedError

    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        login = self.login
        if login is not None and isinstance(packet, ClusterConnectReply):
            self._answered(now, login, packet.authorized)
        elif login is not None and isinstance(packet, ClusterChallenge):
            self.send(login.proof(packet), CLUSTER_CHANNEL)
        elif isinstance(packet, ClusterTopology):
            if self.ready:  # from nobody else: members get the password
                self.members.on_topology(now, packet, self.proven)
        else:
            self.on_other_packet(now, packet, channel)

    def announce(self, as_cluster: bool) -> None:
        """Announces this node, and subscribes to the topology."""
        self.announce_pair()
        self.negotiation.subscribe(as_cluster)

    def announce_pair(self) -> None:
        """Announces this node and its backup to the peer (NODE_ANNOUNCE)."""
        own = self.local.member()
        self.send(
            NodeAnnounce(
                node_id=own.node_id,
                event_id=own.event_id,
                connector=own.primary,
                backup_connector=own.backup,
                scale_down_group=own.scale_down_group,
            ),
            CLUSTER_CHANNEL,
        )
