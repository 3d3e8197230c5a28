"""Queries for queues and addresses."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT8,
    INT32,
    INT64,
    NULLABLE_BOOL,
    NULLABLE_INT32,
    NULLABLE_INT64,
    NULLABLE_SIMPLE_STRING,
    REST,
    SIMPLE_STRING,
    SIMPLE_STRINGS,
    Packet,
    numbered,
    wire,
)

# Addresses that exist in a binding query of an Atalanta node only: a client asks for them to learn if the node has a
# log view, and if it understands Settle.
LOG_VIEW_ADDRESS: Final = "$.atalanta.logview"
SETTLE_ADDRESS: Final = "$.atalanta.settle"


@mutable_dataclass(eq=False, repr=False)
class QueueQuery(Packet):
    """SESS_QUEUEQUERY."""

    queue: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class QueueQueryResponse(Packet):
    """SESS_QUEUEQUERY_RESP."""

    exists: bool = field(metadata=wire(BOOL))
    durable: bool = field(default=False, metadata=wire(BOOL))
    temporary: bool = field(default=False, metadata=wire(BOOL))
    consumer_count: int = field(default=0, metadata=wire(INT32))
    message_count: int = field(default=0, metadata=wire(INT64))
    filter: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    address: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    name: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class QueueQueryResponseV2(QueueQueryResponse):
    """SESS_QUEUEQUERY_RESP_V2."""

    auto_create_queues: bool = field(default=False, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class QueueQueryResponseV3(QueueQueryResponseV2):
    """SESS_QUEUEQUERY_RESP_V3: from version 129 on, also the answer to CreateConsumer.

    Clients accept nulls.
    """

    auto_created: bool = field(default=False, metadata=wire(BOOL))
    purge_on_no_consumers: bool = field(default=False, metadata=wire(BOOL))
    routing_type: int = field(default=0, metadata=wire(INT8))
    max_consumers: int = field(default=-1, metadata=wire(INT32))
    exclusive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL, tail=True))
    last_value: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    default_consumer_window: int | None = field(default=None, metadata=wire(NULLABLE_INT32))
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
    configuration_managed: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    more: bytes = field(default=b"", metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class BindingQuery(Packet):
    """SESS_BINDINGQUERY."""

    address: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class BindingQueryResponse(Packet):
    """SESS_BINDINGQUERY_RESP."""

    exists: bool = field(metadata=wire(BOOL))
    queue_names: list[str] = field(metadata=wire(SIMPLE_STRINGS))


@mutable_dataclass(eq=False, repr=False)
class BindingQueryResponseV2(BindingQueryResponse):
    """SESS_BINDINGQUERY_RESP_V2."""

    auto_create_queues: bool = field(default=False, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class BindingQueryResponseV3(BindingQueryResponseV2):
    """SESS_BINDINGQUERY_RESP_V3."""

    auto_create_addresses: bool = field(default=False, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class BindingQueryResponseV4(BindingQueryResponseV3):
    """SESS_BINDINGQUERY_RESP_V4: versions 129 to 134."""

    purge_on_no_consumers: bool = field(default=False, metadata=wire(BOOL))
    max_consumers: int = field(default=-1, metadata=wire(INT32))
    exclusive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL, tail=True))
    last_value: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    last_value_key: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    non_destructive: bool | None = field(default=None, metadata=wire(NULLABLE_BOOL))
    consumers_before_dispatch: int | None = field(default=None, metadata=wire(NULLABLE_INT32))
    delay_before_dispatch_ms: int | None = field(default=None, metadata=wire(NULLABLE_INT64))


@mutable_dataclass(eq=False, repr=False)
class BindingQueryResponseV5(BindingQueryResponseV4):
    """SESS_BINDINGQUERY_RESP_V5: from version 135 on."""

    supports_multicast: bool = field(default=False, metadata=wire(BOOL))
    supports_anycast: bool = field(default=False, metadata=wire(BOOL))
    more: bytes = field(default=b"", metadata=wire(REST))


PACKETS: Final = numbered(
    {
        packet_types.SESS_QUEUEQUERY: QueueQuery,
        packet_types.SESS_QUEUEQUERY_RESP: QueueQueryResponse,
        packet_types.SESS_QUEUEQUERY_RESP_V2: QueueQueryResponseV2,
        packet_types.SESS_QUEUEQUERY_RESP_V3: QueueQueryResponseV3,
        packet_types.SESS_BINDINGQUERY: BindingQuery,
        packet_types.SESS_BINDINGQUERY_RESP: BindingQueryResponse,
        packet_types.SESS_BINDINGQUERY_RESP_V2: BindingQueryResponseV2,
        packet_types.SESS_BINDINGQUERY_RESP_V3: BindingQueryResponseV3,
        packet_types.SESS_BINDINGQUERY_RESP_V4: BindingQueryResponseV4,
        packet_types.SESS_BINDINGQUERY_RESP_V5: BindingQueryResponseV5,
    }
)
