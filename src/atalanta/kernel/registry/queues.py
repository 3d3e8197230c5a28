"""The registry of a node's queues: creation, changes, deletion and the sweep of unused ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    ILLEGAL_STATE,
    INVALID_FILTER,
    QUEUE_DOES_NOT_EXIST,
    QUEUE_EXISTS,
    BrokerError,
)
from atalanta.kernel.journal import records
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.consumers import configure, remove_consumer
from atalanta.kernel.queue.delivery.displacement import BLOCKS_A_TURN, cut
from atalanta.kernel.queue.delivery.retroactive_copies import copy_retained
from atalanta.kernel.queue.paging import removal
from atalanta.kernel.queue.pending_limit import pending_limit_of
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.registry.addresses import check_routing_type
from atalanta.kernel.routing.virtual_topics import takes_local
from atalanta.message.encoding.buffer import Writer
from atalanta.message.selector.selector import Filter, FilterError, parse

if TYPE_CHECKING:
    from atalanta.kernel.log.lease import ReaderLease
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.ports import Ids
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.delivery.dispatcher import Dispatcher
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.bindings import BindingRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.retroactive_names import Retained
    from atalanta.kernel.settings.broker_config import BrokerConfig

CLOSED: Final = "its connection was closed"


def parse_filter(text: str | None) -> Filter | None:
    """Parses a filter; None and blank mean no filter, as in Artemis. BrokerError INVALID_FILTER names the position."""
    if text is None or not text.strip():
        return None
    try:
        return parse(text)
    except FilterError as error:
        raise BrokerError(INVALID_FILTER, f"AMQ229020: invalid filter {text!r}: {error}") from error


class QueueRegistry:
    """The queues by name and by binding id. `plans` writes the copies that a new queue starts with.

    `leased`: the number of queues that have ever had a lease of a log-view group.
    """

    def __init__(
        self,
        config: BrokerConfig,
        addresses: AddressRegistry,
        plans: PlanWriter,
        dispatcher: Dispatcher,
        bindings: BindingRegistry,
        ids: Ids,
        observers: list[Observer],
    ) -> None:
        self.config = config
        self.addresses = addresses
        self.plans = plans
        self.messages = plans.store
        self.command = plans.store.command
        self.dispatcher = dispatcher
        self.journal = plans.store.journal
        self.bindings = bindings
        self.ids = ids
        self.observers = observers
        self.by_name: dict[str, Queue] = {}
        self.by_id: dict[int, Queue] = {}
        self.leased: int = 0

    def find(self, name: str) -> Queue:
        """Returns the queue of that name or FQQN (see `get`); BrokerError QUEUE_DOES_NOT_EXIST."""
        queue = self.get(name)
        if queue is None:
            raise BrokerError(QUEUE_DOES_NOT_EXIST, f"AMQ229017: queue {name} does not exist")
        return queue

    def get(self, name: str) -> Queue | None:
        """Returns the queue of that name or FQQN, None if it does not exist. `::queue` is of any address."""
        at = name.find("::")
        if at < 0:
            return self.by_name.get(name)
        queue = self.by_name.get(name[at + 2 :])
        if queue is not None and at > 0 and queue.spec.address != name[:at]:
            return None
        return queue

    # -- leases -------------------------------------------------------------------------------------
    def lease(self, queue: Queue, lease: ReaderLease) -> None:
        """Adds or replaces a group's lease of a queue, which counts among the leased ones until it is deleted."""
        self.command.begin_change()
        if not queue.leased:
            self.leased += 1
        queue.lease(lease)

    def count_leased(self) -> None:
        """Counts the leased queues, at the end of the recovery."""
        self.leased = sum(1 for queue in self.by_name.values() if queue.leased)

    # -- creation -----------------------------------------------------------------------------------
    def check_client_queue(self, name: str) -> None:
        """Raises BrokerError ILLEGAL_STATE if a client may not create a queue of that name: a cluster needs it."""
        if name.startswith(f"{self.config.internal_naming_prefix}sf."):
            raise BrokerError(ILLEGAL_STATE, f"{name} is a name for the node's store-and-forward queues")

    def create(self, now: int, spec: QueueSpec, with_retained: bool = True) -> Queue:
        """Creates a queue, and its address if need be. BrokerError QUEUE_EXISTS and others.

        The queue begins with the messages that a retroactive address has kept. A queue that replaces one of another
        node does not (`with_retained` False).
        """
        self.delete_ownerless(now, spec.name)
        if spec.name in self.by_name:
            raise BrokerError(QUEUE_EXISTS, f"AMQ229019: queue {spec.name} already exists")
        if not spec.name or "::" in spec.name:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229216: {spec.name!r} is not a name for a queue")
        selector = parse_filter(spec.filter_text)
        self.command.begin_change()
        # The address of a client's queue is deleted with its last queue (ActiveMQServerImpl.createQueue).
        temporary = spec.temporary and spec.address not in self.addresses.by_name
        if self.addresses.temporaries.is_made_by(spec):
            self.addresses.temporaries.add(spec.name, spec.user or "")
        address = self.addresses.ensure(
            now,
            spec.address,
            spec.routing_type,
            not spec.internal and not spec.configuration_managed,
            self._needs_durable_address(spec),
        )
        queue = Queue(self.bindings.take_id(), spec, selector, self.ids.uuid().hex())
        queue.usage.create(now)
        queue.take_local(takes_local(self.config.virtual_topic_forms, queue.name))
        if address.name != self.config.management_notification_address:  # other members need each notification
            queue.limit_pending(pending_limit_of(spec, self.addresses.settings.match(address.name)))
        self.by_name[queue.name] = queue
        self.by_id[queue.id] = queue
        if self.config.persist_delivery_count_before_delivery:
            self.dispatcher.store_counts_first(queue)
        address.add_queue(queue)
        if temporary:
            address.temporary = True
        if spec.internal:
            address.internal = True
            self.addresses.apply_settings(address)
        address.swept = False
        sources = self._retained_for(spec, address) if with_retained else []
        if sources:
            self._store_with_copies(now, queue, sources)
        elif queue.durable:
            self.store(queue)
        for observer in self.observers:
            observer.on_queue_added(now, queue)
        return queue

    def _needs_durable_address(self, spec: QueueSpec) -> bool:
        """Returns True if the address that is created with the queue is stored in the journal.

        An address that keeps messages for later queues does, unless it is a temporary queue's own.
        """
        if spec.durable and not spec.temporary:
            return True
        return spec.name != spec.address and self.addresses.kept_messages(spec.address) > 0

    def _retained_for(self, spec: QueueSpec, address: Address) -> list[Retained]:
        """Returns what addresses have kept and a new queue begins with; of a wildcard, if it asks for that, all that it
        matches."""
        sources = [address]
        if self.addresses.settings.match(address.name).retroactive_on_request:
            if not spec.asks_retained:
                return []
            if self.addresses.wildcards.pattern(address.name) is not None:
                known = self.addresses.by_name.values()
                sources = [each for each in known if each.wildcards is not None and address in each.wildcards]
        return [each.retained for each in sources if each.retained is not None]

    def _store_with_copies(self, now: int, queue: Queue, sources: list[Retained]) -> None:
        """Writes the queue's record behind its copies: after a crash it has all of them, or does not exist."""
        settings = self.addresses.settings.match(queue.spec.address)
        age_ms, bytes_max = settings.retroactive_message_age_ms, settings.retroactive_message_bytes
        marked_only = settings.retroactive_marked_only
        copies = copy_retained(self.plans, now, queue, sources, age_ms, bytes_max, marked_only)
        if queue.durable:
            copies.batch.add(records.QUEUE, encode_queue(queue))
        lsn = self.plans.append(copies.batch, copies.plans, copies.references, None, 0)
        if queue.durable:
            queue.lsn = lsn

    def store(self, queue: Queue) -> None:
        """Writes the queue's definition to the journal."""
        queue.lsn = self.journal.append(records.QUEUE, encode_queue(queue))

    # -- changes ------------------------------------------------------------------------------------
    def update(self, now: int, name: str, changes: QueueChanges) -> Queue:
        """Changes the definition of a queue, durably (PostOfficeImpl.updateQueue); nothing changes on a BrokerError.

        Peers see a queue with another filter or routing type as a new binding with the same consumers.
        """
        queue = self.find(name)
        spec = queue.spec
        self._check_update(queue, changes)
        selector = queue.filter
        if changes.filter_text is not None:
            selector = parse_filter(changes.filter_text)
        self.command.begin_change()
        before = (spec.filter_text, spec.routing_type)
        address = self.addresses.by_name[spec.address]
        rebind = changes.routing_type is not None and changes.routing_type != spec.routing_type
        if rebind:
            address.remove_queue(queue)
        changed = changes.update(spec)
        queue.set_filter(selector)
        if rebind:
            address.add_queue(queue)
        if not changed:
            return queue
        configure(queue)
        if queue.special is not None:
            cut(self.messages, now, queue, queue.special, BLOCKS_A_TURN)
        self.messages.dispatches.mark_dirty(queue)
        if queue.durable:
            self.store(queue)
        if before != (spec.filter_text, spec.routing_type):
            for observer in self.observers:
                observer.on_queue_removed(now, queue)
                observer.on_queue_added(now, queue)
                for consumer in queue.consumers:
                    if not consumer.browse_only:
                        observer.on_consumer_added(now, consumer)
        return queue

    def _check_update(self, queue: Queue, changes: QueueChanges) -> None:
        """Raises BrokerError ILLEGAL_STATE for a change that is not allowed for a queue in use."""
        problem = changes.problem()
        if problem:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name}: {problem}")
        limit = changes.max_consumers
        count = queue.consumer_count()
        if limit is not None and 0 <= limit < count:
            raise BrokerError(
                ILLEGAL_STATE,
                f"AMQ229210: queue {queue.name} has {count} consumers: max-consumers cannot be {limit}",
            )
        if changes.routing_type is not None:
            check_routing_type(self.addresses.by_name[queue.spec.address], changes.routing_type)
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

    # -- deletion -----------------------------------------------------------------------------------
    def delete(self, now: int, name: str, why: str) -> None:
        """Deletes a queue and its messages, and closes its consumers, which are told `why`."""
        queue = self.find(name)
        self.command.begin_change()
        scheduled: list[Reference] = []
        for consumer in list(queue.consumers):
            consumer.close()
            consumer.endpoint.consumer_gone(consumer, why)
            self.remove_consumer(now, queue, consumer)
        if queue.held:
            self.messages.tasks.leave(now, queue)
        for _, reference in self.messages.scheduled.of_queue(queue):
            self.messages.take_from_queue(reference)
            scheduled.append(reference)
        self.messages.drop_all([*queue.delete(), *scheduled])
        del self.by_name[queue.name]
        del self.by_id[queue.id]
        if queue.leased:
            self.leased -= 1
        address = self.addresses.by_name.get(queue.spec.address)
        if address is not None:
            address.remove_queue(queue)
        if queue.durable:
            writer = Writer()
            writer.int64(queue.id)
            self.journal.append(records.QUEUE_DELETED, writer.getvalue())
        self.dispatcher.remove(queue)
        removal.forget(self.messages.paging, queue)
        for observer in self.observers:
            observer.on_queue_removed(now, queue)
        if address is not None:
            address.queue_left_at = now
            self.addresses.delete_with_queue(now, address)
            if address.local_count == 0 and self.addresses.temporaries.has(address.name):
                self.addresses.temporaries.remove(address.name)

    def delete_ownerless(self, now: int, name: str) -> None:
        """Deletes the queue of that name whose connection is closed, if a task has not come to it yet.

        Whoever creates a queue, or looks for one in order to create it, finds none of a connection that is gone.
        """
        queue = self.by_name.get(name)
        if queue is not None and queue.ownerless:
            self.delete(now, name, CLOSED)

    def remove_consumer(self, now: int, queue: Queue, consumer: QueueConsumer) -> None:
        """Removes a consumer from its queue, and tells the observers."""
        self.command.begin_change()
        remove_consumer(queue, consumer)
        queue.usage.remove_consumer(now)
        if not consumer.browse_only:
            for observer in self.observers:
                observer.on_consumer_removed(now, consumer)

    # -- the sweep ----------------------------------------------------------------------------------
    def sweep_at_start(self, now: int) -> None:
        """Deletes empty automatic queues and addresses, used or not: PostOfficeImpl.reapAddresses(true).

        A queue to which a prepared transaction has sent stays: its messages come with the commit.
        """
        for queue in list(self.by_name.values()):
            if (
                queue.spec.auto_delete
                and not queue.internal
                and queue.message_count == 0
                and not queue.consumers
                and not queue.pending
                and not queue.log.leases
            ):
                self.delete(now, queue.name, "auto-deleted at start")
        self.addresses.sweep_at_start(now)

    def sweep(self, now: int) -> None:
        """Deletes automatic queues and addresses that were found unused twice (address-queue-scan-period).

        Follows PostOfficeImpl.reapAddresses. A queue with a log-view group stays: it has a reader without a consumer.
        """
        for queue in list(self.by_name.values()):
            if not self._is_unused(now, queue):
                queue.usage.sweep(False)
            elif queue.usage.sweep(True):
                self.delete(now, queue.name, "auto-deleted")
        self.addresses.sweep(now)

    def _is_unused(self, now: int, queue: Queue) -> bool:
        spec = queue.spec
        if not spec.auto_delete or queue.internal:
            return False
        if queue.consumers or queue.pending or queue.log.leases:
            return False
        if 0 <= spec.auto_delete_message_count < queue.message_count:
            return False
        settings = self.addresses.settings.match(spec.address)
        skip_usage = settings.auto_delete_queues_skip_usage_check
        usage = queue.usage
        used = usage.was_used or queue.acknowledged > 0 or queue.expired > 0 or queue.killed > 0
        if not skip_usage and not used:
            return False
        since = usage.created_at if skip_usage else usage.consumer_left_at
        return now - since >= spec.auto_delete_delay_ms * 1_000_000


def encode_queue(queue: Queue) -> bytes:
    """Encodes the QUEUE record: definition, sequences, acknowledged messages, leases and lost ranges."""
    writer = Writer()
    writer.int64(queue.id)
    queue.spec.encode(writer)
    writer.simple_string(queue.incarnation)
    writer.int64(queue.next_sequence)
    writer.int64(queue.log.acked_through)
    writer.int32(len(queue.log.leases))
    for lease in queue.log.leases.values():
        lease.encode(writer)
    writer.int32(len(queue.log.lost))
    for start, end, why in queue.log.lost:
        writer.int64(start)
        writer.int64(end)
        writer.simple_string(why)
    for lease in queue.log.leases.values():
        lease.encode_history(writer)
    return writer.getvalue()
