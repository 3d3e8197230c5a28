"""Bridge to one peer: consumes its store-and-forward queue and receives its notifications.

One connection has the cluster's login, a session that sends, and a session that reads the peer's notifications
through a temporary queue, as in Artemis' ClusterConnectionBridge. A message is acknowledged here when the peer has
answered that it is safe there. After a lost connection it is sent again with the same id, and the peer drops a
repeat.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from atalanta.cluster.address_prefixes import Covered
from atalanta.cluster.balancing.client_count import KIND as CLIENT_COUNTS
from atalanta.cluster.balancing.client_count import read_count
from atalanta.cluster.links.cluster_link import ClusterLink
from atalanta.cluster.links.forward_headers import forwarded, link_bytes, send_frames
from atalanta.cluster.links.limits import WINDOW_BYTES, OutgoingLimits
from atalanta.cluster.links.queue_sender import QueueSender
from atalanta.kernel.trace import tell
from atalanta.message.codec import text_body
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core.client.management import consumption, request_message
from atalanta.wire.core.client.settings import SessionSettings, session_creation
from atalanta.wire.core.client.transport import Goodbye
from atalanta.wire.core.packet_types import SESSION_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    REASON_SCALE_DOWN,
    REASON_SCALE_DOWN_CRITICAL,
    ExceptionResponse,
)
from atalanta.wire.core.packets.consumer import FlowToken
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.producer import ProducerCredits
from atalanta.wire.core.packets.query import QueueQueryResponseV3
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSessionResponse

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig
    from atalanta.cluster.connection.cluster_connection import Cluster
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message

SEND_CHANNEL: Final = 10
NOTIFICATION_CHANNEL: Final = 11
NOTIFICATION_CREDITS: Final = 1 << 20
MANAGEMENT_CORRELATION: Final = 1
SCALE_DOWN: Final = (REASON_SCALE_DOWN, REASON_SCALE_DOWN_CRITICAL)

FILTER: Final = (
    "(_AMQ_Binding_Type <> 2 OR _AMQ_Binding_Type IS NULL) AND _AMQ_NotifType IN ('SESSION_CREATED','BINDING_ADDED',"
    "'BINDING_REMOVED','BINDING_UPDATED','CONSUMER_CREATED','CONSUMER_CLOSED','PROPOSAL','PROPOSAL_RESPONSE','UNPROPOSAL')"
    " AND _AMQ_Distance < {hops} AND ({addresses}) AND (_AMQ_NotifType = 'SESSION_CREATED' OR"
    " (_AMQ_Address NOT LIKE 'activemq.notifications%'))"
)


def notification_filter(max_hops: int, prefixes: str, internal_prefix: str) -> str:
    """Returns the filter of ClusterConnectionBridge: included prefixes joined by OR, excluded ones by AND NOT.

    The last clause adds the client counts, which only Atalanta members send.
    """
    covered = Covered(prefixes)
    forced = [f"{internal_prefix}sf.", "activemq.management", "ActiveMQ.Advisory."]
    clauses: list[str] = []
    if covered.included:
        begins = [f"(_AMQ_Address LIKE {like(prefix)})" for prefix in covered.included]
        clauses.append("(" + " OR ".join(begins) + ")")
    excluded = [*forced, *covered.excluded]
    clauses.extend(f"(_AMQ_Address NOT LIKE {like(prefix)})" for prefix in excluded)
    text = FILTER.format(hops=max_hops, addresses=" AND ".join(clauses))
    return f"({text}) OR _AMQ_NotifType = '{CLIENT_COUNTS}'"


def like(prefix: str) -> str:
    """Returns the LIKE pattern for `prefix`. Unlike in Artemis, `_` and `%` in the prefix are plain characters."""
    quoted = prefix.replace("'", "''")
    if "_" not in quoted and "%" not in quoted:
        return f"'{quoted}%'"
    for character in ("!", "_", "%"):
        quoted = quoted.replace(character, "!" + character)
    return f"'{quoted}%' ESCAPE '!'"


def limits_of(config: ClusterConnectionConfig) -> OutgoingLimits:
    """Returns the limits that the cluster connection configures."""
    return OutgoingLimits(
        WINDOW_BYTES,
        config.producer_window_bytes,
        config.min_large_message_bytes,
        not config.use_duplicate_detection,
    )


class PeerOutgoing(QueueSender):
    """Sends the messages of the peer's store-and-forward queue, with the headers of the cluster."""

    def __init__(self, bridge: Bridge, record: PeerRecord) -> None:
        super().__init__(
            bridge,
            bridge.cluster.broker,
            record.forward,
            SEND_CHANNEL,
            limits_of(bridge.cluster.config),
        )
        self.cluster = bridge.cluster
        self.record = record
        self.link_bytes = link_bytes(bridge.cluster.node_id, record.node_id)
        self.mark = bridge.cluster.parked.mark_of(record.node_id, record.forward)

    def prepared(self, reference: Reference) -> Message:
        return forwarded(reference, self.link_bytes, self.cluster.config.use_duplicate_detection)

    def sent(self, reference: Reference) -> None:
        self.record.forwarded += 1
        if self.broker.trace.on:
            tell(self.broker.trace, "story_forwarded", reference.message, self.record.node_id)

    def confirmed(self, reference: Reference) -> None:
        self.record.confirmed += 1
        if self.broker.trace.on:
            tell(self.broker.trace, "story_taken_over", reference.message, self.record.node_id)

    def refused(self, text: str) -> None:
        self.cluster.told("forward_refused", self.record.node_id, text)


class Bridge(ClusterLink):
    """The bridge's state. Its sessions are created after the peer accepted the credentials."""

    def __init__(self, cluster: Cluster, conn: int, now: int, record: PeerRecord) -> None:
        super().__init__(cluster, conn, now, cluster.attempts.again(record.node_id))
        self.record = record
        self.sessions_open: int = 0
        self.left_to: str = ""  # target of the peer's scale-down, if it leaves for good
        self.outgoing = PeerOutgoing(self, record)
        self.queue_name: str = ""

    # -- opening --------------------------------------------------------------------------------
    def on_ready(self, now: int) -> None:
        self.cluster.members.back(now, self.record)
        self.announce(False)
        settings = self.cluster.settings
        name = self.cluster.unique_name()
        window = self.cluster.config.confirmation_window_bytes
        client_id = self.cluster.config.client_id
        for suffix, channel in (("-send", SEND_CHANNEL), ("-notify", NOTIFICATION_CHANNEL)):
            session = SessionSettings(
                name=name + suffix,
                user=settings.cluster_user,
                password=settings.cluster_password,
                pre_acknowledge=True,
                confirmation_window=window,
                client_id=client_id,
            )
            # The older packet has no client id. An Artemis bridge uses it for its first session.
            version_2 = channel == NOTIFICATION_CHANNEL or client_id is not None
            self.send(session_creation(session, channel, version_2), SESSION_CHANNEL)

    def _session_open(self, now: int) -> None:
        self.sessions_open += 1
        if self.sessions_open != 2:
            return
        self.transport.answered()
        self.cluster.bridge_open(now, self.record)
        self.outgoing.open()
        own_name = self.cluster.broker.config.name
        self.queue_name = f"notif.{self.cluster.unique_name()}.ActiveMQServerImpl_name={own_name}"
        text = notification_filter(
            self.cluster.config.max_hops,
            self.cluster.config.address,
            self.cluster.settings.internal_naming_prefix,
        )
        self.send(
            CreateQueueV2(
                address=self.cluster.notification_address,
                queue=self.queue_name,
                filter=text,
                durable=False,
                temporary=True,
                routing_type=0,
            ),
            NOTIFICATION_CHANNEL,
        )
        for packet in consumption(self.queue_name, NOTIFICATION_CREDITS, requires_response=True):
            self.send(packet, NOTIFICATION_CHANNEL)
        body = text_body(json.dumps([self.queue_name, self.cluster.config.address]))
        address = self.cluster.broker.config.management_address
        request = request_message(
            now, address, "broker", "_AMQ_OperationName", "sendQueueInfoToQueue", body
        )
        self.write(send_frames(request, NOTIFICATION_CHANNEL, MANAGEMENT_CORRELATION))
        self.cluster.parked.back(self.record.node_id)
        self.outgoing.attach()

    # -- frames in ------------------------------------------------------------------------------
    def on_answer(self, now: int, channel: int, correlation: int) -> None:
        if channel == SEND_CHANNEL:
            self.outgoing.on_answer(correlation)

    def on_said(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, ReceiveMessage):
            self._notified(now, packet)
        elif isinstance(packet, ProducerCredits):
            self.outgoing.on_credits(packet)
        elif isinstance(packet, CreateSessionResponse):
            self._session_open(now)
        elif isinstance(packet, ExceptionResponse):
            if channel != SEND_CHANNEL:
                text = f"{packet.message} (code {packet.code})"
                raise ProtocolError(f"the peer refused the bridge: {text}")
            self.outgoing.on_refused(now, packet)
        elif not isinstance(packet, QueueQueryResponseV3):
            self.cluster.broker.trace.count("bridge_packets_ignored")

    def _notified(self, now: int, packet: ReceiveMessage) -> None:
        self.record.bindings.on_notification(now, packet.message)
        self.record.clients = (
            read_count(now, packet.message, self.cluster, self.record.node_id)
            or self.record.clients
        )
        self.send(FlowToken(0, packet.message.size + 64), NOTIFICATION_CHANNEL)

    def on_blocked(self, now: int, blocked: bool) -> None:
        super().on_blocked(now, blocked)
        if not blocked:
            self.outgoing.unblocked()

    def settle(self, now: int) -> None:
        """Acknowledges the messages that the peer has answered, once per event-loop iteration, in one record."""
        self.outgoing.settle(now)

    def on_goodbye(self, goodbye: Goodbye) -> None:
        if goodbye.reason in SCALE_DOWN:
            self.left_to = goodbye.target_node_id or ""

    # -- the end --------------------------------------------------------------------------------
    def on_lost(self, now: int, why: str) -> None:
        self.outgoing.detach(now)
        self.cluster.bridge_lost(now, self, why)
