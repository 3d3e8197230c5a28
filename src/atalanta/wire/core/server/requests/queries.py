"""Answers to queries for queues and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.message.fqqn import split_fqqn
from atalanta.wire.core.packet_types import BINDING_V3_VERSION, LOG_COLUMNS, QUERY_V2_VERSION
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.query import (
    LOG_VIEW_ADDRESS,
    SETTLE_ADDRESS,
    BindingQueryResponse,
    BindingQueryResponseV2,
    BindingQueryResponseV3,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
    QueueQueryResponse,
    QueueQueryResponseV2,
    QueueQueryResponseV3,
)
from atalanta.wire.core.server.requests.old_names import JMS_KEY, address_of, queue_names

if TYPE_CHECKING:
    from atalanta.kernel.settings.address_settings import AddressSettings
    from atalanta.wire.core.server.session import CoreSession

# What this log view has beside that of the first release, told as names of queues, which older clients skip.
LOG_VIEW_ABILITIES: Final = (LOG_COLUMNS,)
BINDING_V5: Final = 135


def queue_response(session: CoreSession, name: str, asked: bool) -> Packet:
    """Returns the queue's state; without the queue, whether a client may expect its creation.

    Not `asked`: for a new consumer. An old client creates the queue again by it after a failover, so its address is the
    real one.
    """
    broker = session.broker
    queue = broker.queue_registry.get(name)
    if queue is None:
        found = _absent(session, name)
    else:
        spec = queue.spec
        found = _described(spec, broker.settings.match(spec.address))
        found.exists = True
        found.durable = queue.durable
        found.consumer_count = queue.consumer_count()
        found.message_count = queue.message_count
    if not session.old:
        return found
    if asked and found.exists and found.address is not None:
        found.address = address_of(found.address, found.routing_type)
    return _old_queue_response(found, session.version)


def _old_queue_response(found: QueueQueryResponseV3, version: int) -> QueueQueryResponse:
    """Returns the state for a version before 129, which knows no routing types."""
    old = QueueQueryResponse(found.exists)
    if version >= QUERY_V2_VERSION:
        old = QueueQueryResponseV2(found.exists, auto_create_queues=found.auto_create_queues)
    old.durable = found.durable
    old.temporary = found.temporary
    old.consumer_count = found.consumer_count
    old.message_count = found.message_count
    old.filter = found.filter
    old.address = found.address
    old.name = found.name
    return old


def _absent(session: CoreSession, name: str) -> QueueQueryResponseV3:
    """Returns the state with which the queue would be created: the address settings' defaults
    (ActiveMQServerImpl.queueQuery).
    """
    broker = session.broker
    address, queue_name = split_fqqn(name)
    settings = broker.settings.match(address)
    spec = QueueSpec(queue_name or address, address, settings.default_queue_routing_type)
    known = broker.addresses.get(address)
    if known is not None and known.anycast != known.multicast:
        spec.routing_type = ANYCAST if known.anycast else MULTICAST
    spec.take_defaults(settings)
    answer = _described(spec, settings)
    answer.exists = name == broker.config.management_address
    if answer.exists:
        answer.routing_type = MULTICAST
        answer.consumer_count = -1
        answer.message_count = -1
        answer.durable = True
    return answer


def _described(spec: QueueSpec, settings: AddressSettings) -> QueueQueryResponseV3:
    return QueueQueryResponseV3(
        exists=False,
        temporary=spec.is_temporary(),
        filter=spec.filter_text,
        address=spec.address,
        name=spec.name,
        auto_create_queues=settings.auto_create_queues,
        auto_created=spec.auto_created,
        purge_on_no_consumers=spec.purge_on_no_consumers,
        routing_type=spec.routing_type,
        max_consumers=spec.max_consumers,
        exclusive=spec.exclusive,
        last_value=spec.last_value_key is not None,
        default_consumer_window=settings.default_consumer_window_size,
        last_value_key=spec.last_value_key,
        non_destructive=spec.non_destructive,
        consumers_before_dispatch=spec.consumers_before_dispatch,
        delay_before_dispatch_ms=spec.delay_before_dispatch_ms,
        group_rebalance=spec.group_rebalance,
        group_buckets=spec.group_buckets,
        auto_delete=spec.auto_delete,
        auto_delete_delay_ms=spec.auto_delete_delay_ms,
        auto_delete_message_count=spec.auto_delete_message_count,
        group_first_key=spec.group_first_key,
        ring_size=spec.ring_size,
        enabled=spec.enabled,
        group_rebalance_pause_dispatch=spec.group_rebalance_pause_dispatch,
        configuration_managed=spec.configuration_managed,
    )


def binding_response(session: CoreSession, asked: str) -> Packet:
    """Returns the queues of an address, with those of other nodes (as queue name + node id, like Artemis).

    `asked` may begin with a prefix of the acceptor.
    """
    broker = session.broker
    name = asked if session.prefixes is None else session.prefixes.names.plain(asked)
    name = name.split("::", 1)[0]
    settings = broker.settings.match(name)
    address = broker.addresses.get(name)
    names: list[str] = []
    if address is not None:
        names.extend(queue.name for queue in address.queues())
        names.extend(remote.cluster_name for remote in address.remotes())
    if name == LOG_VIEW_ADDRESS:
        names.extend(LOG_VIEW_ABILITIES)
    exists = address is not None or name in (LOG_VIEW_ADDRESS, SETTLE_ADDRESS)
    if session.old:
        if JMS_KEY in session.session.metadata:
            names = queue_names(asked, names)
        return _old_binding_response(exists, names, settings, session.version)
    made: type[BindingQueryResponseV4] = BindingQueryResponseV4
    if session.version >= BINDING_V5:
        made = BindingQueryResponseV5
    answer = made(
        exists=exists,
        queue_names=names,
        auto_create_queues=settings.auto_create_queues,
        auto_create_addresses=settings.auto_create_addresses,
        purge_on_no_consumers=settings.default_purge_on_no_consumers,
        max_consumers=settings.default_max_consumers,
        exclusive=settings.default_exclusive_queue,
        last_value=settings.default_last_value_queue,
        last_value_key=settings.default_last_value_key,
        non_destructive=settings.default_non_destructive,
        consumers_before_dispatch=settings.default_consumers_before_dispatch,
        delay_before_dispatch_ms=settings.default_delay_before_dispatch_ms,
    )
    if address is not None and isinstance(answer, BindingQueryResponseV5):
        answer.supports_multicast = address.multicast
        answer.supports_anycast = address.anycast
    return answer


def _old_binding_response(exists: bool, names: list[str], settings: AddressSettings, version: int) -> Packet:
    """Returns the queues of an address for a version before 129."""
    if version < QUERY_V2_VERSION:
        return BindingQueryResponse(exists, names)
    if version < BINDING_V3_VERSION:
        return BindingQueryResponseV2(exists, names, settings.auto_create_queues)
    return BindingQueryResponseV3(exists, names, settings.auto_create_queues, settings.auto_create_addresses)
