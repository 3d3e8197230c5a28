"""Packets that create and delete queues and addresses."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT8,
    INT8S,
    INT32,
    NULLABLE_BOOL,
    NULLABLE_INT32,
    NULLABLE_INT64,
    NULLABLE_SIMPLE_STRING,
    REST,
    SIMPLE_STRING,
    Packet,
    numbered,
    wire,
)


@mutable_dataclass(eq=False, repr=False)
class CreateAddress(Packet):
    """CREATE_ADDRESS: `routing_types` are 0 multicast, 1 anycast."""

    address: str = field(metadata=wire(SIMPLE_STRING))
    routing_types: list[int] = field(metadata=wire(INT8S))
    requires_response: bool = field(default=True, metadata=wire(BOOL))
    auto_created: bool = field(default=False, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class CreateQueue(Packet):
    """CREATE_QUEUE."""

    address: str = field(metadata=wire(SIMPLE_STRING))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    filter: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    durable: bool = field(default=True, metadata=wire(BOOL))
    temporary: bool = field(default=False, metadata=wire(BOOL))
    requires_response: bool = field(default=True, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class CreateQueueV2(CreateQueue):
    """CREATE_QUEUE_V2: with `routing_type` -1 the address decides."""

    auto_created: bool = field(default=False, metadata=wire(BOOL))
    routing_type: int = field(default=-1, metadata=wire(INT8))
    max_consumers: int = field(default=-1, metadata=wire(INT32))
    purge_on_no_consumers: bool = field(default=False, metadata=wire(BOOL))
    exclusive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL, tail=True))
    last_value: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    last_value_key: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    non_destructive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    consumers_before_dispatch: int | None = field(default=None, metadata=wire(NULLABLE_INT32))
    delay_before_dispatch_ms: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    group_rebalance: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    group_buckets: int | None = field(default=None, metadata=wire(NULLABLE_INT32))
    auto_delete: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    auto_delete_delay_ms: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    auto_delete_message_count: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    group_first_key: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    ring_size: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    enabled: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    group_rebalance_pause_dispatch: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    more: bytes = field(default=b"", metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class CreateSharedQueue(Packet):
    """CREATE_SHARED_QUEUE."""

    address: str = field(metadata=wire(SIMPLE_STRING))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    filter: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    durable: bool = field(default=True, metadata=wire(BOOL))
    requires_response: bool = field(default=True, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class CreateSharedQueueV2(Packet):
    """CREATE_SHARED_QUEUE_V2.

    The queue may exist already with the same settings (JMS 2 shared subscriptions).
    """

    address: str = field(metadata=wire(SIMPLE_STRING))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    filter: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    durable: bool = field(default=True, metadata=wire(BOOL))
    routing_type: int = field(default=-1, metadata=wire(INT8))
    requires_response: bool = field(default=True, metadata=wire(BOOL))
    max_consumers: int | None = field(default=None, metadata=wire(NULLABLE_INT32, tail=True))
    purge_on_no_consumers: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    exclusive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    last_value: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    last_value_key: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    non_destructive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    consumers_before_dispatch: int | None = field(default=None, metadata=wire(NULLABLE_INT32))
    delay_before_dispatch_ms: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    group_rebalance: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    group_buckets: int | None = field(default=None, metadata=wire(NULLABLE_INT32))
    auto_delete: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    auto_delete_delay_ms: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    auto_delete_message_count: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    group_first_key: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    ring_size: int | None = field(default=None, metadata=wire(NULLABLE_INT64))
    enabled: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    group_rebalance_pause_dispatch: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    more: bytes = field(default=b"", metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class DeleteQueue(Packet):
    """DELETE_QUEUE."""

    queue: str = field(metadata=wire(SIMPLE_STRING))


PACKETS: Final = numbered(
    {
        packet_types.CREATE_ADDRESS: CreateAddress,
        packet_types.CREATE_QUEUE: CreateQueue,
        packet_types.CREATE_QUEUE_V2: CreateQueueV2,
        packet_types.CREATE_SHARED_QUEUE: CreateSharedQueue,
        packet_types.CREATE_SHARED_QUEUE_V2: CreateSharedQueueV2,
        packet_types.DELETE_QUEUE: DeleteQueue,
    }
)
