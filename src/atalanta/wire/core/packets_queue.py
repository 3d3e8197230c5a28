"""Packets that make and delete queues and addresses (fact sheet A1.a)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import (
    CREATE_ADDRESS,
    CREATE_QUEUE,
    CREATE_QUEUE_V2,
    CREATE_SHARED_QUEUE,
    CREATE_SHARED_QUEUE_V2,
    DELETE_QUEUE,
)


class CreateAddress(Packet):
    """CREATE_ADDRESS. `routing_types`: 0 multicast, 1 anycast."""

    type: ClassVar[int] = CREATE_ADDRESS
    layout: ClassVar[str] = (
        "address ss, routing_types i8*, requires_response bool, auto_created bool"
    )

    def __init__(
        self,
        address: str,
        routing_types: list[int],
        requires_response: bool = True,
        auto_created: bool = False,
    ) -> None:
        self.address: str = address
        self.routing_types: list[int] = routing_types
        self.requires_response: bool = requires_response
        self.auto_created: bool = auto_created


class CreateQueue(Packet):
    """CREATE_QUEUE."""

    type: ClassVar[int] = CREATE_QUEUE
    layout: ClassVar[str] = (
        "address ss, queue ss, filter ss?, durable bool, temporary bool, requires_response bool"
    )

    def __init__(
        self,
        address: str,
        queue: str,
        filter: str | None = None,
        durable: bool = True,
        temporary: bool = False,
        requires_response: bool = True,
    ) -> None:
        self.address: str = address
        self.queue: str = queue
        self.filter: str | None = filter
        self.durable: bool = durable
        self.temporary: bool = temporary
        self.requires_response: bool = requires_response


class CreateQueueV2(CreateQueue):
    """CREATE_QUEUE_V2. `routing_type` -1: the address decides."""

    type: ClassVar[int] = CREATE_QUEUE_V2
    layout: ClassVar[str] = (
        "address ss, queue ss, filter ss?, durable bool, temporary bool, requires_response bool, "
        "auto_created bool, routing_type i8, max_consumers i32, purge_on_no_consumers bool | "
        "exclusive b?, last_value b?, last_value_key ss?, non_destructive b?, "
        "consumers_before_dispatch i?, delay_before_dispatch_ms l?, group_rebalance b?, "
        "group_buckets i?, auto_delete b?, auto_delete_delay_ms l?, auto_delete_message_count l?, "
        "group_first_key ss?, ring_size l?, enabled b?, group_rebalance_pause_dispatch b?, "
        "more rest"
    )

    def __init__(
        self,
        address: str,
        queue: str,
        filter: str | None = None,
        durable: bool = True,
        temporary: bool = False,
        requires_response: bool = True,
        auto_created: bool = False,
        routing_type: int = -1,
        max_consumers: int = -1,
        purge_on_no_consumers: bool = False,
        exclusive: bool | None = None,
        last_value: bool | None = None,
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
        more: bytes = b"",
    ) -> None:
        super().__init__(
            address,
            queue,
            filter,
            durable,
            temporary,
            requires_response,
        )
        self.auto_created: bool = auto_created
        self.routing_type: int = routing_type
        self.max_consumers: int = max_consumers
        self.purge_on_no_consumers: bool = purge_on_no_consumers
        self.exclusive: bool | None = exclusive
        self.last_value: bool | None = last_value
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
        self.more: bytes = more


class CreateSharedQueue(Packet):
    """CREATE_SHARED_QUEUE."""

    type: ClassVar[int] = CREATE_SHARED_QUEUE
    layout: ClassVar[str] = "address ss, queue ss, filter ss?, durable bool, requires_response bool"

    def __init__(
        self,
        address: str,
        queue: str,
        filter: str | None = None,
        durable: bool = True,
        requires_response: bool = True,
    ) -> None:
        self.address: str = address
        self.queue: str = queue
        self.filter: str | None = filter
        self.durable: bool = durable
        self.requires_response: bool = requires_response


class CreateSharedQueueV2(Packet):
    """CREATE_SHARED_QUEUE_V2.

    A queue that may exist already, if it is alike (JMS 2 shared subscriptions).
    """

    type: ClassVar[int] = CREATE_SHARED_QUEUE_V2
    layout: ClassVar[str] = (
        "address ss, queue ss, filter ss?, durable bool, routing_type i8, requires_response bool "
        "| max_consumers i?, purge_on_no_consumers b?, exclusive b?, last_value b?, "
        "last_value_key ss?, non_destructive b?, consumers_before_dispatch i?, "
        "delay_before_dispatch_ms l?, group_rebalance b?, group_buckets i?, auto_delete b?, "
        "auto_delete_delay_ms l?, auto_delete_message_count l?, group_first_key ss?, ring_size "
        "l?, enabled b?, group_rebalance_pause_dispatch b?, "
        "more rest"
    )

    def __init__(
        self,
        address: str,
        queue: str,
        filter: str | None = None,
        durable: bool = True,
        routing_type: int = -1,
        requires_response: bool = True,
        max_consumers: int | None = None,
        purge_on_no_consumers: bool | None = None,
        exclusive: bool | None = None,
        last_value: bool | None = None,
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
        more: bytes = b"",
    ) -> None:
        self.address: str = address
        self.queue: str = queue
        self.filter: str | None = filter
        self.durable: bool = durable
        self.routing_type: int = routing_type
        self.requires_response: bool = requires_response
        self.max_consumers: int | None = max_consumers
        self.purge_on_no_consumers: bool | None = purge_on_no_consumers
        self.exclusive: bool | None = exclusive
        self.last_value: bool | None = last_value
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
        self.more: bytes = more


class DeleteQueue(Packet):
    """DELETE_QUEUE."""

    type: ClassVar[int] = DELETE_QUEUE
    layout: ClassVar[str] = "queue ss"

    def __init__(
        self,
        queue: str,
    ) -> None:
        self.queue: str = queue


PACKETS: Final[list[type[Packet]]] = [
    CreateAddress,
    CreateQueue,
    CreateQueueV2,
    CreateSharedQueue,
    CreateSharedQueueV2,
    DeleteQueue,
]
