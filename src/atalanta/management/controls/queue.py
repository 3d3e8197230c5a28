"""Attributes and operations of a queue: resource `queue.NAME` (QueueControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.management.operations.connections import consumer_details
from atalanta.management.operations.counters import QUEUE_COUNTER_OPERATIONS
from atalanta.management.operations.move_messages import MOVING_OPERATIONS
from atalanta.management.operations.queue_definition import routing_name
from atalanta.management.operations.read_messages import (
    READING_OPERATIONS,
    delivering_size,
    durable_delivering,
    durable_delivering_size,
    durable_size,
    durable_total,
    first_message_age,
    first_message_timestamp,
    prepared_count,
)
from atalanta.management.operations.scheduled import SCHEDULED_OPERATIONS
from atalanta.management.operations.send_message import send
from atalanta.management.request.call import (
    Attribute,
    Call,
    Operation,
    Operations,
    Parameters,
    flag_of,
    merged,
    text_of,
)
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue


def dead_letter_address(call: Call) -> object:
    return call.broker.settings.match(call.queue.spec.address).dead_letter_address


def expiry_address(call: Call) -> object:
    return call.broker.settings.match(call.queue.spec.address).expiry_address


def persisted_pause(call: Call) -> object:
    return call.management.pauses.queues.get(call.queue.name, False)


QUEUE_ATTRIBUTES: Final[dict[str, Attribute]] = {
    "ID": lambda call: call.queue.id,
    "Name": lambda call: call.queue.name,
    "Address": lambda call: call.queue.spec.address,
    "Filter": lambda call: call.queue.spec.filter_text,
    "Durable": lambda call: call.queue.durable,
    "User": lambda call: call.queue.spec.user,
    "RoutingType": lambda call: routing_name(call.queue.spec.routing_type),
    "Temporary": lambda call: call.queue.spec.temporary,
    "RetroactiveResource": lambda call: is_resource(call.broker.config, call.queue.name),
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
    "PersistedPause": persisted_pause,
    "MessageCount": lambda call: call.queue.message_count,
    "PersistentSize": lambda call: call.queue.bytes,
    "DurableMessageCount": durable_total,
    "DurablePersistentSize": durable_size,
    "ConsumerCount": lambda call: call.queue.consumer_count(),
    "DeliveringCount": lambda call: call.queue.delivering_count,
    "DeliveringSize": delivering_size,
    "DurableDeliveringCount": durable_delivering,
    "DurableDeliveringSize": durable_delivering_size,
    "ScheduledCount": lambda call: call.queue.scheduled_count,
    "ScheduledSize": lambda call: call.queue.scheduled_bytes,
    "DurableScheduledCount": lambda call: call.queue.scheduled_durable_count,
    "DurableScheduledSize": lambda call: call.queue.scheduled_durable_bytes,
    "PreparedTransactionMessageCount": prepared_count,
    "MessagesAdded": lambda call: call.queue.added,
    "MessagesAcknowledged": lambda call: call.queue.acknowledged,
    "MessagesExpired": lambda call: call.queue.expired,
    "MessagesKilled": lambda call: call.queue.killed,
    "DeadLetterAddress": dead_letter_address,
    "ExpiryAddress": expiry_address,
    "FirstMessageTimestamp": first_message_timestamp,
    "FirstMessageAge": first_message_age,
}


def pause(call: Call, given: Parameters) -> object:
    call.management.pauses.pause_queue(call.queue, len(given) > 0 and flag_of(given, 0))
    return None


def resume(call: Call, given: Parameters) -> object:
    call.management.pauses.resume_queue(call.queue)
    return None


def flush_executor(call: Call, given: Parameters) -> object:
    """Returns without work: every message sent before this request is already in the queue."""
    return None


def reset_added(call: Call, given: Parameters) -> object:
    call.queue.reset_counters(added=True)
    return None


def reset_acknowledged(call: Call, given: Parameters) -> object:
    call.queue.reset_counters(acknowledged=True)
    return None


def reset_expired(call: Call, given: Parameters) -> object:
    call.queue.reset_counters(expired=True)
    return None


def reset_killed(call: Call, given: Parameters) -> object:
    call.queue.reset_counters(killed=True)
    return None


def list_consumers_as_json(call: Call, given: Parameters) -> object:
    found: list[dict[str, object]] = []
    for session in call.broker.clients.sessions():
        for consumer in session.consumers.values():
            if consumer.queue is call.queue:
                found.append(consumer_details(session, consumer))
    return encode_json(found)


def disable(call: Call, given: Parameters) -> object:
    """Stops new messages for the queue. A durable queue stays disabled after a restart."""
    return _set_enabled(call, False)


def enable(call: Call, given: Parameters) -> object:
    return _set_enabled(call, True)


def _set_enabled(call: Call, enabled: bool) -> object:
    changes = QueueChanges()
    changes.enabled = enabled
    call.broker.queue_registry.update(call.now, call.queue.name, changes)
    return None


def reset_all_groups(call: Call, given: Parameters) -> object:
    """Releases every group; the next message of a group selects its consumer again."""
    groups = call.queue.groups
    if groups is not None:
        call.queue.look_again(groups.release_all())
        call.broker.dispatches.mark_dirty(call.queue)
    return None


def reset_group(call: Call, given: Parameters) -> object:
    groups = call.queue.groups
    if groups is not None:
        call.queue.look_again(groups.release_group(text_of(given, 0)))
        call.broker.dispatches.mark_dirty(call.queue)
    return None


def list_groups_as_json(call: Call, given: Parameters) -> object:
    """Returns each group (or bucket) and the consumer it is pinned to."""
    groups = call.queue.groups
    found: list[dict[str, object]] = []
    for session in call.broker.clients.sessions() if groups is not None else []:
        for consumer in session.consumers.values():
            if consumer.queue is call.queue and groups is not None:
                details = consumer_details(session, consumer)
                for key, pinned in groups.pins.items():
                    if pinned is consumer:
                        found.append({"groupID": key, **details})
    return encode_json(found)


def send_message(call: Call, given: Parameters) -> object:
    queue: Queue = call.queue
    return send(call, f"{queue.spec.address}::{queue.name}", given)


def refuse(why: str) -> Operation:
    """Returns a known operation that this broker cannot do."""

    def refused(call: Call, given: Parameters) -> object:
        raise BrokerError(ILLEGAL_STATE, why)

    return refused


OWN_OPERATIONS: Final[Operations] = {
    "pause": [("", pause), ("b", pause)],
    "resume": [("", resume)],
    "flushExecutor": [("", flush_executor)],
    "resetMessagesAdded": [("", reset_added)],
    "resetMessagesAcknowledged": [("", reset_acknowledged)],
    "resetMessagesExpired": [("", reset_expired)],
    "resetMessagesKilled": [("", reset_killed)],
    "listConsumersAsJSON": [("", list_consumers_as_json)],
    "sendMessage": [("miSbSS", send_message), ("miSbSSb", send_message)],
    "disable": [("", disable)],
    "enable": [("", enable)],
    "resetAllGroups": [("", reset_all_groups)],
    "resetGroup": [("s", reset_group)],
    "listGroupsAsJSON": [("", list_groups_as_json)],
}
QUEUE_OPERATIONS: Final[Operations] = merged(
    OWN_OPERATIONS,
    READING_OPERATIONS,
    MOVING_OPERATIONS,
    SCHEDULED_OPERATIONS,
    QUEUE_COUNTER_OPERATIONS,
)
