"""The connection to the target of a scale-down: cluster login, one session for management, two for messages.

Management requests are sent to the target as messages, as Artemis' ScaleDownHandler sends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.cluster_link import ClusterLink
from atalanta.cluster.links.forward_frame import PRODUCER_ID
from atalanta.cluster.scale_down.shipments import ShipmentSender
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.wire.core.client.answer_order import NO_CORRELATION
from atalanta.wire.core.client.errors import error_of
from atalanta.wire.core.client.management import AnswerHandler, ManagementRequests
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import FAIL, Request, RequestTable
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.client.transport import DisconnectNotice
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ScaleDownAnnouncement
from atalanta.wire.core.packets.connection import (
    REASON_SCALE_DOWN,
    REASON_SCALE_DOWN_CRITICAL,
    ExceptionResponse,
    NullResponse,
)
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.producer import ProducerCredits, ProducerFailCredits
from atalanta.wire.core.packets.query import LOG_VIEW_ADDRESS, BindingQuery, BindingQueryResponseV5
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSessionResponse
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.candidates import TargetCandidate, TargetChoice
    from atalanta.cluster.scale_down.scale_down import ScaleDown

QUESTION_CHANNEL: Final = 10
SEND_CHANNEL: Final = 11
XA_CHANNEL: Final = 12
REPLY_CREDITS: Final = -1  # no limit
SCALE_DOWN: Final = (REASON_SCALE_DOWN, REASON_SCALE_DOWN_CRITICAL)
QUESTION: Final = 1  # correlation of management requests; all other requests have none
NO_LIMIT: Final = -1


class ScaleDownLink(ClusterLink):
    """The link to the target. `identified` is set once the node id is known; `ours` means that it is an Atalanta."""

    def __init__(
        self, part: ScaleDown, conn: int, now: int, choice: TargetChoice, candidate: TargetCandidate
    ) -> None:
        super().__init__(part.cluster.members, conn, now)
        self.part = part
        commit_interval = choice.config.commit_interval
        if choice.group is not None:
            self.discovered = candidate.transport.address
            self.trusted = candidate.is_trusted(now, part.cluster)
        store = part.broker.store
        self.sender = ShipmentSender(self, store, SEND_CHANNEL, commit_interval, False)
        self.xa_sender = ShipmentSender(self, store, XA_CHANNEL, commit_interval, True)
        self.sessions_open: int = 0
        self.identified: bool = False
        self.node_id: str = ""
        self.target_left: bool = False
        self.ours: bool = False
        self.requests = ManagementRequests(
            QUESTION_CHANNEL,
            part.broker.config.management_address,
            f"activemq.management.{self.local.unique_name()}",
            QUESTION,
            PRODUCER_ID,
        )
        self.tables: dict[int, RequestTable] = {
            channel: RequestTable(self.write, NO_LIMIT, is_open=True)
            for channel in (QUESTION_CHANNEL, XA_CHANNEL)
        }

    # -- login ----------------------------------------------------------------------------------
    def on_ready(self, now: int) -> None:
        settings = self.local.settings
        name = f"scaledown.{self.local.node_id}.{self.local.unique_name()}"
        for channel, xa in ((QUESTION_CHANNEL, False), (SEND_CHANNEL, False), (XA_CHANNEL, True)):
            session = SessionSettings(
                name=f"{name}-{channel}",
                user=settings.cluster_user,
                password=self.session_password,
                xa=xa,
                auto_commit_sends=not xa,
                auto_commit_acks=not xa,
                # Replies that were read use no memory at the target, which may be short of it.
                pre_acknowledge=channel == QUESTION_CHANNEL,
            )
            self.negotiation.create(session, channel)

    def _session_open(self, now: int) -> None:
        self.sessions_open += 1
        if self.sessions_open != 3:
            return
        self.transport.answered()
        self.requests.version = self.version
        self.sender.open()
        self.xa_sender.open()
        for packet in self.requests.subscription(ANYCAST, REPLY_CREDITS):
            self.send(packet, QUESTION_CHANNEL)
        query = BindingQuery(LOG_VIEW_ADDRESS)
        self.request(now, query, QUESTION_CHANNEL).on_done = self._log_view_known
        self.ask(now, "broker", "NodeID", self._identify)

    def _identify(self, now: int, succeeded: bool, value: object) -> None:
        if not succeeded or not isinstance(value, str):
            raise ProtocolError(f"the target does not say who it is: {value}")
        self.identified = True
        self.node_id = value
        self.part.identified(now, self, value)

    def _log_view_known(self, reply: Reply) -> None:
        self.ours = isinstance(reply.value, BindingQueryResponseV5) and reply.value.exists

    # -- requests -------------------------------------------------------------------------------
    def request(self, now: int, packet: Packet, channel: int) -> Reply:
        """Sends a request that has no correlation id; those of a channel are sent one at a time."""
        frame = codec.encode(packet, channel, self.version)
        return self.tables[channel].add(now, Request(frame, Reply(), FAIL))

    def ask(self, now: int, resource: str, attribute: str, handler: AnswerHandler) -> None:
        """Requests an attribute of a resource of the target."""
        self.write(self.requests.attribute(now, resource, attribute, handler))

    def call(
        self,
        now: int,
        resource: str,
        operation: str,
        parameters: list[object],
        handler: AnswerHandler,
    ) -> None:
        """Requests an operation of a resource of the target."""
        self.write(self.requests.operation(now, resource, operation, parameters, handler))

    def create_queue(self, now: int, spec: QueueSpec) -> Reply:
        """Creates the queue with all attributes of `spec`. Artemis sends name, filter, routing type and durability
        only."""
        packet = CreateQueueV2(
            address=spec.address,
            queue=spec.name,
            filter=spec.filter_text,
            durable=spec.durable,
            auto_created=spec.auto_created,
            routing_type=spec.routing_type,
            max_consumers=spec.max_consumers,
            purge_on_no_consumers=spec.purge_on_no_consumers,
        )
        packet.exclusive = spec.exclusive
        packet.last_value = spec.last_value_key is not None
        packet.last_value_key = spec.last_value_key
        packet.non_destructive = spec.non_destructive
        packet.consumers_before_dispatch = spec.consumers_before_dispatch
        packet.delay_before_dispatch_ms = spec.delay_before_dispatch_ms
        packet.group_rebalance = spec.group_rebalance
        packet.group_buckets = spec.group_buckets
        packet.auto_delete = spec.auto_delete
        packet.auto_delete_delay_ms = spec.auto_delete_delay_ms
        packet.auto_delete_message_count = spec.auto_delete_message_count
        packet.group_first_key = spec.group_first_key
        packet.ring_size = spec.ring_size
        packet.enabled = spec.enabled
        packet.group_rebalance_pause_dispatch = spec.group_rebalance_pause_dispatch
        return self.request(now, packet, QUESTION_CHANNEL)

    def announce_end(self, target: str) -> None:
        """Sends SCALEDOWN_ANNOUNCEMENT: clients of this node may reconnect to the target."""
        self.send(ScaleDownAnnouncement(target, self.local.node_id), CLUSTER_CHANNEL)

    # -- received packets -----------------------------------------------------------------------
    def on_other_packet(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, NullResponse):
            self._done(now, packet.correlation, channel)
        elif isinstance(packet, ReceiveMessage):
            self.requests.on_message(now, packet.message)
        elif isinstance(packet, ProducerCredits):
            self._sender_of(channel).on_credits(packet)
        elif isinstance(packet, ProducerFailCredits):
            # An Artemis with the policy FAIL: its address is full, and it refuses what comes as long as it is.
            granted = ProducerCredits(packet.credits, packet.address)
            self._sender_of(channel).on_credits(granted)
        elif isinstance(packet, CreateSessionResponse):
            self._session_open(now)
        elif isinstance(packet, ExceptionResponse):
            self._refused(now, packet, channel)
        elif channel in self.tables:
            self.tables[channel].answer(now, NO_CORRELATION, packet)

    def _sender_of(self, channel: int) -> ShipmentSender:
        return self.xa_sender if channel == XA_CHANNEL else self.sender

    def _done(self, now: int, correlation: int, channel: int) -> None:
        if channel != QUESTION_CHANNEL:
            self._sender_of(channel).on_answer(correlation)
        else:
            self.tables[channel].answer(now, correlation, None)

    def _refused(self, now: int, packet: ExceptionResponse, channel: int) -> None:
        table = self.tables.get(channel)
        error = error_of(packet.code, packet.message)
        if table is not None and table.refuse(now, packet.correlation, error):
            return
        if channel in (SEND_CHANNEL, XA_CHANNEL):
            self._sender_of(channel).on_refused(packet)
        else:
            raise ProtocolError(f"the target refuses: {packet.message} (code {packet.code})")

    def on_blocked(self, now: int, blocked: bool) -> None:
        super().on_blocked(now, blocked)
        if not blocked:
            self.sender.unblocked()
            self.xa_sender.unblocked()

    # -- end ------------------------------------------------------------------------------------
    def on_disconnect_notice(self, goodbye: DisconnectNotice) -> None:
        if goodbye.reason not in SCALE_DOWN:
            return
        target = self.part.target
        if target is not None and goodbye.node_id and goodbye.node_id != target.node_id:
            return  # another node has its address now
        self.target_left = True

    def on_lost(self, now: int, why: str) -> None:
        self.part.link_lost(now, self, why)
