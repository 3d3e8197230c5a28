"""What defines a queue, and how that is written to the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.buffer import Reader, Writer

if TYPE_CHECKING:
    from atalanta.kernel.address_settings import AddressSettings

MULTICAST: Final = 0
ANYCAST: Final = 1


class QueueSpec:
    """Definition of a queue (fact sheet C8 and CREATE_QUEUE_V2); `filter_text` None takes every message.

    `internal` marks store-and-forward queues. `auto_delete` takes effect when the last consumer left an empty queue,
    `transient` deletes it with its last consumer whatever it holds (shared non-durable subscriptions).
    `auto_delete_message_count` is how many messages an auto-deleted queue may still hold, -1 any.
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

    def take_defaults(self, settings: AddressSettings) -> None:
        """What the address settings say for a queue that a client makes (QueueConfigurationUtils)."""
        self.max_consumers = settings.default_max_consumers
        self.purge_on_no_consumers = settings.default_purge_on_no_consumers
        self.auto_delete = (
            settings.auto_delete_queues
            if self.auto_created
            else settings.auto_delete_created_queues
        )
        self.auto_delete_delay_ms = settings.auto_delete_queues_delay_ms
        self.auto_delete_message_count = settings.auto_delete_queues_message_count

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


def decode_queue_spec(reader: Reader) -> QueueSpec:
    """The inverse of QueueSpec.encode: only durable queues are written."""
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
    return spec
