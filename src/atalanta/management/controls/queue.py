"""Attributes and operations of a queue: resource `queue.NAME` (QueueControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.management.controls.control import Control, no_work
from atalanta.management.operations.queue_definition import routing_name
from atalanta.management.request.call import (
    Attributes,
    Call,
    Operations,
    Parameters,
    flag_of,
    merged,
)

if TYPE_CHECKING:
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.management.operations.message_sender import MessageSender
    from atalanta.management.pauses import Pauses

ATTRIBUTES: Final[Attributes] = {
    "ID": lambda call: call.queue.id,
    "Name": lambda call: call.queue.name,
    "Address": lambda call: call.queue.spec.address,
    "Filter": lambda call: call.queue.spec.filter_text,
    "Durable": lambda call: call.queue.durable,
    "User": lambda call: call.queue.spec.user,
    "RoutingType": lambda call: routing_name(call.queue.spec.routing_type),
    "Temporary": lambda call: call.queue.spec.is_temporary(),
    "InternalQueue": lambda call: call.queue.internal,
    "ConfigurationManaged": lambda call: call.queue.spec.configuration_managed,
    "AutoDelete": lambda call: call.queue.spec.auto_delete,
    "MaxConsumers": lambda call: call.queue.spec.max_consumers,
    "PurgeOnNoConsumers": lambda call: call.queue.spec.purge_on_no_consumers,
    "Enabled": lambda call: call.queue.spec.enabled,
    "Exclusive": lambda call: call.queue.spec.exclusive,
    "LastValue": lambda call: call.queue.spec.last_value_key is not None,
    "LastValueKey": lambda call: call.queue.spec.last_value_key,
    "NonDestructive": lambda call: call.queue.spec.non_destructive,
    "RingSize": lambda call: call.queue.spec.ring_size,
    "ConsumersBeforeDispatch": lambda call: call.queue.spec.consumers_before_dispatch,
    "DelayBeforeDispatch": lambda call: call.queue.spec.delay_before_dispatch_ms,
    "GroupRebalance": lambda call: call.queue.spec.group_rebalance,
    "GroupRebalancePauseDispatch": (lambda call: call.queue.spec.group_rebalance_pause_dispatch),
    "GroupBuckets": lambda call: call.queue.spec.group_buckets,
    "GroupFirstKey": lambda call: call.queue.spec.group_first_key,
    "GroupCount": lambda call: 0 if call.queue.groups is None else len(call.queue.groups.pins),
    "Paused": lambda call: call.queue.paused,
    "MessageCount": lambda call: call.queue.message_count,
    "ConsumerCount": lambda call: call.queue.consumer_count(),
    "DeliveringCount": lambda call: call.queue.delivering_count,
    "ScheduledCount": lambda call: call.queue.scheduled_count,
    "ScheduledSize": lambda call: call.queue.scheduled_bytes,
    "DurableScheduledCount": lambda call: call.queue.scheduled_durable_count,
    "DurableScheduledSize": lambda call: call.queue.scheduled_durable_bytes,
    "MessagesAdded": lambda call: call.queue.added,
    "MessagesAcknowledged": lambda call: call.queue.acknowledged,
    "MessagesExpired": lambda call: call.queue.expired,
    "MessagesKilled": lambda call: call.queue.killed,
}


class QueueControl(Control):
    """The control of the queues. `more_attributes` and `more_operations` are those of management/operations."""

    def __init__(
        self,
        config: BrokerConfig,
        queues: QueueRegistry,
        settings: AddressSettingsRepository,
        pauses: Pauses,
        sender: MessageSender,
        more_attributes: Attributes,
        more_operations: list[Operations],
    ) -> None:
        self.queues = queues
        self.settings = settings
        self.pauses = pauses
        self.sender = sender
        attributes: Attributes = {
            **ATTRIBUTES,
            **more_attributes,
            "RetroactiveResource": lambda call: is_resource(config, call.queue.name),
            "PersistedPause": lambda call: pauses.queues.get(call.queue.name, False),
            "DeadLetterAddress": self.dead_letter_address,
            "ExpiryAddress": self.expiry_address,
        }
        operations: Operations = {
            "pause": [("", self.pause), ("b", self.pause)],
            "resume": [("", self.resume)],
            "flushExecutor": [("", no_work)],
            "resetMessagesAdded": [("", self.reset_added)],
            "resetMessagesAcknowledged": [("", self.reset_acknowledged)],
            "resetMessagesExpired": [("", self.reset_expired)],
            "resetMessagesKilled": [("", self.reset_killed)],
            "sendMessage": [("miSbSS", self.send_message), ("miSbSSb", self.send_message)],
            "disable": [("", self.disable)],
            "enable": [("", self.enable)],
        }
        super().__init__(attributes, merged(operations, *more_operations))

    def select(self, call: Call) -> bool:
        """Selects a queue by its name, or by ADDRESS::NAME."""
        at = call.name.find("::")
        queue = self.queues.by_name.get(call.name if at < 0 else call.name[at + 2 :])
        if queue is None or (at >= 0 and queue.spec.address != call.name[:at]):
            return False
        call.given_queue = queue
        return True

    def dead_letter_address(self, call: Call) -> object:
        return self.settings.match(call.queue.spec.address).dead_letter_address

    def expiry_address(self, call: Call) -> object:
        return self.settings.match(call.queue.spec.address).expiry_address

    def pause(self, call: Call, given: Parameters) -> object:
        self.pauses.pause_queue(call.queue, len(given) > 0 and flag_of(given, 0))
        return None

    def resume(self, call: Call, given: Parameters) -> object:
        self.pauses.resume_queue(call.queue)
        return None

    def reset_added(self, call: Call, given: Parameters) -> object:
        call.queue.reset_counters(added=True)
        return None

    def reset_acknowledged(self, call: Call, given: Parameters) -> object:
        call.queue.reset_counters(acknowledged=True)
        return None

    def reset_expired(self, call: Call, given: Parameters) -> object:
        call.queue.reset_counters(expired=True)
        return None

    def reset_killed(self, call: Call, given: Parameters) -> object:
        call.queue.reset_counters(killed=True)
        return None

    def disable(self, call: Call, given: Parameters) -> object:
        """Stops new messages for the queue. A durable queue stays disabled after a restart."""
        return self._set_enabled(call, False)

    def enable(self, call: Call, given: Parameters) -> object:
        return self._set_enabled(call, True)

    def _set_enabled(self, call: Call, enabled: bool) -> object:
        changes = QueueChanges()
        changes.enabled = enabled
        self.queues.update(call.now, call.queue.name, changes)
        return None

    def send_message(self, call: Call, given: Parameters) -> object:
        queue = call.queue
        return self.sender.send(call, f"{queue.spec.address}::{queue.name}", given)
