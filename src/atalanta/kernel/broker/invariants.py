"""Assertions about the whole broker, for tests and the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.memory.memory import MESSAGE_MEMORY_BYTES, REFERENCE_MEMORY_BYTES
from atalanta.kernel.queue.delivery.dropped_references import DroppedReferences
from atalanta.kernel.queue.log_state import PAGE_FILE_DAMAGED
from atalanta.kernel.queue.paging.iteration import everything, validate_paged
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.retained_messages import retained_of
from atalanta.kernel.queue.priorities import LEVELS, level_of
from atalanta.kernel.queue.reference import DELIVERING, DONE, READY, SCHEDULED

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.queue.delivery.scheduled_messages import ScheduledMessages
    from atalanta.kernel.queue.last_value_ring import SpecialQueue
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.addresses import AddressRegistry


def validate(broker: Broker) -> None:
    """Checks that cross-links and counters agree. Slow: for tests and the simulator."""
    for queue in broker.queues.values():
        assert broker.queue_registry.by_id[queue.id] is queue
        live = 0
        size = 0
        delivering = 0
        levels = [0] * LEVELS
        previous = 0
        _validate_scheduled(broker.scheduled, queue)
        for _, reference in broker.scheduled.of_queue(queue):
            if reference.sequence == 0:
                live += 1
                size += reference.size
        finished = sum(each.state == DONE for each in queue.references[: queue.finished_front])
        assert finished == queue.finished_front, f"queue {queue.name}: not all at its front are finished"
        for reference in queue.references:
            assert reference.sequence > previous, f"queue {queue.name}: sequence order"
            previous = reference.sequence
            if reference.state == DONE:
                continue
            live += 1
            size += reference.size
            levels[level_of(reference.message.priority)] += 1
            if reference.state == DELIVERING:
                delivering += 1
            if reference.durable and not isinstance(reference, PagedReference):
                assert reference.message.id in broker.store.messages, (
                    f"queue {queue.name}: message not stored"
                )
        _validate_notes(queue, levels)
        paged = paged_queue_of(queue)
        if paged is not None:
            validate_paged(queue, paged)
            live += paged.count
            size += paged.bytes
        if queue.special is not None:
            _validate_values(queue, queue.special)
        assert live == queue.message_count, (
            f"queue {queue.name}: {live} live, {queue.message_count} counted"
        )
        assert size == queue.bytes, f"queue {queue.name}: {size} bytes, {queue.bytes} counted"
        # Messages of an in-doubt transaction shipped by a leaving node are counted before they are durable, and here.
        assert delivering <= queue.delivering_count <= delivering + queue.pending, (
            f"queue {queue.name}: delivering count"
        )
        assert previous < queue.next_sequence
        _validate_retained(queue)
    leased = sum(1 for queue in broker.queues.values() if queue.leased)
    assert leased == broker.queue_registry.leased, f"{leased} leased queues, {broker.queue_registry.leased} counted"
    prepared = [plan for branch in broker.branches.list_prepared() for plan in branch.plans]
    _validate_links(broker.address_registry)
    _validate_routes(broker.store, broker.queues, prepared)
    _validate_pending(broker.store, broker.queues, prepared)
    _validate_memory(broker.store, broker.queues)
    _validate_stored(broker.store)
    _validate_large(broker.store, broker.queues)


def _validate_links(registry: AddressRegistry) -> None:
    """Checks that each address knows every wildcard address that matches it, once, and that those have no list."""
    for address in [*registry.by_name.values(), *registry.implied.values()]:
        linked = address.wildcards or []
        matching = registry.wildcards.matching(address.name)
        assert len(linked) == len(matching) and all(wild in linked for wild in matching), (
            f"address {address.name}: linked with {[wild.name for wild in linked]}"
        )


def _validate_routes(store: MessageStore, queues: dict[str, Queue], prepared: list[RoutingPlan]) -> None:
    """Checks that no message has two routes to one queue (kernel/routing/router.py)."""
    for plan in prepared:
        ids = [planned.queue.id for planned in plan.routes]
        assert len(ids) == len(set(ids)), f"a prepared message has routes to {ids}"
    found: dict[tuple[int, int], bool] = {}
    references = [each for awaiting in store.awaiting for each in awaiting.references]
    for queue in queues.values():
        references.extend(everything(queue))
        references.extend(each for _, each in store.scheduled.of_queue(queue) if each.sequence == 0)
    for reference in references:
        key = (reference.queue.id, int(reference.message.id))
        assert key not in found or reference.state == DONE, (
            f"queue {reference.queue.name} has message {reference.message.id} twice"
        )
        found[key] = True
        for start in range(8, len(reference.route_to), 8):
            binding_id = reference.route_to[start : start + 8]
            assert binding_id not in [reference.route_to[at : at + 8] for at in range(0, start, 8)], (
                f"queue {reference.queue.name}: message {reference.message.id} names a binding twice"
            )


def _validate_retained(queue: Queue) -> None:
    """Checks that the retained messages are those of the ranges, in order."""
    log = queue.log
    retained = retained_of(queue)
    if retained is None:
        return
    end = retained.end()
    assert end == log.acked_through, f"queue {queue.name}: retained to {end}, not {log.acked_through}"
    found = retained.sequences()
    assert found == sorted(set(found)), f"queue {queue.name}: order of retained messages"
    assert all(retained.released_through < sequence <= end for sequence in found)
    damaged = any(why == PAGE_FILE_DAMAGED for _, _, why in log.lost)
    assert damaged or len(found) == retained.messages(), (
        f"queue {queue.name}: {len(found)} retained, {retained.messages()} counted"
    )


def _validate_values(queue: Queue, special: SpecialQueue) -> None:
    """Checks that of each last value only the newest waits in memory, and what leaves at the end of the batch."""
    for reference in queue.references:
        value = special.value_of(reference.message)
        if value is not None and reference.state == READY and reference not in special.outdated:
            assert special.newest.get(value) is reference, f"queue {queue.name}: {value} is not the newest"
    for value, newest in special.newest.items():
        assert newest.state != DONE and queue.has(newest), f"queue {queue.name}: {value} is not there"


def _validate_notes(queue: Queue, levels: list[int]) -> None:
    """Checks the queue's flags that spare usual messages a check. `levels`: live messages in its list by priority."""
    priorities = queue.priorities
    if priorities.mixed():
        assert levels == priorities.live, f"queue {queue.name}: priorities {priorities.live}, {levels} found"
    else:
        alike = sum(levels) if queue.internal else levels[priorities.only]
        assert sum(levels) == alike == priorities.alike, (
            f"queue {queue.name}: {priorities.alike} of priority {priorities.only}, {levels} found"
        )
    assert queue.leased == bool(queue.log.leases), f"queue {queue.name}: leases"
    assert queue.aside or not (queue.drains or queue.found_expired), f"queue {queue.name}: aside"
    grouped = queue.groups is not None
    assert queue.plain == (queue.is_plain() and not grouped), f"queue {queue.name}: plain"
    assert queue.plain or not queue.alike, f"queue {queue.name}: alike"
    groupless = grouped or queue.keeps_messages or queue.internal
    assert not (queue.groupable and groupless), f"queue {queue.name}: groupable"
    assert not (queue.unattended and queue.internal), f"queue {queue.name}: unattended"
    assert not queue.deleted and queue.held >= 0, f"queue {queue.name}: deleted {queue.deleted}, held {queue.held}"


def _validate_scheduled(scheduled: ScheduledMessages, queue: Queue) -> None:
    waiting = [reference for _, reference in scheduled.of_queue(queue)]
    durable = [reference for reference in waiting if reference.durable]
    assert all(reference.state == SCHEDULED for reference in waiting)
    found = [len(waiting), sum(each.size for each in waiting)]
    found += [len(durable), sum(each.size for each in durable)]
    counted = [queue.scheduled_count, queue.scheduled_bytes]
    counted += [queue.scheduled_durable_count, queue.scheduled_durable_bytes]
    assert found == counted, f"queue {queue.name}: scheduled {found}, {counted} counted"


def _validate_memory(store: MessageStore, queues: dict[str, Queue]) -> None:
    """Checks the memory charges: a message counts once for all clients' queues, once per store-and-forward queue."""
    used = 0
    count = 0
    holders: dict[int, int] = {}
    accounts: dict[int, int] = {}
    waiting = [reference for awaiting in store.awaiting for reference in awaiting.references]
    for queue in queues.values():
        waiting.extend(queue.live())
        for _, reference in store.scheduled.of_queue(queue):
            if reference.sequence == 0:
                waiting.append(reference)
        paged = paged_queue_of(queue)
        if paged is not None:
            waiting.extend(paged.tail)
        accounts[id(queue.account)] = queue.account.bytes
    waiting = [reference for reference in waiting if reference.state != DONE]
    for task in store.tasks.waiting:
        if isinstance(task, DroppedReferences):
            waiting.extend(task.references)
    for reference in waiting:
        message = reference.message
        size = reference.size + MESSAGE_MEMORY_BYTES
        if not reference.queue.internal:
            held = holders.get(id(message), 0)  # a message read from a page is an object of its own
            holders[id(message)] = held + 1
            size = REFERENCE_MEMORY_BYTES if held else size
            assert held < message.holders, f"message {message.id}: {message.holders} holders"
        used += size
        count += 1 if size > REFERENCE_MEMORY_BYTES else 0
    memory = store.memory
    assert used == memory.used_bytes, f"memory: {used} != {memory.used_bytes}"
    assert count == memory.used_messages, f"messages: {count} != {memory.used_messages}"
    for charged in accounts.values():
        assert charged >= 0, "an address is charged less than nothing"


def _validate_pending(
    store: MessageStore, queues: dict[str, Queue], prepared: list[RoutingPlan]
) -> None:
    """Checks the counts of messages that are not in their queues yet. `prepared`: the sends of prepared branches."""
    waiting: dict[int, int] = {}
    lsn = 0
    for awaiting in store.awaiting:
        assert awaiting.lsn >= lsn, "references await the journal in its order"
        lsn = awaiting.lsn
        for reference in awaiting.references:
            waiting[reference.queue.id] = waiting.get(reference.queue.id, 0) + 1
    for plan in prepared:
        for planned in plan.routes:
            held = planned.queue.id
            waiting[held] = waiting.get(held, 0) + 1
    for queue in queues.values():
        assert queue.pending == waiting.get(queue.id, 0), f"queue {queue.name}: pending"


def _validate_stored(store: MessageStore) -> None:
    stored = 0
    for message_id, message in store.messages.items():
        assert message.id == message_id
        assert message.references, f"message {message_id} is kept for no queue"
        for reference in store.references_of(message):
            retained = 0 < reference.sequence <= reference.queue.log.acked_through
            needed = reference.state != DONE or retained
            assert needed and reference.durable, f"message {message_id}: reference"
        stored += message.size
    assert stored == store.stored_bytes, f"stored: {stored} != {store.stored_bytes}"


def _validate_large(store: MessageStore, queues: dict[str, Queue]) -> None:
    """Checks that every referenced body is known, and held at least as often as it is referenced."""
    large = store.large
    waiting = [reference for awaiting in store.awaiting for reference in awaiting.references]
    for queue in queues.values():
        waiting.extend(queue.references)
        for _, reference in store.scheduled.of_queue(queue):
            if reference.sequence == 0:
                waiting.append(reference)
        paged = paged_queue_of(queue)
        if paged is not None:
            waiting.extend(paged.tail)
    held: dict[int, int] = {}
    for reference in waiting:
        body = reference.message.large
        if body is None or reference.state == DONE or isinstance(reference, PagedReference):
            continue
        held[body.file] = held.get(body.file, 0) + 1
    for page in store.paging.pages.values():
        for body in page.bodies.values():
            held[body.file] = held.get(body.file, 0) + 1
    for file, count in held.items():
        known = large.bodies.get(file)
        assert known is not None, f"large message file {file} is gone"
        assert known.holders >= count, f"file {file}: {known.holders} holders, {count} seen"
    assert large.unwritten == sum(body.unwritten for body in large.bodies.values())
