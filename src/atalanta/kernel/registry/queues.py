"""Addresses and queues come and go: creation, deletion, queries, auto-creation and auto-deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import (
    ILLEGAL_STATE,
    INVALID_FILTER,
    QUEUE_DOES_NOT_EXIST,
    QUEUE_EXISTS,
    BrokerError,
)
from atalanta.kernel.journal import records
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.consumers import remove_consumer
from atalanta.kernel.queue.delivery import persisted_delivery_count
from atalanta.kernel.queue.delivery.retroactive_copies import copy_retained
from atalanta.kernel.queue.displacement import BLOCKS_A_TURN, cut
from atalanta.kernel.queue.paging import removal
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.settle import drop_from_queue
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.registry.addresses import check_routing_type
from atalanta.message.encoding.buffer import Writer
from atalanta.message.selector.selector import Filter, FilterError, parse

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.routing.retroactive_names import Retained


def parse_filter(text: str | None) -> Filter | None:
    """None and blank mean no filter, as in Artemis. BrokerError INVALID_FILTER names the place."""
    if text is None or not text.strip():
        return None
    try:
        return parse(text)
    except FilterError as error:
        raise BrokerError(INVALID_FILTER, f"invalid filter {text!r}: {error}") from error
















# -- queues ---------------------------------------------------------------------------------------
def create_queue(
    broker: Broker, now: int, spec: QueueSpec, with_retained: bool = True
) -> Queue:
    """A new queue below its address (which is created with it if need be). BrokerError QUEUE_EXISTS and others.

    It begins with what a retroactive address has kept, unless it goes on for a queue of another node.
    """
    if spec.name in broker.queues:
        raise BrokerError(QUEUE_EXISTS, f"queue {spec.name} already exists")
    if not spec.name or "::" in spec.name:
        raise BrokerError(ILLEGAL_STATE, f"{spec.name!r} is not a name for a queue")
    selector = parse_filter(spec.filter_text)
    # An address that comes with a client's queue goes with the last of them (ActiveMQServerImpl.createQueue).
    address = broker.address_registry.ensure(
        now,
        spec.address,
        spec.routing_type,
        not spec.internal and not spec.configuration_managed,
        _outlives(broker, spec),
    )
    queue = Queue(broker.take_binding_id(), spec, selector, broker.ids.uuid().hex())
    queue.usage.create(now)
    broker.queues[queue.name] = queue
    broker.queues_by_id[queue.id] = queue
    persisted_delivery_count.begin(broker, queue)
    address.add_queue(queue)
    if spec.internal:
        address.internal = True
        broker.address_registry.apply_settings(address)
    address.swept = False
    if address.retained is not None and with_retained:
        _store_with_copies(broker, now, queue, address.retained)
    elif queue.durable:
        store_queue(broker, queue)
    for observer in broker.observers:
        observer.on_queue_added(now, queue)
    return queue


def _outlives(broker: Broker, spec: QueueSpec) -> bool:
    """Whether the address that comes with a queue is in the journal: one that keeps messages for later queues is, but
    for a temporary queue's own."""
    if spec.durable and not spec.temporary:
        return True
    return spec.name != spec.address and broker.address_registry.kept_messages(spec.address) > 0


def _store_with_copies(broker: Broker, now: int, queue: Queue, retained: Retained) -> None:
    """The queue's record comes last: after a crash it is there with all its copies, or none of them is."""
    copies = copy_retained(broker, now, queue, retained)
    if queue.durable:
        copies.batch.add(records.QUEUE, encode_queue(queue))
    lsn = broker.append_batch(copies.batch, copies.plans, copies.references, None, 0)
    if queue.durable:
        queue.record_stored(lsn)


def store_queue(broker: Broker, queue: Queue) -> None:
    queue.record_stored(broker.journal.append(records.QUEUE, encode_queue(queue)))


def encode_queue(queue: Queue) -> bytes:
    """Definition and all that must survive its messages: sequences, what is acknowledged, leases, lost ranges."""
    writer = Writer()
    writer.int64(queue.id)
    queue.spec.encode(writer)
    writer.simple_string(queue.incarnation)
    writer.int64(queue.next_sequence)
    writer.int64(queue.log.acked_through)
    writer.int32(len(queue.log.leases))
    for lease in queue.log.leases.values():
        writer.simple_string(lease.group)
        writer.int64(lease.epoch)
        writer.simple_string(lease.owner)
        writer.int64(lease.ttl_ns)
    writer.int32(len(queue.log.lost))
    for start, end, why in queue.log.lost:
        writer.int64(start)
        writer.int64(end)
        writer.simple_string(why)
    return writer.getvalue()


def update_queue(broker: Broker, now: int, name: str, changes: QueueChanges) -> Queue:
    """Change the definition of a queue, durably (PostOfficeImpl.updateQueue); nothing changes on a BrokerError.

    Peers see a queue with another filter or routing type as a new binding with the same consumers.
    """
    queue = find_queue(broker, name)
    spec = queue.spec
    check_update(broker, queue, changes)
    selector = queue.filter
    if changes.filter_text is not None:
        selector = parse_filter(changes.filter_text)
    before = (spec.filter_text, spec.routing_type)
    address = broker.addresses[spec.address]
    rebind = changes.routing_type is not None and changes.routing_type != spec.routing_type
    if rebind:
        address.remove_queue(queue)
    changed = changes.update(spec)
    queue.set_filter(selector)
    if rebind:
        address.add_queue(queue)
    if not changed:
        return queue
    _reconfigure(broker, queue)
    if queue.durable:
        store_queue(broker, queue)
    if before != (spec.filter_text, spec.routing_type):
        for observer in broker.observers:
            observer.on_queue_removed(now, queue)
            observer.on_queue_added(now, queue)
            for consumer in queue.consumers:
                if not consumer.browse_only:
                    observer.on_consumer_added(now, consumer)
    return queue


def check_update(broker: Broker, queue: Queue, changes: QueueChanges) -> None:
    """BrokerError ILLEGAL_STATE for what a queue in use cannot become."""
    problem = changes.problem()
    if problem:
        raise BrokerError(ILLEGAL_STATE, f"queue {queue.name}: {problem}")
    limit = changes.max_consumers
    count = queue.consumer_count()
    if limit is not None and 0 <= limit < count:
        raise BrokerError(
            ILLEGAL_STATE, f"queue {queue.name} has {count} consumers: max-consumers cannot be {limit}"
        )
    if changes.routing_type is not None:
        check_routing_type(broker.addresses[queue.spec.address], changes.routing_type)
    ring = changes.ring_size is not None and changes.ring_size >= 0
    if queue.log.leases and (changes.non_destructive or ring):
        raise BrokerError(
            ILLEGAL_STATE,
            f"queue {queue.name} is read by a log-view group: it cannot become a ring or non-destructive",
        )
    if queue.paged is not None and changes.non_destructive and not queue.keeps_messages:
        raise BrokerError(
            ILLEGAL_STATE,
            f"queue {queue.name} has messages in pages: it cannot become non-destructive",
        )


def _reconfigure(broker: Broker, queue: Queue) -> None:
    """The queue behaves as its definition says from now on, for the messages it has as well."""
    queue.reconfigure()
    if queue.special is not None:
        cut(broker, broker.now, queue, queue.special, BLOCKS_A_TURN)
    broker.mark_dirty(queue)


def delete_queue(broker: Broker, now: int, name: str, why: str) -> None:
    """The queue and its messages are gone; consumers are told `why`."""
    queue = find_queue(broker, name)
    for consumer in list(queue.consumers):
        consumer.close()
        consumer.endpoint.consumer_gone(consumer, why)
        remove_from_queue(broker, now, queue, consumer)
    for reference in queue.delete():
        drop_from_queue(broker, reference)
    for _, reference in broker.scheduled.of_queue(queue):
        drop_from_queue(broker, reference)
    del broker.queues[queue.name]
    del broker.queues_by_id[queue.id]
    address = broker.addresses.get(queue.spec.address)
    if address is not None:
        address.remove_queue(queue)
    if queue.durable:
        writer = Writer()
        writer.int64(queue.id)
        broker.journal.append(records.QUEUE_DELETED, writer.getvalue())
    removal.forget(broker.paging, queue)
    for observer in broker.observers:
        observer.on_queue_removed(now, queue)
    if address is not None:
        address.queue_left_at = now
        broker.address_registry.delete_with_queue(now, address, queue.spec.temporary)


def remove_from_queue(broker: Broker, now: int, queue: Queue, consumer: Consumer) -> None:
    """Take a consumer out of its queue, tell observers, and delete a transient queue with its last consumer."""
    remove_consumer(queue, consumer)
    queue.usage.remove_consumer(now)
    if not consumer.browse_only:
        for observer in broker.observers:
            observer.on_consumer_removed(now, consumer)


def find_queue(broker: Broker, name: str) -> Queue:
    """By queue name or FQQN; BrokerError QUEUE_DOES_NOT_EXIST."""
    at = name.find("::")
    queue = broker.queues.get(name if at < 0 else name[at + 2 :])
    if queue is None or (at >= 0 and queue.spec.address != name[:at]):
        raise BrokerError(QUEUE_DOES_NOT_EXIST, f"queue {name} does not exist")
    return queue






def sweep_at_start(broker: Broker, now: int) -> None:
    """Automatic queues and addresses that are empty go at once, used or not: PostOfficeImpl.reapAddresses(true)."""
    for queue in list(broker.queues.values()):
        if (
            queue.spec.auto_delete
            and not queue.internal
            and queue.message_count == 0
            and not queue.consumers
            and not queue.log.leases
        ):
            delete_queue(broker, now, queue.name, "auto-deleted at start")
    broker.address_registry.sweep_at_start(now)


def sweep(broker: Broker, now: int) -> None:
    """Delete queues and addresses that may go and were found unused twice (address-queue-scan-period).

    Follows PostOfficeImpl.reapAddresses; a queue with a log-view group stays, it has a reader without a consumer.
    """
    for queue in list(broker.queues.values()):
        if not _may_go(broker, now, queue):
            queue.usage.sweep(False)
        elif queue.usage.sweep(True):
            delete_queue(broker, now, queue.name, "auto-deleted")
    broker.address_registry.sweep(now)


def _may_go(broker: Broker, now: int, queue: Queue) -> bool:
    spec = queue.spec
    if not spec.auto_delete or queue.internal or queue.consumers or queue.pending or queue.log.leases:
        return False
    if 0 <= spec.auto_delete_message_count < queue.message_count:
        return False
    skip_usage = broker.settings_of(spec.address).auto_delete_queues_skip_usage_check
    used = queue.usage.was_used or queue.acknowledged > 0 or queue.expired > 0 or queue.killed > 0
    if not skip_usage and not used:
        return False
    since = queue.usage.created_at if skip_usage else queue.usage.consumer_left_at
    return now - since >= spec.auto_delete_delay_ms * 1_000_000


