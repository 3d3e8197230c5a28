"""Changes of a queue's definition (None: no change of the field), and their application to a QueueSpec.

Used for creation (fields of a client or of the file over the address settings' defaults) and for updates
(PostOfficeImpl.updateQueue): a queue's name, address, durability and last-value key never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.queue.spec import QueueSpec

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
# The fields that an update may change, named alike here and in QueueSpec.
UPDATED: Final = (
    "routing_type",
    "filter_text",
    "max_consumers",
    "purge_on_no_consumers",
    "exclusive",
    "non_destructive",
    "consumers_before_dispatch",
    "delay_before_dispatch_ms",
    "group_rebalance",
    "group_rebalance_pause_dispatch",
    "group_buckets",
    "group_first_key",
    "ring_size",
    "enabled",
    "auto_delete",
    "auto_delete_delay_ms",
    "auto_delete_message_count",
    "user",
)
# Fields of UPDATED that "" removes.
TAKEN_AWAY: Final = ("filter_text", "group_first_key")


class QueueChanges:
    """Fields as in QueueSpec. `filter_text` "" removes the filter. `last_value` applies at creation only."""

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
        """Returns the first invalid field, named as in a file; "" if all are valid."""
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
        """Applies the changes to the definition of a new queue."""
        if self.last_value is not None or self.last_value_key:
            key = self.last_value_key or spec.last_value_key
            if self.last_value is False and not self.last_value_key:
                key = None
            spec.set_last_value(self.last_value is True, key)
        self.update(spec)

    def update(self, spec: QueueSpec) -> bool:
        """Applies the changes to the definition of an existing queue; returns true if a field is different now."""
        changed = False
        for name in UPDATED:
            value = getattr(self, name)
            if value is None:
                continue
            if name in TAKEN_AWAY:
                value = value or None
            if getattr(spec, name) != value:
                setattr(spec, name, value)
                changed = True
        return changed


def changes_to(spec: QueueSpec) -> QueueChanges:
    """Returns the changes that make a queue's definition equal `spec`, except for its auto-deletion."""
    changes = QueueChanges()
    for name in UPDATED:
        if not name.startswith("auto_delete"):
            value = getattr(spec, name)
            setattr(changes, name, "" if value is None and name in TAKEN_AWAY else value)
    return changes
