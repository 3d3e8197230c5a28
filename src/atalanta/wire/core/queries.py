"""Answers to questions about queues and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue_spec import ANYCAST, MULTICAST
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_query import (
    BindingQueryResponseV4,
    BindingQueryResponseV5,
    QueueQueryResponseV3,
)

if TYPE_CHECKING:
    from atalanta.wire.core.session import CoreSession

# Our clients ask for this address to learn whether a server has a log view; a real Artemis says no.
LOG_VIEW_ADDRESS: Final = "$.atalanta.logview"
BINDING_V5: Final = 135


def queue_response(session: CoreSession, name: str) -> Packet:
    """The queue's state; for one that does not exist, whether a client may expect it to be made."""
    broker = session.broker
    at = name.find("::")
    queue = broker.queues.get(name if at < 0 else name[at + 2 :])
    if queue is not None and at >= 0 and queue.spec.address != name[:at]:
        queue = None
    if queue is None:
        address = name if at < 0 else name[:at]
        settings = broker.settings_of(address)
        if name == broker.config.management_address:
            return QueueQueryResponseV3(
                True,
                True,
                False,
                -1,
                -1,
                None,
                name,
                name,
                settings.auto_create_queues,
                False,
                False,
                MULTICAST,
                -1,
            )
        known = broker.addresses.get(address)
        routing_type = settings.default_queue_routing_type
        if known is not None and known.anycast != known.multicast:
            routing_type = ANYCAST if known.anycast else MULTICAST
        return QueueQueryResponseV3(
            False,
            address=address,
            name=name if at < 0 else name[at + 2 :],
            auto_create_queues=settings.auto_create_queues,
            routing_type=routing_type,
            default_consumer_window=settings.default_consumer_window_size,
        )
    spec = queue.spec
    settings = broker.settings_of(spec.address)
    return QueueQueryResponseV3(
        True,
        queue.durable,
        spec.temporary,
        queue.consumer_count(),
        queue.message_count,
        spec.filter_text,
        spec.address,
        queue.name,
        settings.auto_create_queues,
        spec.auto_created,
        spec.purge_on_no_consumers,
        spec.routing_type,
        spec.max_consumers,
        exclusive=False,
        last_value=False,
        default_consumer_window=settings.default_consumer_window_size,
        non_destructive=False,
        auto_delete=spec.auto_delete,
        auto_delete_delay_ms=spec.auto_delete_delay_ms,
        auto_delete_message_count=spec.auto_delete_message_count,
        enabled=True,
        configuration_managed=spec.configuration_managed,
    )


def binding_response(session: CoreSession, name: str) -> Packet:
    """Queues of an address, those of other nodes too (as queue name + node id, like Artemis)."""
    broker = session.broker
    name = name.split("::", 1)[0]
    settings = broker.settings_of(name)
    address = broker.addresses.get(name)
    names: list[str] = []
    multicast = False
    anycast = False
    exists = address is not None or name == LOG_VIEW_ADDRESS
    if address is not None:
        names.extend(queue.name for queue in address.queues())
        names.extend(remote.cluster_name for remote in address.remotes())
        multicast = address.multicast
        anycast = address.anycast
    if session.version >= BINDING_V5:
        return BindingQueryResponseV5(
            exists,
            names,
            settings.auto_create_queues,
            settings.auto_create_addresses,
            settings.default_purge_on_no_consumers,
            settings.default_max_consumers,
            supports_multicast=multicast,
            supports_anycast=anycast,
        )
    return BindingQueryResponseV4(
        exists,
        names,
        settings.auto_create_queues,
        settings.auto_create_addresses,
        settings.default_purge_on_no_consumers,
        settings.default_max_consumers,
    )
