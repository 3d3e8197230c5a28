"""What defines a queue, and how that is written to the journal."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.buffer import Reader, Writer

MULTICAST: Final = 0
ANYCAST: Final = 1


class QueueSpec:
    """Definition of a queue (fact sheet C8 and CREATE_QUEUE_V2); `filter_text` None takes every message.

    `internal` marks store-and-forward queues. `auto_delete` takes effect when the last consumer left an empty queue,
    `transient` deletes it with its last consumer whatever it holds (shared non-durable subscriptions).
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
        self.configuration_managed: bool = False
        self.purge_on_no_consumers: bool = False
        self.max_consumers: int = -1
        self.user: str | None = None

    def encode(self, writer: Writer) -> None:
        writer.simple_string(self.name)
        writer.simple_string(self.address)
        writer.int8(self.routing_type)
        writer.nullable_simple_string(self.filter_text)
        writer.boolean(self.internal)
        writer.boolean(self.auto_created)
        writer.boolean(self.auto_delete)
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
    spec.purge_on_no_consumers = reader.boolean("queue.purge_on_no_consumers")
    spec.max_consumers = reader.int32("queue.max_consumers")
    spec.user = reader.nullable_simple_string("queue.user")
    return spec
