"""A target of a router, and its check (ActiveMQTarget and TargetMonitor of Artemis).

The pool requests over a link of its own, every check-period, whether the target is active. The target is ready from
an answer that it is active until another answer or the end of the link. The client id of this link has a prefix that
routers know: they never redirect such a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection_routers.policies import TargetAttributes
from atalanta.cluster.links.cluster_login import ClusterLogin
from atalanta.cluster.links.forward_frame import PRODUCER_ID
from atalanta.cluster.links.outbound_link import DialedLink, link_settings
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.wire.core.client.management import ManagementRequests
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL, FIRST_SESSION_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterChallenge, ClusterConnectReply
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.session import CreateSessionResponse
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.connection_routers.pool import Pool
    from atalanta.wire.core.transport import TransportConfiguration

CHANNEL: Final = FIRST_SESSION_CHANNEL
CREDITS: Final = 1 << 20
CALL_TIMEOUT_MS: Final = 3_000  # Artemis waits this long for each attribute
TTL_MS: Final = 60_000
CLIENT_ID_PREFIX: Final = "router.client."  # after the internal naming prefix


class RouterTarget(TargetAttributes):
    """`connector` None is this node itself, which is always ready. `node_id` "" until the target told it."""

    def __init__(self, number: int, connector: TransportConfiguration | None, node_id: str) -> None:
        self.number = number
        self.connector = connector
        self.node_id = node_id
        self.connections = -1
        self.ready: bool = connector is None
        self.link: RouterTargetLink | None = None
        self.dialing: bool = False
        self.withheld: bool = False  # it got no password, told once
        self.lost_reported: bool = False  # since the last answer

    @property
    def local(self) -> bool:
        return self.connector is None


class RouterTargetLink(DialedLink):
    """The link's state. One attribute is requested at a time; `asked` is its name, or ""."""

    def __init__(self, pool: Pool, target: RouterTarget, conn: int, now: int) -> None:
        settings = link_settings(TTL_MS, TTL_MS // 2, CALL_TIMEOUT_MS)
        super().__init__(pool.host, conn, now, settings)
        self.pool = pool
        self.target = target
        self.unique = self.host.broker.ids.uuid().hex()
        self.requests = ManagementRequests(
            CHANNEL,
            self.host.broker.config.management_address,
            f"{pool.internal_prefix}router.answers.{self.unique}",
            0,
            PRODUCER_ID,
        )
        self.asked: str = ""
        self.login: ClusterLogin | None = pool.login(target)

    def log_in(self, now: int) -> None:
        """Proves the cluster's password, as cluster links do, if the pool has no user of its own."""
        if self.login is None:
            self._open_session(self.pool.config.user, self.pool.config.password)
        else:
            self.send(self.login.challenge(self.host.broker.ids), CLUSTER_CHANNEL)

    def _open_session(self, user: str | None, password: str | None) -> None:
        settings = SessionSettings(
            name=self.unique,
            user=user,
            password=password,
            pre_acknowledge=True,
            client_id=f"{self.pool.internal_prefix}{CLIENT_ID_PREFIX}{self.unique}",
        )
        self.negotiation.create(settings, CHANNEL)

    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        login = self.login
        if login is not None and isinstance(packet, ClusterChallenge):
            self.send(login.proof(packet), CLUSTER_CHANNEL)
        elif login is not None and isinstance(packet, ClusterConnectReply):
            following = login.answered(packet.authorized)
            if following is not None:
                self.send(following, CLUSTER_CHANNEL)
            else:
                self._open_session(login.settings.cluster_user, login.session_password)
        elif isinstance(packet, CreateSessionResponse):
            self.requests.version = self.version
            for each in self.requests.subscription(MULTICAST, CREDITS):
                self.send(each, CHANNEL)
            self.check(now)
        elif isinstance(packet, ReceiveMessage):
            self.send(FlowToken(0, packet.message.size + 64), CHANNEL)
            self.requests.on_message(now, packet.message)
        elif isinstance(packet, ExceptionResponse):
            raise ProtocolError(f"the target refused: {packet.message} (code {packet.code})")

    def check(self, now: int) -> None:
        """Requests the target's attributes; a request without an answer ends the link."""
        if not self.asked:
            self._ask(now, "Active" if self.target.node_id else "NodeID")

    def _ask(self, now: int, attribute: str) -> None:
        self.asked = attribute
        self.transport.await_answer(now)
        self.write(self.requests.attribute(now, "broker", attribute, self._answered))

    def _answered(self, now: int, succeeded: bool, value: object) -> None:
        asked = self.asked
        self.asked = ""
        self.transport.answered()
        target = self.target
        if not succeeded:
            raise ProtocolError(f"the target refuses its {asked}: {value}")
        if asked == "NodeID" and isinstance(value, str):
            target.node_id = value
            self._ask(now, "Active")
        elif asked == "Active" and value is True and self.pool.counts:
            self._ask(now, "ConnectionCount")
        elif asked == "Active" and isinstance(value, bool):
            self.pool.checked(now, target, value)
        elif asked == "ConnectionCount" and isinstance(value, int):
            target.connections = value
            self.pool.checked(now, target, True)
        else:
            raise ProtocolError(f"the target does not tell its {asked}: {value}")

    def on_lost(self, now: int, why: str) -> None:
        self.pool.lost(now, self.target, why)
