"""Frames on a session's channel. Those that are not about single messages are requests.

Each request is processed by the kernel session and answered; a refusal is answered as EXCEPTION. A packet type that
no client may send here closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import (
    DUPLICATE_METADATA,
    ILLEGAL_STATE,
    INVALID_SHARED_QUEUE,
    UNEXPECTED_ROUTING_TYPE,
    BrokerError,
    Postponed,
)
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.security.resource_limits import check_name
from atalanta.message.encoding.buffer import Reader
from atalanta.message.fqqn import join_fqqn, split_fqqn
from atalanta.wire.core import packet_types
from atalanta.wire.core.frames import FRAME_OVERHEAD_BYTES
from atalanta.wire.core.packet_types import LOG_REQUESTS, SESS_XA_FAILED, packet_name
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import (
    ConsumerClose,
    CreateConsumer,
    Expired,
    ForceConsumerDelivery,
    Settle,
)
from atalanta.wire.core.packets.producer import (
    CreateProducer,
    RemoveProducer,
    RequestProducerCredits,
)
from atalanta.wire.core.packets.query import BindingQuery, QueueQuery
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueue,
    CreateQueueV2,
    CreateSharedQueue,
    CreateSharedQueueV2,
    DeleteQueue,
)
from atalanta.wire.core.packets.session import (
    CLIENT_ID_KEY,
    NOTICES_KEY,
    AddMetadata,
    AddMetadataV2,
    SessionClose,
    SessionStart,
    SessionStop,
    UniqueAddMetadata,
)
from atalanta.wire.core.packets.transaction import Commit, Rollback
from atalanta.wire.core.server.requests.old_names import routing_type_of
from atalanta.wire.core.server.requests.queries import binding_response, queue_response
from atalanta.wire.core.server.requests.xa_requests import answer_xa
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.settings.address_settings import AddressSettings
    from atalanta.wire.core.server.session import CoreSession

NO_CORRELATION: Final = -1
METADATA_MAX: Final = 100
XA_FIRST: Final = 51
XA_LAST: Final = 66


def receive(
    session: CoreSession, now: int, packet_type: int, data: bytes, start: int, end: int
) -> None:
    """Processes one frame's body data[start:end]. ProtocolError for a packet that no session may send."""
    if packet_type == packet_types.SESS_SEND:
        session.send(now, data, start, end)
    elif packet_type == packet_types.SESS_ACKNOWLEDGE:
        session.acknowledge(now, data, start, end, False)
    elif packet_type == packet_types.SESS_INDIVIDUAL_ACKNOWLEDGE:
        session.acknowledge(now, data, start, end, True)
    elif packet_type == packet_types.SESS_FLOWTOKEN:
        session.add_credits(Reader(data, start, end))
    elif packet_type == packet_types.PACKETS_CONFIRMED:
        if session.replay is not None:
            session.replay.confirmed(Reader(data, start, end).int32("command_id"))
        return
    elif packet_type == packet_types.SESS_SEND_LARGE:
        session.begin_large(Reader(data, start, end))
    elif packet_type == packet_types.SESS_SEND_CONTINUATION:
        session.continue_large(now, Reader(data, start, end))
    else:
        answer(session, now, packet_type, data[start:end])
    if session.confirmations.window_bytes != -1:
        frame_bytes = end - start + FRAME_OVERHEAD_BYTES
        if session.confirmations.received(
            packet_type, frame_bytes, _is_counted(packet_type, data, end)
        ):
            session.confirm()


def _is_counted(packet_type: int, data: bytes, end: int) -> bool:
    """Returns True if the frame is numbered. Metadata packets are numbered only if they want an answer."""
    if (
        packet_type == packet_types.SESS_ADD_METADATA2
        or packet_type == packet_types.SESS_UNIQUE_ADD_METADATA
    ):
        return data[end - 1] != 0
    return packet_types.COUNTED[packet_type & 0xFF] != 0


def answer(session: CoreSession, now: int, packet_type: int, body: bytes) -> None:
    """Decodes, processes and answers a request. ProtocolError for a packet that may not be sent here."""
    packet = codec.decode(packet_type, body, session.version)
    if session.prefixes is not None:
        packet = session.prefixes.request(packet)
    try:
        _carry_out(session, now, packet_type, packet)
    except Postponed as postponed:
        session.session.wait(now, postponed, None, _retry(session, packet_type, body))


def _retry(session: CoreSession, packet_type: int, body: bytes) -> Callable[[int], None]:
    """Returns the function that answers the request again."""
    return lambda now: answer(session, now, packet_type, body)


def _carry_out(session: CoreSession, now: int, packet_type: int, packet: Packet) -> None:
    if packet_type in LOG_REQUESTS:
        # Most nodes have no log view.
        from atalanta.wire.core.server.requests.log_requests import answer_log

        answer_log(session, now, packet)
        return
    if (XA_FIRST <= packet_type <= XA_LAST or packet_type == SESS_XA_FAILED) and answer_xa(
        session, now, packet
    ):
        return
    correlation = packet.correlation if isinstance(packet, Commit | Settle) else NO_CORRELATION
    try:
        if not _session_request(session, now, packet) and not _queue_request(session, now, packet):
            raise ProtocolError(f"{packet_name(packet_type)} on a session's channel")
    except Postponed:
        raise
    except BrokerError as error:
        session.failed(correlation if _waits(packet) else SILENT, error)


def _waits(packet: Packet) -> bool:
    """Returns True if the client waits for an answer. An unrequested answer would answer its next request.

    A client that reconnects creates its queues and consumers again without waiting.
    """
    if isinstance(
        packet,
        CreateAddress | CreateConsumer | CreateQueue | CreateSharedQueue | CreateSharedQueueV2,
    ):
        return packet.requires_response
    if isinstance(packet, AddMetadataV2 | UniqueAddMetadata):
        return packet.requires_confirmation
    return True


def _session_request(session: CoreSession, now: int, packet: Packet) -> bool:
    """Processes consumers, transactions and the session's state; returns False for any other request."""
    kernel = session.session
    if isinstance(packet, CreateConsumer):
        queue = kernel.create_consumer(
            now,
            packet.consumer_id,
            packet.queue,
            packet.filter,
            packet.browse_only,
            packet.priority,
        )
        if packet.requires_response:
            session.reply(queue_response(session, queue.name, False))
    elif isinstance(packet, ForceConsumerDelivery):
        if packet.consumer_id in kernel.consumers:
            kernel.drain(now, packet.consumer_id, packet.sequence)
    elif isinstance(packet, ConsumerClose):
        if packet.consumer_id in kernel.consumers:
            kernel.close_consumer(now, packet.consumer_id)
        session.done(NO_CORRELATION)
    elif isinstance(packet, Expired):
        if packet.consumer_id in kernel.consumers:
            kernel.expire(now, packet.consumer_id, packet.message_id)
    elif isinstance(packet, Settle):
        kernel.settle(
            now,
            packet.consumer_id,
            packet.message_id,
            packet.reject,
            packet.delay_ms,
            packet.correlation,
        )
    elif isinstance(packet, Commit):
        kernel.commit(now, packet.correlation)
    elif isinstance(packet, Rollback):
        kernel.rollback(now, packet.consider_last_message_as_delivered, NO_CORRELATION)
    elif isinstance(packet, SessionStart):
        kernel.start()
    elif isinstance(packet, SessionStop):
        kernel.stop()
        session.done(NO_CORRELATION)
    elif isinstance(packet, SessionClose):
        session.close(now)
    elif isinstance(packet, RequestProducerCredits):
        if packet.credits < 0:
            raise ProtocolError(f"SESS_PRODUCER_REQUEST_CREDITS for {packet.credits} bytes")
        kernel.request_credits(packet.address, packet.credits, now)
    elif isinstance(packet, AddMetadata | AddMetadataV2 | UniqueAddMetadata):
        _metadata(session, packet)
    elif isinstance(packet, CreateProducer):
        kernel.producers.add(now, packet.producer_id, packet.address)
    elif isinstance(packet, RemoveProducer):
        kernel.producers.remove(packet.producer_id)
    else:
        return False
    return True


def _queue_request(session: CoreSession, now: int, packet: Packet) -> bool:
    kernel = session.session
    if isinstance(packet, QueueQuery):
        session.reply(queue_response(session, packet.queue, True))
    elif isinstance(packet, BindingQuery):
        session.reply(binding_response(session, packet.address))
    elif isinstance(packet, CreateAddress):
        address = split_fqqn(packet.address)[0]
        kernel.check("createAddress", address)
        kernel.services.queues.check_name(now, kernel.identity, kernel.client, address)
        # ServerSessionImpl.createAddress: an existing one is extended, never refused (clients race).
        for routing_type in packet.routing_types:
            if routing_type not in (ANYCAST, MULTICAST):
                raise BrokerError(UNEXPECTED_ROUTING_TYPE, f"AMQ229208: routing type {routing_type} does not exist")
        for routing_type in packet.routing_types:
            session.broker.address_registry.ensure(
                session.broker.now, address, routing_type, packet.auto_created, True
            )
        if packet.requires_response:
            session.done_when_durable(NO_CORRELATION)
    elif isinstance(packet, CreateQueue):
        _split_names(packet)
        kernel.create_queue(now, _spec(session, packet))
        if packet.requires_response:
            session.done_when_durable(NO_CORRELATION)
    elif isinstance(packet, CreateSharedQueue | CreateSharedQueueV2):
        _split_names(packet)
        _create_shared(session, now, packet)
    elif isinstance(packet, DeleteQueue):
        kernel.delete_queue(now, packet.queue)
        session.done_when_durable(NO_CORRELATION)
    else:
        return False
    return True


def _metadata(
    session: CoreSession, packet: AddMetadata | AddMetadataV2 | UniqueAddMetadata
) -> None:
    if packet.key == NOTICES_KEY:
        session.take_notices()
        if isinstance(packet, AddMetadata) or packet.requires_confirmation:
            session.done(NO_CORRELATION)
        return
    kernel = session.session
    shared = session.connection.shared
    owner = (kernel.client.connection, int(session.channel))
    if len(kernel.metadata) >= METADATA_MAX:
        raise BrokerError(
            ILLEGAL_STATE, f"a session has at most {METADATA_MAX} entries of metadata"
        )
    check_name(packet.key)
    check_name(packet.value)
    if isinstance(packet, UniqueAddMetadata):
        # ServerSessionImpl.addUniqueMetaData: any other session with it, of any connection.
        for other in shared.metadata.get((packet.key, packet.value), {}):
            if other != owner:
                raise BrokerError(
                    DUPLICATE_METADATA, f"AMQ229035: {packet.key} {packet.value} is already in use"
                )
    if packet.key == CLIENT_ID_KEY:
        # A Java client that has reconnected sets it as plain metadata (ActiveMQSessionContext.resetMetadata).
        kernel.client.client_id = packet.value
    known = kernel.metadata.get(packet.key)
    if known is not None:
        shared.remove_metadata(owner, packet.key, known)
    shared.add_metadata(owner, packet.key, packet.value)
    kernel.metadata[packet.key] = packet.value
    if isinstance(packet, AddMetadata) or packet.requires_confirmation:
        session.done(NO_CORRELATION)


def _split_names(packet: CreateQueue | CreateSharedQueue | CreateSharedQueueV2) -> None:
    """Replaces an FQQN by address and queue, where the name or the address is one (QueueConfiguration)."""
    if "::" in packet.queue:
        packet.queue = split_fqqn(packet.queue)[1]
    if "::" in packet.address:
        packet.address, packet.queue = split_fqqn(packet.address)


def _wishes(packet: CreateQueueV2 | CreateSharedQueueV2) -> QueueChanges:
    """Returns the client's own queue settings; they have priority over the address settings."""
    wishes = QueueChanges()
    wishes.max_consumers = packet.max_consumers
    wishes.purge_on_no_consumers = packet.purge_on_no_consumers
    wishes.exclusive = packet.exclusive
    wishes.last_value = packet.last_value
    wishes.last_value_key = packet.last_value_key
    wishes.non_destructive = packet.non_destructive
    wishes.consumers_before_dispatch = packet.consumers_before_dispatch
    wishes.delay_before_dispatch_ms = packet.delay_before_dispatch_ms
    wishes.group_rebalance = packet.group_rebalance
    wishes.group_rebalance_pause_dispatch = packet.group_rebalance_pause_dispatch
    wishes.group_buckets = packet.group_buckets
    wishes.group_first_key = packet.group_first_key
    wishes.ring_size = packet.ring_size
    wishes.enabled = packet.enabled
    wishes.auto_delete = packet.auto_delete
    wishes.auto_delete_delay_ms = packet.auto_delete_delay_ms
    wishes.auto_delete_message_count = packet.auto_delete_message_count
    problem = wishes.problem()
    if problem:
        raise BrokerError(ILLEGAL_STATE, f"queue {packet.queue}: {problem}")
    return wishes


def _spec(session: CoreSession, packet: CreateQueue) -> QueueSpec:
    own = packet.temporary and packet.queue == packet.address
    repository = session.broker.settings
    settings = repository.of_temporary(packet.address) if own else repository.match(packet.address)
    spec = QueueSpec(packet.queue, packet.address, routing_type_of(packet.address))
    spec.filter_text = packet.filter
    spec.durable = packet.durable and not packet.temporary
    spec.temporary = packet.temporary
    if isinstance(packet, CreateQueueV2):
        spec.auto_created = packet.auto_created
    spec.take_defaults(settings)
    if isinstance(packet, CreateQueueV2):
        spec.routing_type = _routing_type(packet.routing_type, settings)
        _wishes(packet).create(spec)
    return spec


def _routing_type(asked: int, settings: AddressSettings) -> int:
    """Returns the routing type; -1 is the address setting's default, another number is an error."""
    if asked in (ANYCAST, MULTICAST):
        return asked
    if asked != -1:
        raise BrokerError(UNEXPECTED_ROUTING_TYPE, f"AMQ229208: routing type {asked} does not exist")
    return settings.default_queue_routing_type


def _create_shared(
    session: CoreSession, now: int, packet: CreateSharedQueue | CreateSharedQueueV2
) -> None:
    """Creates a subscription that several consumers share: it may exist already with the same settings."""
    settings = session.broker.settings.match(packet.address)
    spec = QueueSpec(packet.queue, packet.address, MULTICAST)
    spec.filter_text = packet.filter
    spec.durable = packet.durable
    spec.transient = not packet.durable
    spec.take_defaults(settings)
    if isinstance(packet, CreateSharedQueueV2):
        spec.routing_type = _routing_type(packet.routing_type, settings)
        _wishes(packet).create(spec)
    session.broker.queue_registry.delete_ownerless(now, packet.queue)
    known = session.broker.queues.get(packet.queue)
    if known is None:
        session.session.create_queue(now, spec)
        if packet.requires_response:
            session.done_when_durable(NO_CORRELATION)
        return
    permission = "createDurableQueue" if spec.durable else "createNonDurableQueue"
    session.session.check(permission, join_fqqn(spec.address, spec.name))
    if known.spec.address != spec.address or known.durable != spec.durable:
        raise BrokerError(
            INVALID_SHARED_QUEUE,
            f"AMQ229082: queue {packet.queue} exists with another address or durability",
        )
    if (known.spec.filter_text or "") != (spec.filter_text or ""):
        raise BrokerError(
            INVALID_SHARED_QUEUE, f"AMQ229083: queue {packet.queue} exists with another filter"
        )
    if known.spec.transient:
        session.session.client.use_transient(known)
    if packet.requires_response:
        session.done_when_durable(NO_CORRELATION)
