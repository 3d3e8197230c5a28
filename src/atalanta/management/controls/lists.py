"""The paged lists of the broker: listQueues, listAddresses, listConnections, listSessions and so on.

The fields are those of QueueView, AddressView and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.management.controls.address import (
    address_id,
    is_paging,
    limit_percent,
    local_names,
    message_count,
    page_count,
    prefetch_bytes,
    prefetch_messages,
    shown_limit,
)
from atalanta.management.operations.connections import (
    connection_id,
    consumer_counts,
    last_message_id,
    producer_name,
    remote_address,
    validated_user,
)
from atalanta.management.operations.destinations import routing_types
from atalanta.management.operations.leases import active_lease_text
from atalanta.management.operations.queue_definition import routing_name
from atalanta.management.request.call import (
    Call,
    Operations,
    Parameters,
    number_of,
    optional_text,
    text_of,
)
from atalanta.management.request.views import View, needed

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.sessions.session_producers import SessionProducer
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.management.pauses import Pauses


class ListedQueue:
    """A queue with the other values of its row, at `now`."""

    def __init__(self, queue: Queue, persisted_pause: bool, now: int) -> None:
        self.queue = queue
        self.persisted_pause = persisted_pause
        self.now = now


class ListedAddress:
    """An address with the other values of its row."""

    def __init__(
        self, address: Address, paused: bool, duplicate_ids: int, retroactive: bool
    ) -> None:
        self.address = address
        self.paused = paused
        self.duplicate_ids = duplicate_ids
        self.retroactive = retroactive


class ListedConsumer:
    def __init__(self, session: Session, consumer: QueueConsumer) -> None:
        self.session = session
        self.consumer = consumer
        self.counts = consumer_counts(session, consumer)


class ListedProducer:
    def __init__(self, session: Session, producer: SessionProducer) -> None:
        self.session = session
        self.producer = producer


def users(client: Client) -> list[str]:
    found: list[str] = []
    for session in client.sessions.values():
        if session.identity.user not in found:
            found.append(session.identity.user)
    return sorted(found)


QUEUES: Final[View[ListedQueue]] = View(
    {
        "id": lambda row: row.queue.id,
        "name": lambda row: row.queue.name,
        "address": lambda row: row.queue.spec.address,
        "filter": lambda row: row.queue.spec.filter_text,
        "durable": lambda row: row.queue.durable,
        "paused": lambda row: row.queue.paused,
        "persistedPause": lambda row: row.persisted_pause,
        "temporary": lambda row: row.queue.spec.is_temporary(),
        "purgeOnNoConsumers": lambda row: row.queue.spec.purge_on_no_consumers,
        "consumerCount": lambda row: row.queue.consumer_count(),
        "maxConsumers": lambda row: row.queue.spec.max_consumers,
        "autoCreated": lambda row: row.queue.spec.auto_created,
        "user": lambda row: row.queue.spec.user,
        "routingType": lambda row: routing_name(row.queue.spec.routing_type),
        "messagesAdded": lambda row: row.queue.added,
        "messageCount": lambda row: row.queue.message_count,
        "messagesAcked": lambda row: row.queue.acknowledged,
        "messagesExpired": lambda row: row.queue.expired,
        "deliveringCount": lambda row: row.queue.delivering_count,
        "messagesKilled": lambda row: row.queue.killed,
        "directDeliver": lambda row: False,
        "exclusive": lambda row: row.queue.spec.exclusive,
        "lastValue": lambda row: row.queue.spec.last_value_key is not None,
        "lastValueKey": lambda row: row.queue.spec.last_value_key,
        "scheduledCount": lambda row: row.queue.scheduled_count,
        "groupRebalance": lambda row: row.queue.spec.group_rebalance,
        "groupRebalancePauseDispatch": (lambda row: row.queue.spec.group_rebalance_pause_dispatch),
        "groupBuckets": lambda row: row.queue.spec.group_buckets,
        "groupFirstKey": lambda row: row.queue.spec.group_first_key,
        "enabled": lambda row: row.queue.spec.enabled,
        "ringSize": lambda row: row.queue.spec.ring_size,
        "consumersBeforeDispatch": lambda row: row.queue.spec.consumers_before_dispatch,
        "delayBeforeDispatch": lambda row: row.queue.spec.delay_before_dispatch_ms,
        "autoDelete": lambda row: row.queue.spec.auto_delete,
        "internalQueue": lambda row: row.queue.internal,
        "consumerID": lambda row: [str(one.sequential_id) for one in row.queue.consumers],
        "lease": lambda row: active_lease_text(row.queue, row.now),  # an addition to Artemis: JSON
    },
    "name",
    hidden=("consumerID",),
)

ADDRESSES: Final[View[ListedAddress]] = View(
    {
        "id": lambda row: address_id(row.address.name),
        "name": lambda row: row.address.name,
        "routingTypes": lambda row: routing_types(row.address),
        "queueCount": lambda row: len(local_names(row.address)),
        "internal": lambda row: row.address.internal,
        "temporary": lambda row: row.address.lsn == 0,
        "autoCreated": lambda row: row.address.auto_created,
        "paused": lambda row: row.paused,
        "currentDuplicateIdCacheSize": lambda row: row.duplicate_ids,
        "retroactiveResource": lambda row: row.retroactive,
        "unroutedMessageCount": lambda row: row.address.unrouted,
        "routedMessageCount": lambda row: row.address.routed,
        "messageCount": lambda row: message_count(row.address),
        "numberOfBytesPerPage": lambda row: row.address.account.page_size_bytes,
        "addressLimitPercent": lambda row: limit_percent(row.address),
        "paging": lambda row: is_paging(row.address),
        "numberOfPages": lambda row: page_count(row.address),
        "addressSize": lambda row: row.address.account.bytes,
        "maxPageReadBytes": lambda row: shown_limit(row.address.account.max_read_bytes),
        "maxPageReadMessages": lambda row: shown_limit(row.address.account.max_read_messages),
        "prefetchPageBytes": lambda row: prefetch_bytes(row.address),
        "prefetchPageMessages": lambda row: prefetch_messages(row.address),
    },
    "id",
)

CONNECTIONS: Final[View[Client]] = View(
    {
        "connectionID": connection_id,
        "remoteAddress": remote_address,
        "users": users,
        "creationTime": lambda client: client.created_at // 1_000_000,
        "implementation": lambda client: client.implementation,
        "protocol": lambda client: client.protocol,
        "clientID": lambda client: client.client_id,
        "localAddress": lambda client: client.local,
        "sessionCount": lambda client: len(client.sessions),
        "proxyAddress": lambda client: "",
        "proxyProtocolVersion": lambda client: "",
        "sessionID": lambda client: list(client.sessions),
    },
    "connectionID",
    numbers=("sessionCount",),
    dates=("creationTime",),
    joined=("users",),
    hidden=("sessionID",),
)

SESSIONS: Final[View[Session]] = View(
    {
        "id": lambda session: session.name,
        "user": lambda session: session.identity.user,
        "validatedUser": validated_user,
        "creationTime": lambda session: session.created_at // 1_000_000,
        "consumerCount": lambda session: len(session.consumers),
        "producerCount": lambda session: len(session.producers),
        "connectionID": lambda session: connection_id(session.client),
        "clientID": lambda session: session.client.client_id,
        "protocol": lambda session: session.client.protocol,
        "localAddress": lambda session: session.client.local,
        "remoteAddress": lambda session: remote_address(session.client),
    },
    "id",
    numbers=("consumerCount", "producerCount"),
    dates=("creationTime",),
    hidden=("protocol", "localAddress", "remoteAddress"),
)

CONSUMERS: Final[View[ListedConsumer]] = View(
    {
        "id": lambda row: row.consumer.sequential_id,
        "sequentialId": lambda row: row.consumer.sequential_id,
        "connection": lambda row: connection_id(row.session.client),
        "session": lambda row: row.session.name,
        "clientID": lambda row: row.session.client.client_id,
        "user": lambda row: row.session.identity.user,
        "validatedUser": lambda row: validated_user(row.session),
        "protocol": lambda row: row.session.client.protocol,
        "queue": lambda row: row.consumer.queue.name,
        "queueType": lambda row: routing_name(row.consumer.queue.spec.routing_type).lower(),
        "filter": lambda row: None if row.consumer.selector is None else row.consumer.selector.text,
        "address": lambda row: row.consumer.queue.spec.address,
        "browseOnly": lambda row: row.consumer.browse_only,
        "localAddress": lambda row: row.session.client.local,
        "remoteAddress": lambda row: remote_address(row.session.client),
        "creationTime": lambda row: row.consumer.created_at // 1_000_000,
        "messagesInTransit": lambda row: row.counts["messagesInTransit"],
        "messagesInTransitSize": lambda row: row.counts["messagesInTransitSize"],
        "messagesDelivered": lambda row: row.counts["messagesDelivered"],
        "messagesDeliveredSize": lambda row: row.counts["messagesDeliveredSize"],
        "messagesAcknowledged": lambda row: row.counts["messagesAcknowledged"],
        "messagesAcknowledgedAwaitingCommit": (
            lambda row: row.counts["messagesAcknowledgedAwaitingCommit"]
        ),
        "lastDeliveredTime": lambda row: row.counts["lastDeliveredTime"],
        "lastAcknowledgedTime": lambda row: row.counts["lastAcknowledgedTime"],
        "status": lambda row: "OK",
        "ready": lambda row: row.consumer.ready(),  # an addition to Artemis: started, and has credit
    },
    "id",
    numbers=("lastDeliveredTime", "lastAcknowledgedTime"),
    dates=("creationTime",),
    hidden=("sequentialId", "connection", "browseOnly"),
    other_names={
        "consumerID": "id", "sessionID": "session", "connectionID": "connection", "queueName": "queue",
        "deliveringCount": "messagesInTransit",
    },  # fmt: skip
)

PRODUCERS: Final[View[ListedProducer]] = View(
    {
        "id": lambda row: row.producer.id,
        "name": lambda row: producer_name(row.session, row.producer),
        "session": lambda row: row.session.name,
        "clientID": lambda row: row.session.client.client_id,
        "user": lambda row: row.session.identity.user,
        "validatedUser": lambda row: validated_user(row.session),
        "protocol": lambda row: row.session.client.protocol,
        "address": lambda row: row.producer.address,
        "localAddress": lambda row: row.session.client.local,
        "remoteAddress": lambda row: remote_address(row.session.client),
        "creationTime": lambda row: row.producer.created_at // 1_000_000,
        "msgSent": lambda row: row.producer.sent,
        "msgSizeSent": lambda row: row.producer.sent_bytes,
        "lastProducedMessageID": lambda row: last_message_id(row.producer),
        "connectionID": lambda row: connection_id(row.session.client),
    },
    "creationTime",
    numbers=("msgSent", "msgSizeSent"),
    hidden=("connectionID",),
    other_names={"sessionID": "session", "destination": "address"},
)


class ListOperations:
    """The operations of the resource `broker` that list its parts page by page."""

    def __init__(
        self,
        config: BrokerConfig,
        queues: dict[str, Queue],
        addresses: dict[str, Address],
        duplicates: DuplicateCaches,
        clients: Clients,
        pauses: Pauses,
    ) -> None:
        self.config = config
        self.queues = queues
        self.addresses = addresses
        self.duplicates = duplicates
        self.clients = clients
        self.pauses = pauses
        self.operations: Operations = {
            "listQueues": [("Sii", self.list_queues)],
            "listAddresses": [("s", self.list_address_names), ("Sii", self.list_addresses)],
            "listConnections": [("Sii", self.list_connections)],
            "listSessions": [("Sii", self.list_sessions)],
            "listConsumers": [("Sii", self.list_consumers)],
            "listProducers": [("Sii", self.list_producers)],
        }

    def shown_addresses(self) -> list[Address]:
        """Returns the addresses without the management address, which is not an address in Artemis."""
        own = self.config.management_address
        return [address for address in self.addresses.values() if address.name != own]

    def list_queues(self, call: Call, given: Parameters) -> object:
        paused = self.pauses.queues
        options, page, size = optional_text(given, 0), number_of(given, 1), number_of(given, 2)
        queues, whole = needed(self.queues, options, page, size)
        rows = [ListedQueue(queue, paused.get(queue.name, False), call.now) for queue in queues]
        return QUEUES.page(rows, options, page, size, whole)

    def list_addresses(self, call: Call, given: Parameters) -> object:
        rows: list[ListedAddress] = []
        options, page, size = optional_text(given, 0), number_of(given, 1), number_of(given, 2)
        shown = {address.name: address for address in self.shown_addresses()}
        addresses, whole = needed(shown, options, page, size)
        for address in addresses:
            name = address.name
            cache = self.duplicates.by_name.get(name)
            rows.append(
                ListedAddress(
                    address,
                    name in self.pauses.addresses,
                    0 if cache is None else len(cache.ids),
                    is_resource(self.config, name),
                )
            )
        return ADDRESSES.page(rows, options, page, size, whole)

    def list_connections(self, call: Call, given: Parameters) -> object:
        rows = list(self.clients.connected.values())
        return CONNECTIONS.page(rows, optional_text(given, 0), number_of(given, 1), number_of(given, 2))

    def list_sessions(self, call: Call, given: Parameters) -> object:
        rows = self.clients.sessions()
        return SESSIONS.page(rows, optional_text(given, 0), number_of(given, 1), number_of(given, 2))

    def list_consumers(self, call: Call, given: Parameters) -> object:
        rows = [
            ListedConsumer(session, consumer)
            for session in self.clients.sessions()
            for consumer in session.consumers.values()
        ]
        return CONSUMERS.page(rows, optional_text(given, 0), number_of(given, 1), number_of(given, 2))

    def list_producers(self, call: Call, given: Parameters) -> object:
        rows = [
            ListedProducer(session, producer)
            for session in self.clients.sessions()
            for producer in session.producers.values()
        ]
        return PRODUCERS.page(rows, optional_text(given, 0), number_of(given, 1), number_of(given, 2))

    def list_address_names(self, call: Call, given: Parameters) -> object:
        """Returns all names in one text, sorted without regard to case, joined by the given separator."""
        names = sorted((address.name for address in self.shown_addresses()), key=str.lower)
        return text_of(given, 0).join(names)
