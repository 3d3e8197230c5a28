"""Bridge to one peer: consumes its store-and-forward queue and receives its notifications.

One connection has the cluster's login, a session that sends, and a session that reads the peer's notifications
through a temporary queue, as in Artemis' ClusterConnectionBridge. A message is acknowledged here when the peer has
answered that it is safe there. After a lost connection it is sent again with the same id, and the peer drops a
repeat.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.cluster.address_prefixes import Covered
from atalanta.cluster.balancing.client_count import KIND as CLIENT_COUNTS
from atalanta.cluster.balancing.client_count import read_count
from atalanta.cluster.links.cluster_link import ClusterLink
from atalanta.cluster.links.forward_frame import forwarded, link_bytes, send_frames
from atalanta.cluster.links.limits import WINDOW_BYTES, SendLimits
from atalanta.cluster.links.queue_sender import QueueSender
from atalanta.kernel.trace import trace_message
from atalanta.message.codec import text_body
from atalanta.wire.core.client.errors import FINAL_REFUSALS
from atalanta.wire.core.client.management import consumption, request_message
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.client.transport import DisconnectNotice
from atalanta.wire.core.packet_types import SESSION_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import QuorumVoteReply
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
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.cluster.links.sent_mark import SentMark
    from atalanta.cluster.topology.members import Members
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


def limits_of(config: ClusterConnectionConfig) -> SendLimits:
    """Returns the limits that the cluster connection configures."""
    return SendLimits(
        WINDOW_BYTES,
        config.producer_window_bytes,
        config.min_large_message_bytes,
        not config.use_duplicate_detection,
    )


class PeerSender(QueueSender):
    """Sends the messages of the peer's store-and-forward queue, with the headers of the cluster."""

    def __init__(self, bridge: ClusterBridge, record: PeerRecord, mark: SentMark) -> None:
        local = bridge.local
        limits = limits_of(local.config)
        super().__init__(bridge, bridge.host.broker.dead_letters, record.forward, SEND_CHANNEL, limits)
        self.local = local
        self.record = record
        self.link_bytes = link_bytes(local.node_id, record.node_id)
        self.use_duplicate_detection: bool = local.config.use_duplicate_detection
        self.mark = mark

    def prepared(self, reference: Reference) -> Message:
        return forwarded(reference, self.link_bytes, self.use_duplicate_detection)

    def sent(self, reference: Reference) -> None:
        self.record.forwarded += 1
        if self.trace.on:
            trace_message(self.trace, "trace_forwarded", reference.message, self.record.node_id)

    def confirmed(self, reference: Reference) -> None:
        self.record.confirmed += 1
        if self.trace.on:
            trace_message(self.trace, "trace_taken_over", reference.message, self.record.node_id)

    def refused(self, text: str) -> None:
        self.local.report("forward_refused", self.record.node_id, text)


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterBridgeListener:
    """The owner of the bridges of a cluster connection."""

    def bridge_open(self, now: int, record: PeerRecord) -> None:
        """Handles that the sessions at the peer are open."""
        raise NotImplementedError

    def bridge_lost(self, now: int, bridge: ClusterBridge, why: str) -> None:
        """Handles the end of a bridge, with or without DISCONNECT of the peer."""
        raise NotImplementedError


class ClusterBridge(ClusterLink):
    """The bridge's state. Its sessions are created after the peer accepted the credentials."""

    def __init__(
        self,
        members: Members,
        listener: ClusterBridgeListener,
        record: PeerRecord,
        mark: SentMark,
        conn: int,
        now: int,
        again: bool,
    ) -> None:
        """`again`: there was a link to that peer before, so the timeout of reconnects applies."""
        super().__init__(members, conn, now, again)
        self.listener = listener
        self.record = record
        self.sessions_open: int = 0
        self.left_to: str = ""  # target of the peer's scale-down, if it leaves for good
        self.outgoing = PeerSender(self, record, mark)
        self.queue_name: str = ""

    # -- opening --------------------------------------------------------------------------------
    def on_ready(self, now: int) -> None:
        self.announce(False)
        self._create_session("send", SEND_CHANNEL)

    def _create_session(self, purpose: str, channel: int) -> None:
        local = self.local
        session = SessionSettings(
            name=f"{local.unique_name()}-{purpose}",
            user=local.settings.cluster_user,
            password=self.session_password,
            pre_acknowledge=True,
            confirmation_window=local.config.confirmation_window_bytes,
            client_id=local.config.client_id,
        )
        self.negotiation.create(session, channel)

    def _session_open(self, now: int) -> None:
        self.sessions_open += 1
        if self.sessions_open == 1:
            self._create_session("notify", NOTIFICATION_CHANNEL)
        if self.sessions_open != 2:
            return
        self.transport.answered()
        if self.record.member is not None:  # not before: a peer that refuses the sessions is no member
            self.members.restore(now, self.record.member)
        self.listener.bridge_open(now, self.record)
        self.outgoing.open()
        local = self.local
        names = self.host.broker.config
        self.queue_name = f"notif.{local.unique_name()}.ActiveMQServerImpl_name={names.name}"
        text = notification_filter(
            local.config.max_hops, local.config.address, local.settings.internal_naming_prefix
        )
        self.send(
            CreateQueueV2(
                address=names.management_notification_address,
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
        body = text_body(json.dumps([self.queue_name, local.config.address]))
        request = request_message(
            now, names.management_address, "broker", "_AMQ_OperationName", "sendQueueInfoToQueue", body
        )
        self.write(
            send_frames(request, NOTIFICATION_CHANNEL, MANAGEMENT_CORRELATION, self.version)
        )
        self.outgoing.attach()

    # -- frames in ------------------------------------------------------------------------------
    def on_answer(self, now: int, channel: int, correlation: int) -> None:
        if channel == SEND_CHANNEL:
            self.outgoing.on_answer(correlation)

    def on_other_packet(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, ReceiveMessage):
            self._notified(now, packet)
        elif isinstance(packet, ProducerCredits):
            self.outgoing.on_credits(packet)
        elif isinstance(packet, CreateSessionResponse):
            self._session_open(now)
        elif isinstance(packet, ExceptionResponse):
            if channel != SEND_CHANNEL:
                self.session_refused = channel == SESSION_CHANNEL and packet.code in FINAL_REFUSALS
                text = f"{packet.message} (code {packet.code})"
                raise ProtocolError(f"the peer refused the bridge: {text}")
            self.outgoing.on_refused(now, packet)
        elif isinstance(packet, QuorumVoteReply):
            self.host.cluster.backup_answer(now, self.record.node_id, packet.vote)
        elif not isinstance(packet, QueueQueryResponseV3):
            self.host.broker.trace.count("bridge_packets_ignored")

    def _notified(self, now: int, packet: ReceiveMessage) -> None:
        self.record.bindings.on_notification(now, packet.message)
        member = self.members.topology.members.get(self.record.node_id)
        if member is not None:
            local = self.local
            count = read_count(now, packet.message, member, local.config, local.settings)
            if count is not None:
                self.record.clients = count
        self.send(FlowToken(0, packet.message.size + 64), NOTIFICATION_CHANNEL)

    def on_blocked(self, now: int, blocked: bool) -> None:
        super().on_blocked(now, blocked)
        if not blocked:
            self.outgoing.unblocked()

    def settle(self, now: int) -> None:
        """Acknowledges the messages that the peer has answered, once per event-loop iteration, in one record."""
        self.outgoing.settle(now)

    def on_disconnect_notice(self, goodbye: DisconnectNotice) -> None:
        if goodbye.reason in SCALE_DOWN:
            self.left_to = goodbye.target_node_id or ""

    # -- the end --------------------------------------------------------------------------------
    def on_lost(self, now: int, why: str) -> None:
        self.outgoing.detach(now)
        self.listener.bridge_lost(now, self, why)
