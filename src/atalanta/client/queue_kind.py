"""Kinds of queues that a client can create."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.wire.core.packets.queue import CreateQueueV2, CreateSharedQueueV2


@dataclass(frozen=True, kw_only=True)
class QueueKind:
    """Options for `create_queue(…, kind=QueueKind(exclusive=True))`. None uses the address settings.

    exclusive: one consumer at a time. last_value: the queue keeps the newest message of each `_AMQ_LVQ_NAME` (or of the
    property `last_value_key`). ring_size: the maximum number of messages. non_destructive: consuming removes no
    message. consumers_before_dispatch, delay_before_dispatch_ms: delivery waits for consumers. group_…: message groups
    (`Message.group_id`). enabled: False refuses messages.
    """

    exclusive: bool | None = None
    last_value: bool | None = None
    last_value_key: str | None = None
    non_destructive: bool | None = None
    consumers_before_dispatch: int | None = None
    delay_before_dispatch_ms: int | None = None
    group_rebalance: bool | None = None
    group_rebalance_pause_dispatch: bool | None = None
    group_buckets: int | None = None
    group_first_key: str | None = None
    ring_size: int | None = None
    auto_delete: bool | None = None
    auto_delete_delay_ms: int | None = None
    auto_delete_message_count: int | None = None
    enabled: bool | None = None

    def put(self, packet: CreateQueueV2 | CreateSharedQueueV2) -> None:
        """Copies the options into a request for a queue."""
        for each in fields(self):
            setattr(packet, each.name, getattr(self, each.name))
