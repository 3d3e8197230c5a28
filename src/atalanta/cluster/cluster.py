"""One cluster connection of a node: who is there, a way to each of them, and what they hold.

Members are found through static connectors or a discovery group (a Locator to each), learnt from topologies, and each
gets a PeerRecord with a durable store-and-forward queue and a Bridge. A peer that crashes keeps its queue and its
bindings (they attract nothing while it is away); a peer that says good-bye keeps the queue only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.bridge import Bridge
from atalanta.cluster.config import OFF_WITH_REDISTRIBUTION as OFF_WITH_REDISTRIBUTION_NAME
from atalanta.cluster.config import STRICT as STRICT_NAME
from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.cluster.discovery import Discovery
from atalanta.cluster.locator import Locator
from atalanta.cluster.part import Part
from atalanta.cluster.record import PeerRecord
from atalanta.cluster.redistribution import TIMER as REDISTRIBUTE_TIMER
from atalanta.cluster.redistribution import Redistribution
from atalanta.cluster.subscribers import Subscribers
from atalanta.cluster.topology import Member, Topology
from atalanta.kernel import catalogue
from atalanta.kernel.bindings import OFF, OFF_WITH_REDISTRIBUTION, ON_DEMAND, STRICT
from atalanta.kernel.queue_spec import MULTICAST, QueueSpec
from atalanta.wire.base import Connection
from atalanta.wire.core.packets_topology import ClusterTopology
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.management import Management
    from atalanta.kernel.notifications import Notifications
    from atalanta.kernel.ports import Links, Wire
    from atalanta.kernel.queue import Queue
    from atalanta.wire.core.host import CoreHost

LOCATE: Final = "cluster.locate."
BRIDGE: Final = "cluster.bridge."
ANNOUNCE: Final = "cluster.announce"
CONNECT_TIMEOUT_MAX_MS: Final = 600_000


class Cluster(Part):
    """`mode` is the load balancing of bindings.py; `peers` by node id."""

    def __init__(
        self,
        settings: ClusterSettings,
        broker: Broker,
        notifications: Notifications,
        management: Management,
        host: CoreHost,
        links: Links,
        wire: Wire,
    ) -> None:
        self.settings = settings
        self.config: ClusterConnectionConfig = settings.cluster_connections[0]
        self.broker = broker
        self.notifications = notifications
        self.host = host
        self.links = links
        self.wire = wire
        self.node_id = broker.node_id
        self.notification_address = broker.config.management_notification_address
        self.mode = load_balancing(self.config)
        self.topology = Topology()
        self.peers: dict[str, PeerRecord] = {}
        self.locators: dict[str, Locator] = {}
        self.targets: dict[str, TransportConfiguration] = {}
        self.attempts: dict[str, int] = {}
        self.event_id: int = 0
        self.announcements_left: int = 0
        self.stopping: bool = False
        self.redistribution = Redistribution(self)
        self.discovery = Discovery(self)
        self.subscribers = Subscribers(self)
        host.cluster = self.subscribers
        management.topology = self.describe

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        self.event_id = now // 1_000_000
        self.broker.observers.append(self.redistribution)
        self.topology.update(self.own_member())
        if self.settings.has_default_password:
            self.told(
                "cluster_default_password", self.node_id, "change cluster-user and cluster-password"
            )
        for name in self.config.static_connectors:
            self.find(now, name, self.transport(name))
        self.discovery.start(now)
        self.announcements_left = self.config.notification_attempts
        self.broker.timers.set(ANNOUNCE, now + self.config.notification_interval_ms * 1_000_000)

    def stop(self, now: int) -> None:
        """Links say good-bye themselves (ClusterLink.stop); nothing is dialled any more."""
        self.stopping = True
        self.discovery.stop()

    def own_member(self) -> Member:
        return Member(
            self.node_id, self.event_id, self.transport(self.config.connector), None, None, None
        )

    def transport(self, name: str) -> TransportConfiguration:
        connector = self.settings.connectors[name]
        made = TransportConfiguration(name)
        for key, value in connector.transport_params().items():
            made.put(key, value)
        return made

    def unique_name(self) -> str:
        return self.broker.ids.uuid().hex()

    def dial(self, key: str, target: TransportConfiguration) -> None:
        """With TLS as a connector of our own describes it: what peers announce of theirs is no secret, and no proof.

        A node that announces itself by TLS never logs in at another over a plain connection, whatever that one
        announces; only a static connector written without TLS says otherwise.
        """
        connectors = self.settings.connectors
        named = connectors.get(target.name)
        static = named is not None and target.name in self.config.static_connectors
        own = connectors[self.config.connector]
        timeout_ms = connect_timeout_ms(target)
        if named is not None and static:
            timeout_ms = named.connect_timeout_ms
        wanted = target.parameters.get("sslEnabled", "").lower() == "true"
        if not wanted and (static or own.tls is None):
            self.links.dial_within(key, target.host, target.port, timeout_ms)
        elif named is not None and named.tls is not None:
            self.links.dial_secure(key, target.host, target.port, target.name, timeout_ms)
        else:
            self.links.dial_secure(key, target.host, target.port, own.name, timeout_ms)

    # -- finding members ------------------------------------------------------------------------
    def find(self, now: int, name: str, target: TransportConfiguration) -> None:
        """Keep a locator to this connector, unless it is our own."""
        if target.same_target(self.transport(self.config.connector)) or name in self.targets:
            return
        self.targets[name] = target
        self._dial_locator(name)

    def _dial_locator(self, name: str) -> None:
        target = self.targets.get(name)
        if target is not None and not self.stopping:
            self.dial(LOCATE + name, target)

    def forget(self, name: str) -> None:
        """A discovered connector that is no longer heard of and has no connection."""
        if name not in self.locators:
            self.targets.pop(name, None)

    def locator_lost(self, now: int, name: str, why: str) -> None:
        self.locators.pop(name, None)
        self._retry(now, LOCATE + name)

    def _retry(self, now: int, key: str) -> None:
        """retry-interval, growing by its multiplier up to max-retry-interval."""
        if self.stopping:
            return
        attempt = self.attempts.get(key, 0)
        self.attempts[key] = attempt + 1
        limit = (
            self.config.initial_connect_attempts
            if key.startswith(LOCATE)
            else self.config.reconnect_attempts
        )
        if 0 <= limit <= attempt:
            self._give_up(now, key)
            return
        pause_ms = self.config.retry_interval_ms * self.config.retry_interval_multiplier ** min(
            attempt, 60
        )
        pause_ms = min(
            pause_ms, max(self.config.max_retry_interval_ms, self.config.retry_interval_ms)
        )
        self.broker.timers.set(key, now + int(pause_ms * 1_000_000))

    def _give_up(self, now: int, key: str) -> None:
        self.told("cluster_gave_up", key, "its attempts are used up")
        if key.startswith(BRIDGE):
            record = self.peers.pop(key[len(BRIDGE) :], None)
            if record is not None:
                record.bindings.remove_all(now)

    # -- topology -------------------------------------------------------------------------------
    def on_topology(self, now: int, packet: ClusterTopology) -> None:
        """News from a peer we are connected to."""
        if packet.exit:
            record = self.peers.get(packet.node_id)
            if packet.node_id != self.node_id and (record is None or not record.linked()):
                self.member_gone(now, packet.node_id, packet.event_id)
            return
        member = Member(
            packet.node_id,
            packet.event_id,
            packet.primary,
            packet.backup,
            packet.backup_group,
            packet.scale_down_group,
        )
        self.member_news(now, member)

    def member_news(self, now: int, news: Member) -> None:
        if news.node_id == self.node_id:
            self._check_own(news)
            return
        known = self.topology.members.get(news.node_id)
        taken = self.topology.update(news)
        if taken is None:
            return
        if known is None and taken.primary is not None:
            place = f"{taken.primary.host}:{taken.primary.port}"
            self.broker.trace.event("member", {"node": news.node_id, "at": place})
        self.subscribers.tell(taken)
        self._bridge_to(now, taken)

    def _check_own(self, news: Member) -> None:
        if news.primary is not None:
            self.check_copied_folder([news.primary])

    def check_copied_folder(self, connectors: list[TransportConfiguration]) -> None:
        """Somebody shows our node id: if it is not we ourselves, one data folder was copied."""
        own = self.transport(self.config.connector)
        for other in connectors:
            if other.same_target(own):
                continue
            self.broker.trace.event(
                "duplicate_node_id",
                {
                    "node": self.node_id,
                    "other": f"{other.host}:{other.port}",
                    "what_to_do": "this data folder is a copy of that node's, or the other way round: stop one of the"
                    " two, delete the file node-id in its data folder (or the whole folder if its messages are copies),"
                    " and start it again",
                },
            )

    def member_gone(self, now: int, node_id: str, event_id: int) -> None:
        if self.topology.remove(node_id, event_id):
            self.broker.trace.event("member_gone", {"node": node_id})
            self.subscribers.tell_gone(node_id, event_id)

    def member_back(self, now: int, record: PeerRecord) -> None:
        """A peer whose link was lost answers again, perhaps without a restart of its own.

        Then it would go on showing the event id under which it was declared gone, and nobody would believe it: so it
        comes back here under the next one, and everybody who was told of its going is told of its return.
        """
        member = record.member
        if member is None or record.node_id in self.topology.members:
            return
        gone = self.topology.removed.get(record.node_id, 0)
        event_id = max(gone, member.event_id) + 1
        self.member_news(
            now,
            Member(
                member.node_id,
                event_id,
                member.primary,
                member.backup,
                member.backup_group,
                member.scale_down_group,
            ),
        )

    def _bridge_to(self, now: int, member: Member) -> None:
        if member.primary is None or self.stopping:
            return
        if self.config.allow_direct_connections_only and not self._is_direct(member.primary):
            return
        record = self.peers.get(member.node_id)
        if record is None:
            record = PeerRecord(self, member.node_id, self._forward_queue(now, member.node_id))
            self.peers[member.node_id] = record
        record.member = member
        if record.bridge is None and not record.dialing:
            record.dialing = True
            self.dial(BRIDGE + member.node_id, member.primary)

    def _is_direct(self, transport: TransportConfiguration) -> bool:
        for name in self.config.static_connectors:
            if self.transport(name).same_target(transport):
                return True
        return False

    def _forward_queue(self, now: int, node_id: str) -> Queue:
        """`$.artemis.internal.sf.<cluster>.<node>`: durable, internal, kept over restarts."""
        name = f"{self.settings.internal_naming_prefix}sf.{self.config.name}.{node_id}"
        queue = self.broker.queues.get(name)
        if queue is None:
            spec = QueueSpec(name, name, MULTICAST)
            spec.internal = True
            queue = catalogue.create_queue(self.broker, now, spec)
        self.broker.addresses[name].internal = True
        return queue

    def owner_of(self, cluster_name: str) -> str | None:
        """The peer whose bridge brought that binding."""
        for node_id, record in self.peers.items():
            if cluster_name in record.bindings.bindings:
                return node_id
        return None

    # -- connections ----------------------------------------------------------------------------
    def on_dialed(self, now: int, conn: int, key: str) -> Connection | None:
        if self.stopping:
            return None
        if key.startswith(LOCATE):
            name = key[len(LOCATE) :]
            self.attempts.pop(key, None)
            locator = Locator(self, conn, now, name)
            self.locators[name] = locator
            locator.open(now)
            return locator
        if key.startswith(BRIDGE):
            record = self.peers.get(key[len(BRIDGE) :])
            if record is None or record.bridge is not None:
                return None
            record.dialing = False
            self.attempts.pop(key, None)
            bridge = Bridge(self, conn, now, record)
            record.bridge = bridge
            bridge.open(now)
            return bridge
        return None

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        if key.startswith(BRIDGE):
            record = self.peers.get(key[len(BRIDGE) :])
            if record is None:
                return
            record.dialing = False
        self._retry(now, key)

    def bridge_lost(self, now: int, bridge: Bridge, why: str) -> None:
        record = bridge.record
        if record.bridge is bridge:
            record.bridge = None
        self.broker.trace.event("bridge_lost", {"node": record.node_id, "why": why})
        member = self.topology.members.get(record.node_id)
        if member is not None:
            self.member_gone(now, record.node_id, member.event_id)
        if bridge.said_goodbye:
            record.bindings.remove_all(now)
            self.peers.pop(record.node_id, None)
            return
        record.bindings.disconnected()
        self._retry(now, BRIDGE + record.node_id)

    # -- time and datagrams -----------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        if key.startswith(REDISTRIBUTE_TIMER):
            self.redistribution.on_timer(now, key)
        elif key == ANNOUNCE:
            self._announce_again(now)
        elif key.startswith(LOCATE):
            self._dial_locator(key[len(LOCATE) :])
        elif key.startswith(BRIDGE):
            self._dial_bridge(now, key)
        else:
            self.discovery.on_timer(now, key)

    def _dial_bridge(self, now: int, key: str) -> None:
        record = self.peers.get(key[len(BRIDGE) :])
        if record is None or record.bridge is not None or record.dialing or self.stopping:
            return
        member = self.topology.members.get(record.node_id) or record.member
        if member is not None and member.primary is not None:
            record.dialing = True
            self.dial(key, member.primary)

    def _announce_again(self, now: int) -> None:
        """notification-attempts times, with a fresh event id: news that were lost are told again."""
        self.event_id = max(self.event_id + 1, now // 1_000_000)
        self.topology.update(self.own_member())
        self.subscribers.tell(self.own_member())
        self.announcements_left -= 1
        if self.announcements_left > 0:
            self.broker.timers.set(ANNOUNCE, now + self.config.notification_interval_ms * 1_000_000)

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        self.discovery.on_datagram(now, group, data)

    def flush(self, now: int) -> None:
        for record in self.peers.values():
            if record.bridge is not None:
                record.bridge.settle(now)

    # -- telling --------------------------------------------------------------------------------
    def told(self, event: str, node_id: str, text: str) -> None:
        self.broker.trace.event(event, {"node": node_id, "why": text})

    def describe(self) -> list[dict[str, object]]:
        """listNetworkTopology: one entry a member, addresses as host:port."""
        described: list[dict[str, object]] = []
        for member in self.topology.members.values():
            entry: dict[str, object] = {"nodeID": member.node_id}
            if member.primary is not None:
                entry["primary"] = f"{member.primary.host}:{member.primary.port}"
                entry["live"] = entry["primary"]
            if member.backup is not None:
                entry["backup"] = f"{member.backup.host}:{member.backup.port}"
            described.append(entry)
        return described


def load_balancing(config: ClusterConnectionConfig) -> int:
    """message-load-balancing, or its deprecated predecessor forward-when-no-consumers."""
    if config.message_load_balancing == STRICT_NAME:
        return STRICT
    if config.message_load_balancing == OFF_WITH_REDISTRIBUTION_NAME:
        return OFF_WITH_REDISTRIBUTION
    if config.message_load_balancing == "OFF":
        return OFF
    return ON_DEMAND


def connect_timeout_ms(target: TransportConfiguration) -> int:
    """connect-timeout-millis of the connector that is dialed, within reason; -1 if it says nothing sensible."""
    text = target.parameters.get("connect-timeout-millis", "")
    if not text.isdecimal() or len(text) > 9:
        return -1
    return min(int(text), CONNECT_TIMEOUT_MAX_MS) or -1
