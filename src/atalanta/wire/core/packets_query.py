"""Questions about queues and addresses (fact sheet A1.a)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import (
    SESS_BINDINGQUERY,
    SESS_BINDINGQUERY_RESP,
    SESS_BINDINGQUERY_RESP_V2,
    SESS_BINDINGQUERY_RESP_V3,
    SESS_BINDINGQUERY_RESP_V4,
    SESS_BINDINGQUERY_RESP_V5,
    SESS_QUEUEQUERY,
    SESS_QUEUEQUERY_RESP,
    SESS_QUEUEQUERY_RESP_V2,
    SESS_QUEUEQUERY_RESP_V3,
)


class QueueQuery(Packet):
    """SESS_QUEUEQUERY."""

    type: ClassVar[int] = SESS_QUEUEQUERY
    layout: ClassVar[str] = "queue ss"

    def __init__(
        self,
        queue: str,
    ) -> None:
        self.queue: str = queue


class QueueQueryResponse(Packet):
    """SESS_QUEUEQUERY_RESP."""

    type: ClassVar[int] = SESS_QUEUEQUERY_RESP
    layout: ClassVar[str] = (
        "exists bool, durable bool, temporary bool, consumer_count i32, message_count i64, filter "
        "ss?, address ss?, name ss?"
    )

    def __init__(
        self,
        exists: bool,
        durable: bool = False,
        temporary: bool = False,
        consumer_count: int = 0,
        message_count: int = 0,
        filter: str | None = None,
        address: str | None = None,
        name: str | None = None,
    ) -> None:
        self.exists: bool = exists
        self.durable: bool = durable
        self.temporary: bool = temporary
        self.consumer_count: int = consumer_count
        self.message_count: int = message_count
        self.filter: str | None = filter
        self.address: str | None = address
        self.name: str | None = name


class QueueQueryResponseV2(Packet):
    """SESS_QUEUEQUERY_RESP_V2."""

    type: ClassVar[int] = SESS_QUEUEQUERY_RESP_V2
    layout: ClassVar[str] = (
        "exists bool, durable bool, temporary bool, consumer_count i32, message_count i64, filter "
        "ss?, address ss?, name ss?, auto_create_queues bool"
    )

    def __init__(
        self,
        exists: bool,
        durable: bool = False,
        temporary: bool = False,
        consumer_count: int = 0,
        message_count: int = 0,
        filter: str | None = None,
        address: str | None = None,
        name: str | None = None,
        auto_create_queues: bool = False,
    ) -> None:
        self.exists: bool = exists
        self.durable: bool = durable
        self.temporary: bool = temporary
        self.consumer_count: int = consumer_count
        self.message_count: int = message_count
        self.filter: str | None = filter
        self.address: str | None = address
        self.name: str | None = name
        self.auto_create_queues: bool = auto_create_queues


class QueueQueryResponseV3(Packet):
    """SESS_QUEUEQUERY_RESP_V3.

    From version 129, also the answer to CreateConsumer. Nulls are accepted by clients.
    """

    type: ClassVar[int] = SESS_QUEUEQUERY_RESP_V3
    layout: ClassVar[str] = (
        "exists bool, durable bool, temporary bool, consumer_count i32, message_count i64, filter "
        "ss?, address ss?, name ss?, auto_create_queues bool, auto_created bool, "
        "purge_on_no_consumers bool, routing_type i8, max_consumers i32 | exclusive b?, "
        "last_value b?, default_consumer_window i?, last_value_key ss?, non_destructive b?, "
        "consumers_before_dispatch i?, delay_before_dispatch_ms l?, group_rebalance b?, "
        "group_buckets i?, auto_delete b?, auto_delete_delay_ms l?, auto_delete_message_count l?, "
        "group_first_key ss?, ring_size l?, enabled b?, group_rebalance_pause_dispatch b?, "
        "configuration_managed b?, more rest"
    )

    def __init__(
        self,
        exists: bool,
        durable: bool = False,
        temporary: bool = False,
        consumer_count: int = 0,
        message_count: int = 0,
        filter: str | None = None,
        address: str | None = None,
        name: str | None = None,
        auto_create_queues: bool = False,
        auto_created: bool = False,
        purge_on_no_consumers: bool = False,
        routing_type: int = 0,
        max_consumers: int = -1,
        exclusive: bool | None = None,
        last_value: bool | None = None,
        default_consumer_window: int | None = None,
        last_value_key: str | None = None,
        non_destructive: bool | None = None,
        consumers_before_dispatch: int | None = None,
        delay_before_dispatch_ms: int | None = None,
        group_rebalance: bool | None = None,
        group_buckets: int | None = None,
        auto_delete: bool | None = None,
        auto_delete_delay_ms: int | None = None,
        auto_delete_message_count: int | None = None,
        group_first_key: str | None = None,
        ring_size: int | None = None,
        enabled: bool | None = None,
        group_rebalance_pause_dispatch: bool | None = None,
        configuration_managed: bool | None = None,
        more: bytes = b"",
    ) -> None:
        self.exists: bool = exists
        self.durable: bool = durable
        self.temporary: bool = temporary
        self.consumer_count: int = consumer_count
        self.message_count: int = message_count
        self.filter: str | None = filter
        self.address: str | None = address
        self.name: str | None = name
        self.auto_create_queues: bool = auto_create_queues
        self.auto_created: bool = auto_created
        self.purge_on_no_consumers: bool = purge_on_no_consumers
        self.routing_type: int = routing_type
        self.max_consumers: int = max_consumers
        self.exclusive: bool | None = exclusive
        self.last_value: bool | None = last_value
        self.default_consumer_window: int | None = default_consumer_window
        self.last_value_key: str | None = last_value_key
        self.non_destructive: bool | None = non_destructive
        self.consumers_before_dispatch: int | None = consumers_before_dispatch
        self.delay_before_dispatch_ms: int | None = delay_before_dispatch_ms
        self.group_rebalance: bool | None = group_rebalance
        self.group_buckets: int | None = group_buckets
        self.auto_delete: bool | None = auto_delete
        self.auto_delete_delay_ms: int | None = auto_delete_delay_ms
        self.auto_delete_message_count: int | None = auto_delete_message_count
        self.group_first_key: str | None = group_first_key
        self.ring_size: int | None = ring_size
        self.enabled: bool | None = enabled
        self.group_rebalance_pause_dispatch: bool | None = group_rebalance_pause_dispatch
        self.configuration_managed: bool | None = configuration_managed
        self.more: bytes = more


class BindingQuery(Packet):
    """SESS_BINDINGQUERY."""

    type: ClassVar[int] = SESS_BINDINGQUERY
    layout: ClassVar[str] = "address ss"

    def __init__(
        self,
        address: str,
    ) -> None:
        self.address: str = address


class BindingQueryResponse(Packet):
    """SESS_BINDINGQUERY_RESP."""

    type: ClassVar[int] = SESS_BINDINGQUERY_RESP
    layout: ClassVar[str] = "exists bool, queue_names ss*"

    def __init__(
        self,
        exists: bool,
        queue_names: list[str],
    ) -> None:
        self.exists: bool = exists
        self.queue_names: list[str] = queue_names


class BindingQueryResponseV2(Packet):
    """SESS_BINDINGQUERY_RESP_V2."""

    type: ClassVar[int] = SESS_BINDINGQUERY_RESP_V2
    layout: ClassVar[str] = "exists bool, queue_names ss*, auto_create_queues bool"

    def __init__(
        self,
        exists: bool,
        queue_names: list[str],
        auto_create_queues: bool = False,
    ) -> None:
        self.exists: bool = exists
        self.queue_names: list[str] = queue_names
        self.auto_create_queues: bool = auto_create_queues


class BindingQueryResponseV3(Packet):
    """SESS_BINDINGQUERY_RESP_V3."""

    type: ClassVar[int] = SESS_BINDINGQUERY_RESP_V3
    layout: ClassVar[str] = (
        "exists bool, queue_names ss*, auto_create_queues bool, auto_create_addresses bool"
    )

    def __init__(
        self,
        exists: bool,
        queue_names: list[str],
        auto_create_queues: bool = False,
        auto_create_addresses: bool = False,
    ) -> None:
        self.exists: bool = exists
        self.queue_names: list[str] = queue_names
        self.auto_create_queues: bool = auto_create_queues
        self.auto_create_addresses: bool = auto_create_addresses


class BindingQueryResponseV4(Packet):
    """SESS_BINDINGQUERY_RESP_V4. Versions 129 to 134."""

    type: ClassVar[int] = SESS_BINDINGQUERY_RESP_V4
    layout: ClassVar[str] = (
        "exists bool, queue_names ss*, auto_create_queues bool, auto_create_addresses bool, "
        "purge_on_no_consumers bool, max_consumers i32 | exclusive b?, last_value b?, "
        "last_value_key ss?, non_destructive b?, consumers_before_dispatch i?, "
        "delay_before_dispatch_ms l?"
    )

    def __init__(
        self,
        exists: bool,
        queue_names: list[str],
        auto_create_queues: bool = False,
        auto_create_addresses: bool = False,
        purge_on_no_consumers: bool = False,
        max_consumers: int = -1,
        exclusive: bool | None = None,
        last_value: bool | None = None,
        last_value_key: str | None = None,
        non_destructive: bool | None = None,
        consumers_before_dispatch: int | None = None,
        delay_before_dispatch_ms: int | None = None,
    ) -> None:
        self.exists: bool = exists
        self.queue_names: list[str] = queue_names
        self.auto_create_queues: bool = auto_create_queues
        self.auto_create_addresses: bool = auto_create_addresses
        self.purge_on_no_consumers: bool = purge_on_no_consumers
        self.max_consumers: int = max_consumers
        self.exclusive: bool | None = exclusive
        self.last_value: bool | None = last_value
        self.last_value_key: str | None = last_value_key
        self.non_destructive: bool | None = non_destructive
        self.consumers_before_dispatch: int | None = consumers_before_dispatch
        self.delay_before_dispatch_ms: int | None = delay_before_dispatch_ms


class BindingQueryResponseV5(Packet):
    """SESS_BINDINGQUERY_RESP_V5. From version 135."""

    type: ClassVar[int] = SESS_BINDINGQUERY_RESP_V5
    layout: ClassVar[str] = (
        "exists bool, queue_names ss*, auto_create_queues bool, auto_create_addresses bool, "
        "purge_on_no_consumers bool, max_consumers i32 | exclusive b?, last_value b?, "
        "last_value_key ss?, non_destructive b?, consumers_before_dispatch i?, "
        "delay_before_dispatch_ms l?, supports_multicast bool, supports_anycast bool, "
        "more rest"
    )

    def __init__(
        self,
        exists: bool,
        queue_names: list[str],
        auto_create_queues: bool = False,
        auto_create_addresses: bool = False,
        purge_on_no_consumers: bool = False,
        max_consumers: int = -1,
        exclusive: bool | None = None,
        last_value: bool | None = None,
        last_value_key: str | None = None,
        non_destructive: bool | None = None,
        consumers_before_dispatch: int | None = None,
        delay_before_dispatch_ms: int | None = None,
        supports_multicast: bool = True,
        supports_anycast: bool = True,
        more: bytes = b"",
    ) -> None:
        self.exists: bool = exists
        self.queue_names: list[str] = queue_names
        self.auto_create_queues: bool = auto_create_queues
        self.auto_create_addresses: bool = auto_create_addresses
        self.purge_on_no_consumers: bool = purge_on_no_consumers
        self.max_consumers: int = max_consumers
        self.exclusive: bool | None = exclusive
        self.last_value: bool | None = last_value
        self.last_value_key: str | None = last_value_key
        self.non_destructive: bool | None = non_destructive
        self.consumers_before_dispatch: int | None = consumers_before_dispatch
        self.delay_before_dispatch_ms: int | None = delay_before_dispatch_ms
        self.supports_multicast: bool = supports_multicast
        self.supports_anycast: bool = supports_anycast
        self.more: bytes = more


PACKETS: Final[list[type[Packet]]] = [
    QueueQuery,
    QueueQueryResponse,
    QueueQueryResponseV2,
    QueueQueryResponseV3,
    BindingQuery,
    BindingQueryResponse,
    BindingQueryResponseV2,
    BindingQueryResponseV3,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
]
