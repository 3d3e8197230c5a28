"""The definition of a queue, and its encoding in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.buffer import Reader, Writer

if TYPE_CHECKING:
    from atalanta.kernel.settings.address_settings import AddressSettings

MULTICAST: Final = 0
ANYCAST: Final = 1
LAST_VALUE_KEY: Final = "_AMQ_LVQ_NAME"


class QueueSpec:
    """Definition of a queue (QueueConfiguration, CREATE_QUEUE_V2); `filter_text` None takes every message.

    `internal` marks store-and-forward queues. `auto_delete` deletes the queue when its last consumer closed and it is
    empty. `transient` deletes it with its last consumer even if it has messages (shared non-durable subscriptions).
    `auto_delete_message_count`: messages that an auto-deleted queue may still have; -1: any number. See
    kernel/queue/last_value_ring.py for exclusive, last value, ring and dispatch gate; kernel/queue/message_groups.py
    for groups. `last_value_key` None: all values are kept. `ring_size` -1: no ring.
    `group_buckets` -1: any number of groups; 0: no groups. `asks_retained`: the queue is to begin with what its address
    has kept, if its address gives that only to those that ask; it is not stored.
    """

    def __init__(self, name: str, address: str, routing_type: int) -> None:
        self.name = name
        self.address = address
        self.routing_type = routing_type
        self.filter_text: str | None = None
        self.durable: bool = True
        self.temporary: bool = False
        self.internal: bool = False
        self.transient: bool = False
        self.auto_created: bool = False
        self.auto_delete: bool = False
        self.auto_delete_delay_ms: int = 0
        self.auto_delete_message_count: int = 0
        self.configuration_managed: bool = False
        self.purge_on_no_consumers: bool = False
        self.max_consumers: int = -1
        self.user: str | None = None
        self.exclusive: bool = False
        self.last_value_key: str | None = None
        self.non_destructive: bool = False
        self.consumers_before_dispatch: int = 0
        self.delay_before_dispatch_ms: int = -1
        self.group_rebalance: bool = False
        self.group_rebalance_pause_dispatch: bool = False
        self.group_buckets: int = -1
        self.group_first_key: str | None = None
        self.ring_size: int = -1
        self.enabled: bool = True
        self.asks_retained: bool = False

    def ask_retained(self, asks: bool) -> None:
        """Asks for what the address has kept."""
        self.asks_retained = asks

    def is_temporary(self) -> bool:
        """Returns true if clients are shown the queue as temporary: it ends with its clients (createSharedQueue)."""
        return self.temporary or self.transient

    def take_defaults(self, settings: AddressSettings) -> None:
        """Takes the defaults of the address settings for a queue that a client creates (QueueConfigurationUtils)."""
        self.max_consumers = settings.default_max_consumers
        self.purge_on_no_consumers = settings.default_purge_on_no_consumers
        self.exclusive = settings.default_exclusive_queue
        self.set_last_value(settings.default_last_value_queue, settings.default_last_value_key)
        self.non_destructive = settings.default_non_destructive
        self.consumers_before_dispatch = settings.default_consumers_before_dispatch
        self.delay_before_dispatch_ms = settings.default_delay_before_dispatch_ms
        self.group_rebalance = settings.default_group_rebalance
        self.group_rebalance_pause_dispatch = settings.default_group_rebalance_pause_dispatch
        self.group_buckets = settings.default_group_buckets
        self.group_first_key = settings.default_group_first_key
        self.ring_size = settings.default_ring_size
        self.auto_delete_delay_ms = settings.auto_delete_queues_delay_ms
        self.auto_delete_message_count = settings.auto_delete_queues_message_count
        self.auto_delete = not self.configuration_managed and (
            settings.auto_delete_queues
            if self.auto_created
            else settings.auto_delete_created_queues
        )

    def set_temporary(self) -> None:
        """Makes the queue one that ends with its client's connection."""
        self.durable = False
        self.temporary = True

    def set_filter(self, text: str | None) -> None:
        """Sets the filter; None takes every message."""
        self.filter_text = text

    def set_origin(self, auto_created: bool, configuration_managed: bool) -> None:
        """Sets whether a client's use or the configuration created the queue; before `take_defaults`."""
        self.auto_created = auto_created
        self.configuration_managed = configuration_managed

    def set_last_value(self, wanted: bool, key: str | None) -> None:
        """Sets the last-value key; a key alone makes a last-value queue as well (QueueFactoryImpl.lastValueKey)."""
        if key:
            self.last_value_key = key
        else:
            self.last_value_key = LAST_VALUE_KEY if wanted else None

    def encode(self, writer: Writer) -> None:
        writer.simple_string(self.name)
        writer.simple_string(self.address)
        writer.int8(self.routing_type)
        writer.nullable_simple_string(self.filter_text)
        writer.boolean(self.internal)
        writer.boolean(self.auto_created)
        writer.boolean(self.auto_delete)
        writer.int64(self.auto_delete_delay_ms)
        writer.int64(self.auto_delete_message_count)
        writer.boolean(self.purge_on_no_consumers)
        writer.int32(self.max_consumers)
        writer.nullable_simple_string(self.user)
        writer.boolean(self.exclusive)
        writer.nullable_simple_string(self.last_value_key)
        writer.boolean(self.non_destructive)
        writer.int32(self.consumers_before_dispatch)
        writer.int64(self.delay_before_dispatch_ms)
        writer.boolean(self.group_rebalance)
        writer.boolean(self.group_rebalance_pause_dispatch)
        writer.int32(self.group_buckets)
        writer.nullable_simple_string(self.group_first_key)
        writer.int64(self.ring_size)
        writer.boolean(self.enabled)
        writer.boolean(self.configuration_managed)


def decode_queue_spec(reader: Reader) -> QueueSpec:
    """Decodes QueueSpec.encode; the journal holds durable queues only."""
    name = reader.simple_string("queue.name")
    address = reader.simple_string("queue.address")
    spec = QueueSpec(name, address, reader.int8("queue.routing_type"))
    spec.filter_text = reader.nullable_simple_string("queue.filter")
    spec.internal = reader.boolean("queue.internal")
    spec.auto_created = reader.boolean("queue.auto_created")
    spec.auto_delete = reader.boolean("queue.auto_delete")
    spec.auto_delete_delay_ms = reader.int64("queue.auto_delete_delay")
    spec.auto_delete_message_count = reader.int64("queue.auto_delete_message_count")
    spec.purge_on_no_consumers = reader.boolean("queue.purge_on_no_consumers")
    spec.max_consumers = reader.int32("queue.max_consumers")
    spec.user = reader.nullable_simple_string("queue.user")
    spec.exclusive = reader.boolean("queue.exclusive")
    spec.last_value_key = reader.nullable_simple_string("queue.last_value_key")
    spec.non_destructive = reader.boolean("queue.non_destructive")
    spec.consumers_before_dispatch = reader.int32("queue.consumers_before_dispatch")
    spec.delay_before_dispatch_ms = reader.int64("queue.delay_before_dispatch")
    spec.group_rebalance = reader.boolean("queue.group_rebalance")
    spec.group_rebalance_pause_dispatch = reader.boolean("queue.group_rebalance_pause_dispatch")
    spec.group_buckets = reader.int32("queue.group_buckets")
    spec.group_first_key = reader.nullable_simple_string("queue.group_first_key")
    spec.ring_size = reader.int64("queue.ring_size")
    spec.enabled = reader.boolean("queue.enabled")
    spec.configuration_managed = reader.boolean("queue.configuration_managed")
    return spec
