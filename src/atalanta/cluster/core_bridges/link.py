"""The connection of a core bridge: an ordinary client of the target, with one session that sends.

The bridge logs in with user and password, not with the cluster's login (BridgeImpl.ConnectRunnable). The forwarding
address must exist at the target before the first message. Otherwise the message would be lost, or the target would
create the address automatically.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.limits import WINDOW_BYTES, SendLimits
from atalanta.cluster.links.outbound_link import DialedLink, link_settings
from atalanta.cluster.links.queue_sender import QueueSender
from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    ADDRESS_FULL,
    INTERNAL_ERROR,
    QUEUE_DOES_NOT_EXIST,
    SECURITY,
    SESSION_CREATION_REJECTED,
    UNEXPECTED_ROUTING_TYPE,
)
from atalanta.kernel.trace import trace_message
from atalanta.wire.core.client.errors import FINAL_REFUSALS
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.client.transport import DisconnectNotice
from atalanta.wire.core.packet_types import FIRST_SESSION_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.producer import ProducerCredits, ProducerFailCredits
from atalanta.wire.core.packets.query import (
    BindingQuery,
    BindingQueryResponse,
    BindingQueryResponseV2,
    BindingQueryResponseV3,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
)
from atalanta.wire.core.packets.session import CreateSessionResponse, SessionClose
from atalanta.wire.core.packets.topology import ClusterTopology

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.bridge import CoreBridge
    from atalanta.cluster.core_bridges.config import CoreBridgeConfig
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter

SEND_CHANNEL: Final = FIRST_SESSION_CHANNEL
ADDRESS_ANSWERS: Final = (
    BindingQueryResponse,
    BindingQueryResponseV2,
    BindingQueryResponseV3,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
)


def limits_of(config: CoreBridgeConfig) -> SendLimits:
    window = config.confirmation_window_bytes
    return SendLimits(
        window if window > 0 else WINDOW_BYTES,
        config.producer_window_bytes,
        config.min_large_message_bytes,
        not config.use_duplicate_detection,
    )


class CoreBridgeSender(QueueSender):
    """Sends the messages of the bridge's queue, changed as the bridge's configuration says."""

    # Errors that an operator can repair at the target: messages stay, in order, until then.
    passing_codes = (
        INTERNAL_ERROR,
        ADDRESS_FULL,
        SECURITY,
        ADDRESS_DOES_NOT_EXIST,
        QUEUE_DOES_NOT_EXIST,
        UNEXPECTED_ROUTING_TYPE,
    )

    def __init__(
        self, bridge: CoreBridge, link: DialedLink, queue: Queue, selector: Filter | None
    ) -> None:
        limits = limits_of(bridge.config)
        super().__init__(link, bridge.broker.dead_letters, queue, SEND_CHANNEL, limits, selector)
        self.bridge = bridge

    def prepared(self, reference: Reference) -> Message | None:
        try:
            return self.bridge.copies.forwarded(reference)
        except Exception as error:
            # The operator's own function may raise any exception; the message is kept or
            # dead-lettered.
            self.bridge.report_transformer_failed(reference, error)
            return None

    def target(self, message: Message) -> str:
        return self.bridge.copies.target(message)

    def sent(self, reference: Reference) -> None:
        self.bridge.sent += 1
        if self.trace.on:
            trace_message(self.trace, "trace_forwarded", reference.message, self.bridge.name)

    def confirmed(self, reference: Reference) -> None:
        self.bridge.acknowledged += 1
        if self.trace.on:
            trace_message(self.trace, "trace_taken_over", reference.message, self.bridge.name)

    def refused(self, text: str) -> None:
        self.bridge.tell("core_bridge_refused", text)


class CoreBridgeLink(DialedLink):
    """The bridge's link.

    `connected` is set after the session is open and the address exists. `counted` means that a failure counts as an
    attempt.
    """

    def __init__(
        self, bridge: CoreBridge, conn: int, now: int, queue: Queue, selector: Filter | None
    ) -> None:
        config = bridge.config
        settings = link_settings(
            config.connection_ttl_ms, config.check_period_ms, config.call_timeout_ms
        )
        super().__init__(bridge.host, conn, now, settings)
        self.bridge = bridge
        self.outgoing = CoreBridgeSender(bridge, self, queue, selector)
        self.logged_in = False
        self.connected = False
        self.begins = False  # waits for the disk before the first message
        self.counted = True
        self.refused = False  # for a reason that stays
        self.leaving = False

    def log_in(self, now: int) -> None:
        """Creates the session; the request contains user and password."""
        config = self.bridge.config
        settings = SessionSettings(
            name=self.bridge.broker.ids.uuid().hex(),
            user=config.user,
            password=config.password,
            pre_acknowledge=True,
            confirmation_window=config.confirmation_window_bytes,
            min_large_message_size=config.min_large_message_bytes,
            client_id=config.client_id,
        )
        self.negotiation.create(settings, SEND_CHANNEL)

    # -- received packets -----------------------------------------------------------------------
    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        if isinstance(packet, NullResponse):
            if channel == SEND_CHANNEL:
                self.outgoing.on_answer(packet.correlation)
        elif isinstance(packet, ProducerCredits):
            self.outgoing.on_credits(packet)
        elif isinstance(packet, ProducerFailCredits):
            self.bridge.tell("core_bridge_refused", f"address {packet.address} is full")
            self.close("the target's address is full")
        elif isinstance(packet, ExceptionResponse):
            self._refused(now, packet, channel)
        elif isinstance(packet, ClusterTopology):
            self.bridge.targets.on_topology(packet)
        elif isinstance(packet, CreateSessionResponse):
            self._session_open(now)
        elif isinstance(packet, ADDRESS_ANSWERS):
            self._address_known(now, packet.exists)
        else:
            self.bridge.broker.trace.count("bridge_packets_ignored")

    def _session_open(self, now: int) -> None:
        self.logged_in = True
        self.negotiation.subscribe(False)
        address = self.bridge.config.forwarding_address
        if address is None:
            self._address_known(now, True)
        else:
            self.send(BindingQuery(self.bridge.copies.around(address)), SEND_CHANNEL)

    def _address_known(self, now: int, exists: bool) -> None:
        self.transport.answered()
        if not exists:
            address = self.bridge.copies.around(self.bridge.config.forwarding_address or "")
            self.bridge.tell("core_bridge_address_missing", f"no address {address} at the target")
            self.close(f"the target has no address {address}")
            return
        self.connected = True
        self.bridge.on_connected(now)
        self.begins = True
        self.begin()

    def begin(self) -> None:
        """Starts sending as soon as the target is recorded on disk."""
        if self.begins and not self.leaving and self.bridge.memory.durable():
            self.begins = False
            self.outgoing.open()
            self.outgoing.attach()

    def _refused(self, now: int, packet: ExceptionResponse, channel: int) -> None:
        if channel == SEND_CHANNEL:
            self.outgoing.on_refused(now, packet)
            return
        text = f"{packet.message} (code {packet.code})"
        # A server that is just starting refuses so: BridgeImpl does not count it.
        self.counted = packet.code != SESSION_CREATION_REJECTED
        self.refused = packet.code in FINAL_REFUSALS
        self.bridge.tell("core_bridge_refused", text)
        self.close(f"the target refuses the bridge: {text}")

    def on_disconnect_notice(self, goodbye: DisconnectNotice) -> None:
        if goodbye.target_node_id is not None:
            self.bridge.targets.leaves_for(goodbye.target_node_id)

    # -- flow control and end -------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        super().on_blocked(now, blocked)
        if not blocked:
            self.outgoing.unblocked()

    def settled(self) -> bool:
        """Returns True if everything that was sent is answered."""
        return not self.outgoing.unanswered and self.outgoing.large is None

    def stop(self, now: int) -> None:
        """Closes the session, then the connection, as a client does."""
        self.leaving = True
        if self.logged_in:
            self.send(SessionClose(), SEND_CHANNEL)
        self.close("the bridge stops")

    def on_lost(self, now: int, why: str) -> None:
        self.outgoing.detach(now)
        self.bridge.on_link_lost(now, self, why)
