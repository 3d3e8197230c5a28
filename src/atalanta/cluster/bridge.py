"""The way to one peer: a consumer of its store-and-forward queue, and an ear for its notifications.

On one connection (fact sheet, "Handshake between two real nodes", 3): the cluster's login, a session that sends, and a
session that reads the peer's notifications through a temporary queue. A message is finished here when the peer has
answered that it is safe there; after a lost connection it is sent again under the same id and the peer drops a repeat.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.cluster.forwarding import forwarded, node_id_bytes, send_frames
from atalanta.cluster.large_forwarding import LargeForwarding
from atalanta.cluster.link import ClusterLink
from atalanta.kernel.bridge_endpoint import BridgeEndpoint
from atalanta.kernel.message import Message, text_body
from atalanta.kernel.moves import dead_letter
from atalanta.kernel.reference import DELIVERING, Reference
from atalanta.kernel.story import tell
from atalanta.wire.base import ProtocolError
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets_message import ReceiveMessage
from atalanta.wire.core.packets_producer import (
    CreateProducer,
    ProducerCredits,
    RequestProducerCredits,
)
from atalanta.wire.core.packets_query import QueueQueryResponseV3
from atalanta.wire.core.packets_queue import CreateQueueV2
from atalanta.wire.core.packets_session import (
    CreateSession,
    CreateSessionResponse,
    CreateSessionV2,
    SessionStart,
)
from atalanta.wire.core.types import NEWEST_VERSION

if TYPE_CHECKING:
    from atalanta.cluster.cluster import Cluster
    from atalanta.cluster.record import PeerRecord
    from atalanta.kernel.large import LargeBody

SEND_CHANNEL: Final = 10
NOTIFICATION_CHANNEL: Final = 11
WINDOW_BYTES: Final = 1 << 20  # in flight to the peer, unanswered
NOTIFICATION_CREDITS: Final = 1 << 20
CREDIT_STEP_MIN: Final = 64 << 10
MANAGEMENT_CORRELATION: Final = 1

FILTER: Final = (
    "(_AMQ_Binding_Type <> 2 OR _AMQ_Binding_Type IS NULL) AND _AMQ_NotifType IN ('SESSION_CREATED','BINDING_ADDED',"
    "'BINDING_REMOVED','BINDING_UPDATED','CONSUMER_CREATED','CONSUMER_CLOSED','PROPOSAL','PROPOSAL_RESPONSE','UNPROPOSAL')"
    " AND _AMQ_Distance < {hops} AND ({addresses}) AND (_AMQ_NotifType = 'SESSION_CREATED' OR"
    " (_AMQ_Address NOT LIKE 'activemq.notifications%'))"
)


def notification_filter(max_hops: int, prefixes: str, internal_prefix: str) -> str:
    """As ClusterConnectionBridge builds it: included prefixes joined by OR, excluded ones by AND NOT."""
    included: list[str] = []
    excluded = [f"{internal_prefix}sf.", "activemq.management", "ActiveMQ.Advisory."]
    for part in prefixes.split(","):
        prefix = part.strip().replace("'", "''")
        if prefix.startswith("!"):
            excluded.append(prefix[1:])
        elif prefix:
            included.append(prefix)
    clauses: list[str] = []
    if included:
        clauses.append(
            "(" + " OR ".join(f"(_AMQ_Address LIKE '{prefix}%')" for prefix in included) + ")"
        )
    clauses.extend(f"(_AMQ_Address NOT LIKE '{prefix}%')" for prefix in excluded)
    return FILTER.format(hops=max_hops, addresses=" AND ".join(clauses))


class Bridge(ClusterLink):
    """`outgoing` are messages taken from the queue but not yet sent (the peer gave no credit for their address)."""

    def __init__(self, cluster: Cluster, conn: int, now: int, record: PeerRecord) -> None:
        super().__init__(cluster, conn, now)
        self.record = record
        self.sessions_open: int = 0
        self.endpoint = BridgeEndpoint(self.take)
        self.consumer = self.endpoint.consumer_of(record.forward)
        self.outgoing: deque[Reference] = deque()
        self.unanswered: dict[int, Reference] = {}
        self.next_correlation: int = 1
        self.credits: dict[str, int] = {}
        self.asked: dict[str, bool] = {}
        self.node_bytes = node_id_bytes(cluster.node_id)
        self.acknowledged: list[Reference] = []
        self.queue_name: str = ""
        self.blocked: bool = False  # by the shell: the peer does not take what was written
        self.large: LargeForwarding | None = None  # on its way: nothing else is sent meanwhile

    # -- opening --------------------------------------------------------------------------------
    def on_ready(self, now: int) -> None:
        self.cluster.member_back(now, self.record)
        self.announce(False)
        settings = self.cluster.settings
        name = self.cluster.unique_name()
        window = self.cluster.config.confirmation_window_bytes
        self.send(
            CreateSession(name + "-send", SEND_CHANNEL, NEWEST_VERSION, settings.cluster_user,
                          settings.cluster_password, confirmation_window=window, pre_acknowledge=True), 1,
        )  # fmt: skip
        self.send(
            CreateSessionV2(name + "-notify", NOTIFICATION_CHANNEL, NEWEST_VERSION, settings.cluster_user,
                            settings.cluster_password, confirmation_window=window, pre_acknowledge=True), 1,
        )  # fmt: skip

    def _session_open(self, now: int) -> None:
        self.sessions_open += 1
        if self.sessions_open < 2:
            return
        self.waiting_since = 0
        self.send(CreateProducer(1, None), SEND_CHANNEL)
        own_name = self.cluster.broker.config.name
        self.queue_name = f"notif.{self.cluster.unique_name()}.ActiveMQServerImpl_name={own_name}"
        text = notification_filter(
            self.cluster.config.max_hops,
            self.cluster.config.address,
            self.cluster.settings.internal_naming_prefix,
        )
        self.send(
            CreateQueueV2(
                self.cluster.notification_address,
                self.queue_name,
                text,
                False,
                True,
                True,
                False,
                0,
                -1,
                False,
            ),
            NOTIFICATION_CHANNEL,
        )
        self.send(CreateConsumer(0, self.queue_name, None, False, True, 0), NOTIFICATION_CHANNEL)
        self.send(FlowToken(0, NOTIFICATION_CREDITS), NOTIFICATION_CHANNEL)
        self.send(SessionStart(), NOTIFICATION_CHANNEL)
        body = text_body(json.dumps([self.queue_name, self.cluster.config.address]))
        request = Message.create(
            self.cluster.broker.config.management_address, body, 0, False, now // 1_000_000, 4
        )
        request.properties.put("_AMQ_ResourceName", "broker")
        request.properties.put("_AMQ_OperationName", "sendQueueInfoToQueue")
        self.write(send_frames(request, NOTIFICATION_CHANNEL, MANAGEMENT_CORRELATION))
        self.endpoint.attach(self.cluster.broker, self.consumer, WINDOW_BYTES)

    # -- frames in ------------------------------------------------------------------------------
    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, NullResponse):
            if channel == SEND_CHANNEL:
                self._answered(now, packet.correlation)
        elif isinstance(packet, ReceiveMessage):
            self._notified(now, packet)
        elif isinstance(packet, ProducerCredits):
            self.asked.pop(packet.address, None)
            self.credits[packet.address] = self.credits.get(packet.address, 0) + packet.credits
            self._pump()
        elif isinstance(packet, CreateSessionResponse):
            self._session_open(now)
        elif isinstance(packet, ExceptionResponse):
            self._refused(now, packet, channel)
        elif not isinstance(packet, QueueQueryResponseV3):
            self.cluster.broker.trace.count("bridge_packets_ignored")

    def _notified(self, now: int, packet: ReceiveMessage) -> None:
        self.record.bindings.on_notification(now, packet.message)
        self.send(FlowToken(0, packet.message.size + 64), NOTIFICATION_CHANNEL)

    def _refused(self, now: int, packet: ExceptionResponse, channel: int) -> None:
        """A message goes to the dead-letter address; without one it is kept, and offered again on a new link."""
        text = f"{packet.message} (code {packet.code})"
        reference = self.unanswered.get(packet.correlation) if channel == SEND_CHANNEL else None
        if reference is None:
            raise ProtocolError(f"the peer refused the bridge: {text}")
        self.cluster.told("forward_refused", self.record.node_id, text)
        broker = self.cluster.broker
        if broker.settings_of(reference.queue.spec.address).dead_letter_address is None:
            raise ProtocolError(f"the peer refused message {reference.message.id}: {text}")
        del self.unanswered[packet.correlation]
        self.consumer.unacknowledged.pop(reference.message.id)
        self._give_credit(reference)
        dead_letter(broker, now, reference)

    # -- messages out ---------------------------------------------------------------------------
    def take(self, reference: Reference) -> int:
        """From the queue's dispatch: send it as soon as the peer gives credit for its address."""
        self.outgoing.append(reference)
        self._pump()
        return reference.message.size

    def _pump(self) -> None:
        while self.outgoing and self.large is None:
            reference = self.outgoing[0]
            message = reference.message
            address = message.address
            left = self.credits.get(address, 0)
            if left < message.size:
                self._ask(address, max(message.size, CREDIT_STEP_MIN))
                return
            self.credits[address] = left - message.size
            self.outgoing.popleft()
            correlation = self.next_correlation
            self.next_correlation = correlation + 1
            self.unanswered[correlation] = reference
            copy = forwarded(
                reference, self.node_bytes, self.cluster.config.use_duplicate_detection
            )
            if copy.large is not None:
                self.large = LargeForwarding(self, copy, copy.large, SEND_CHANNEL, correlation)
            else:
                self.write(send_frames(copy, SEND_CHANNEL, correlation))
            self.record.forwarded += 1
            if self.cluster.broker.trace.on:
                tell(self.cluster.broker.trace, "story_forwarded", message, self.record.node_id)
            if self.credits[address] < CREDIT_STEP_MIN:
                self._ask(address, 4 * CREDIT_STEP_MIN)
            if self.large is not None:
                self.large.pump()

    def large_sent(self) -> None:
        """The large message is with the peer, or on its way: the next one."""
        self.large = None
        self._pump()

    def cannot_read(self, body: LargeBody) -> None:
        """The peer has its beginning, and learns by the end of the connection that there is no more."""
        broker = self.cluster.broker
        broker.large.damaged(body.file, body.size, -1, self.record.forward.name)
        self.cluster.host.closing.append((self.conn, "a large message cannot be read"))

    def on_blocked(self, now: int, blocked: bool) -> None:
        self.blocked = blocked
        if not blocked and self.large is not None:
            self.large.pump()

    def _ask(self, address: str, amount: int) -> None:
        """Credits are asked for once at a time; the peer withholds them while its memory is full."""
        if address not in self.asked:
            self.asked[address] = True
            self.send(RequestProducerCredits(amount, address), SEND_CHANNEL)

    def _answered(self, now: int, correlation: int) -> None:
        reference = self.unanswered.pop(correlation, None)
        if reference is None:
            return
        self.consumer.unacknowledged.pop(reference.message.id)
        self._give_credit(reference)
        self.acknowledged.append(reference)
        self.record.confirmed += 1
        if self.cluster.broker.trace.on:
            tell(self.cluster.broker.trace, "story_taken_over", reference.message, self.record.node_id)

    def _give_credit(self, reference: Reference) -> None:
        self.consumer.credits += reference.message.size
        if self.consumer.ready():
            self.cluster.broker.mark_dirty(self.record.forward)

    def settle(self, now: int) -> None:
        """Once per turn: what the peer has answered for is finished here, in one record."""
        if self.acknowledged:
            done = [reference for reference in self.acknowledged if reference.state == DELIVERING]
            self.acknowledged = []
            if done:
                self.cluster.broker.acknowledge(now, done, None, 0)

    # -- the end --------------------------------------------------------------------------------
    def on_lost(self, now: int, why: str) -> None:
        self.settle(now)
        self.endpoint.detach(self.cluster.broker, self.consumer)
        if self.large is not None:
            self.large.abort()
            self.large = None
        self.outgoing.clear()
        self.unanswered.clear()
        self.cluster.bridge_lost(now, self, why)
