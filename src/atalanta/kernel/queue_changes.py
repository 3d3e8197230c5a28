"""Changes of a queue's definition: what somebody states (None: says nothing), and how it becomes part of a QueueSpec.

Used for creation (a client's or the file's wishes over the address settings' defaults) and for updates
(PostOfficeImpl.updateQueue): a queue's name, address, durability and last-value key never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.queue_spec import QueueSpec

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 62) - 1


class QueueChanges:
    """Fields as in QueueSpec. `filter_text` "" takes the filter away. `last_value` counts at creation only."""

    def __init__(self) -> None:
        self.routing_type: int | None = None
        self.filter_text: str | None = None
        self.max_consumers: int | None = None
        self.purge_on_no_consumers: bool | None = None
        self.exclusive: bool | None = None
        self.last_value: bool | None = None
        self.last_value_key: str | None = None
        self.non_destructive: bool | None = None
        self.consumers_before_dispatch: int | None = None
        self.delay_before_dispatch_ms: int | None = None
        self.group_rebalance: bool | None = None
        self.group_rebalance_pause_dispatch: bool | None = None
        self.group_buckets: int | None = None
        self.group_first_key: str | None = None
        self.ring_size: int | None = None
        self.enabled: bool | None = None
        self.auto_delete: bool | None = None
        self.auto_delete_delay_ms: int | None = None
        self.auto_delete_message_count: int | None = None
        self.user: str | None = None

    def problem(self) -> str:
        """What cannot be, named as in a file; "" when nothing is wrong."""
        bounds = (
            ("max-consumers", self.max_consumers, INT_MAX),
            ("consumers-before-dispatch", self.consumers_before_dispatch, INT_MAX),
            ("group-buckets", self.group_buckets, INT_MAX),
            ("delay-before-dispatch", self.delay_before_dispatch_ms, LONG_MAX),
            ("ring-size", self.ring_size, LONG_MAX),
            ("auto-delete-delay", self.auto_delete_delay_ms, LONG_MAX),
            ("auto-delete-message-count", self.auto_delete_message_count, LONG_MAX),
        )
        for name, value, most in bounds:
            if value is not None and not -1 <= value <= most:
                return f"{name} cannot be {value}: it goes from -1 to {most}"
        return ""

    def create(self, spec: QueueSpec) -> None:
        """Into the definition of a queue to be made."""
        if self.last_value is not None or self.last_value_key:
            key = self.last_value_key or spec.last_value_key
            if self.last_value is False and not self.last_value_key:
                key = None
            spec.set_last_value(self.last_value is True, key)
        self.update(spec)

    def update(self, spec: QueueSpec) -> bool:
        """Into the definition of a queue that exists; True if something is different now."""
        changed = self._update_limits(spec)
        if self.routing_type is not None and spec.routing_type != self.routing_type:
            spec.routing_type = self.routing_type
            changed = True
        if self.filter_text is not None and (spec.filter_text or "") != self.filter_text:
            spec.filter_text = self.filter_text or None
            changed = True
        if self.exclusive is not None and spec.exclusive != self.exclusive:
            spec.exclusive = self.exclusive
            changed = True
        if self.non_destructive is not None and spec.non_destructive != self.non_destructive:
            spec.non_destructive = self.non_destructive
            changed = True
        if self.enabled is not None and spec.enabled != self.enabled:
            spec.enabled = self.enabled
            changed = True
        if self.user is not None and spec.user != self.user:
            spec.user = self.user
            changed = True
        return self._update_dispatch(spec) or changed

    def _update_limits(self, spec: QueueSpec) -> bool:
        before = (
            spec.max_consumers,
            spec.purge_on_no_consumers,
            spec.ring_size,
            spec.auto_delete,
            spec.auto_delete_delay_ms,
            spec.auto_delete_message_count,
        )
        if self.max_consumers is not None:
            spec.max_consumers = self.max_consumers
        if self.purge_on_no_consumers is not None:
            spec.purge_on_no_consumers = self.purge_on_no_consumers
        if self.ring_size is not None:
            spec.ring_size = self.ring_size
        if self.auto_delete is not None:
            spec.auto_delete = self.auto_delete
        if self.auto_delete_delay_ms is not None:
            spec.auto_delete_delay_ms = self.auto_delete_delay_ms
        if self.auto_delete_message_count is not None:
            spec.auto_delete_message_count = self.auto_delete_message_count
        return before != (
            spec.max_consumers,
            spec.purge_on_no_consumers,
            spec.ring_size,
            spec.auto_delete,
            spec.auto_delete_delay_ms,
            spec.auto_delete_message_count,
        )

    def _update_dispatch(self, spec: QueueSpec) -> bool:
        before = (
            spec.consumers_before_dispatch,
            spec.delay_before_dispatch_ms,
            spec.group_rebalance,
            spec.group_rebalance_pause_dispatch,
            spec.group_buckets,
            spec.group_first_key,
        )
        if self.consumers_before_dispatch is not None:
            spec.consumers_before_dispatch = self.consumers_before_dispatch
        if self.delay_before_dispatch_ms is not None:
            spec.delay_before_dispatch_ms = self.delay_before_dispatch_ms
        if self.group_rebalance is not None:
            spec.group_rebalance = self.group_rebalance
        if self.group_rebalance_pause_dispatch is not None:
            spec.group_rebalance_pause_dispatch = self.group_rebalance_pause_dispatch
        if self.group_buckets is not None:
            spec.group_buckets = self.group_buckets
        if self.group_first_key is not None:
            spec.group_first_key = self.group_first_key or None
        return before != (
            spec.consumers_before_dispatch,
            spec.delay_before_dispatch_ms,
            spec.group_rebalance,
            spec.group_rebalance_pause_dispatch,
            spec.group_buckets,
            spec.group_first_key,
        )


def changes_to(spec: QueueSpec) -> QueueChanges:
    """All that makes a queue be as `spec` says."""
    changes = QueueChanges()
    changes.routing_type = spec.routing_type
    changes.filter_text = spec.filter_text or ""
    changes.max_consumers = spec.max_consumers
    changes.purge_on_no_consumers = spec.purge_on_no_consumers
    changes.exclusive = spec.exclusive
    changes.non_destructive = spec.non_destructive
    changes.consumers_before_dispatch = spec.consumers_before_dispatch
    changes.delay_before_dispatch_ms = spec.delay_before_dispatch_ms
    changes.group_rebalance = spec.group_rebalance
    changes.group_rebalance_pause_dispatch = spec.group_rebalance_pause_dispatch
    changes.group_buckets = spec.group_buckets
    changes.group_first_key = spec.group_first_key or ""
    changes.ring_size = spec.ring_size
    changes.enabled = spec.enabled
    changes.user = spec.user
    return changes
