"""What the broker does by the clock, and what it must hold at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.broker.large_check import validate_large
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.memory.large_body import OPEN_LOOK_NS, OPEN_TIMER
from atalanta.kernel.memory.memory import MESSAGE_MEMORY_BYTES, REFERENCE_MEMORY_BYTES
from atalanta.kernel.publish.reroute import scan_expired
from atalanta.kernel.queue.changes import changes_to
from atalanta.kernel.queue.delivery import scheduled, slow_consumers
from atalanta.kernel.queue.dispatch_gate import TIMER as GATE_TIMER
from atalanta.kernel.queue.paging.iteration import validate_paged
from atalanta.kernel.queue.priorities import LEVELS, level_of
from atalanta.kernel.queue.reference import DELIVERING, DONE, READY, SCHEDULED, PagedReference
from atalanta.kernel.queue.settle import SPENT_TIMER
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.registry import diverts, orphaned_duplicate_caches, queues, retroactive
from atalanta.kernel.transactions import xa

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.last_value_ring import Special
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message

EXPIRY_TIMER: Final = "kernel.expiry"
SWEEP_TIMER: Final = "kernel.sweep"
CACHE_SWEEP_MS: Final = 30_000  # where address-queue-scan-period is off
# Messages one turn of the search for expired ones looks at; the rest follows by a zero timer.
EXPIRY_SCAN_MAX: Final = 20_000


def create_configured(broker: Broker, now: int) -> None:
    """Addresses and queues of the configuration, and the addresses of management; what exists is kept."""
    config = broker.config
    diverts.deploy(broker)
    for name, multicast in (
        (config.management_address, False),
        (config.management_notification_address, True),
    ):
        if name not in broker.addresses:
            address = queues.create_address(broker, name, not multicast, multicast, False, False)
            address.internal = True
        broker.addresses[name].internal = True
        queues.apply_settings(broker, broker.addresses[name])
    for configured in config.addresses:
        known = broker.addresses.get(configured.name)
        if known is None:
            queues.create_address(
                broker, configured.name, configured.anycast, configured.multicast, False
            )
        elif (configured.anycast and known.add_routing_type(ANYCAST)) | (
            configured.multicast and known.add_routing_type(0)
        ):
            queues.store_address(broker, known)
        if known is not None and configured.queues:
            retroactive.keep(broker, now, known)  # at a restart, new queues get of it what there was
        for queue in configured.queues:
            spec = queue.spec()
            spec.take_defaults(broker.settings_of(spec.address))
            queue.changes().create(spec)
            try:
                _create_queue(broker, now, spec, queue.enabled)
            except BrokerError as error:
                broker.trace.event(
                    "configured_queue_refused", {"queue": spec.name, "why": error.text}
                )
    retroactive.deploy(broker, now)


def _create_queue(broker: Broker, now: int, spec: QueueSpec, enabled: bool | None) -> None:
    """`enabled` None: the file leaves it to an operator."""
    known = broker.queues.get(spec.name)
    if known is None:
        queues.create_queue(broker, now, spec)
        return
    held = known.spec
    was_managed = held.configuration_managed
    held.configuration_managed = True
    if held.address != spec.address or held.routing_type != spec.routing_type:
        broker.trace.event(
            "configured_queue_differs_unsupported",
            {
                "queue": spec.name,
                "why": "its address or routing type changed: delete the queue first",
            },
        )
    if held.last_value_key != spec.last_value_key:
        broker.trace.event(
            "configured_queue_differs_unsupported",
            {"queue": spec.name, "why": "its last-value key changed: delete the queue first"},
        )
    changes = changes_to(spec)
    changes.routing_type = None
    changes.enabled = enabled
    lsn = known.lsn
    queues.update_queue(broker, now, spec.name, changes)
    if known.durable and not was_managed and known.lsn == lsn:
        queues.store_queue(broker, known)


def arm(broker: Broker, now: int) -> None:
    config = broker.config
    broker.scheduled.start()
    slow_consumers.arm(broker, now)
    if broker.large.open:
        broker.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)
    if config.message_expiry_scan_period_ms > 0:
        broker.timers.set(EXPIRY_TIMER, now + config.message_expiry_scan_period_ms * 1_000_000)
    _arm_sweep(broker, now)


def _arm_sweep(broker: Broker, now: int) -> None:
    """Duplicate ids are swept also where addresses and queues are not."""
    period_ms = broker.config.address_queue_scan_period_ms
    if period_ms <= 0:
        period_ms = CACHE_SWEEP_MS
    broker.timers.set(SWEEP_TIMER, now + period_ms * 1_000_000)


def on_timer(broker: Broker, now: int, key: str) -> None:
    if key == slow_consumers.SLOW_TIMER:
        slow_consumers.on_timer(broker, now)
    elif key == xa.XA_TIMER:
        xa.on_timer(broker, now)
    elif key == scheduled.SCHEDULED_TIMER:
        scheduled.on_timer(broker, now)
    elif key == SPENT_TIMER:
        broker.spent.on_timer(now)
    elif key.startswith(GATE_TIMER):
        gated = broker.queues.get(key[len(GATE_TIMER) :])
        if gated is not None:
            broker.mark_dirty(gated)
    elif key == EXPIRY_TIMER:
        # Of a node that leaves another may have it too, where it expires: twice if it did here.
        left = not broker.stopping and scan_all_expired(broker, now)
        pause_ns = 0 if left else broker.config.message_expiry_scan_period_ms * 1_000_000
        broker.timers.set(key, now + pause_ns)
    elif key == OPEN_TIMER:
        _look_for_open_bodies(broker, now)
    elif key == SWEEP_TIMER:
        if broker.config.address_queue_scan_period_ms > 0:
            queues.sweep(broker, now)
        orphaned_duplicate_caches.sweep(broker, now)
        if broker.slow_consumers.period_s == 0:
            slow_consumers.arm(broker, now)  # settings may have been changed meanwhile
        _arm_sweep(broker, now)


def _look_for_open_bodies(broker: Broker, now: int) -> None:
    """Bodies of large messages whose transactions are gone go too."""
    large = broker.large
    used: dict[int, bool] = {}
    for session in broker.clients.sessions():
        _use(used, session.transaction.messages)
    for branch in broker.branches.by_xid.values():
        _use(used, branch.transaction.messages)
        _use(used, [plan.message for plan in branch.plans])
    large.forget_unused(used, broker.journal.last)
    large.on_durable(broker.journal.durable)
    if large.open:
        broker.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)


def _use(used: dict[int, bool], messages: list[Message]) -> None:
    for message in messages:
        if message.large is not None:
            used[message.large.file] = True


def scan_all_expired(broker: Broker, now: int, looks_max: int = EXPIRY_SCAN_MAX) -> bool:
    """One bounded step through all queues; True if the round is not finished."""
    if not broker.expiry_queues:
        broker.expiry_queues = [
            queue.name for queue in broker.queues.values() if not queue.internal
        ]
        broker.expiry_queues.reverse()
    budget = looks_max
    while broker.expiry_queues and budget > 0:
        name = broker.expiry_queues[len(broker.expiry_queues) - 1]
        queue = broker.queues.get(name)
        if queue is not None:
            budget -= 1 + scan_expired(broker, now, queue, budget)
        if queue is None or queue.expiry_scan == 0:
            broker.expiry_queues.pop()
    return bool(broker.expiry_queues)


def on_disk_usage(broker: Broker, used_fraction: float, free_bytes: int) -> None:
    """How full the disk is: above the configured limit all senders wait (FileStoreMonitor).

    min-disk-free counts if it is set, max-disk-usage otherwise; -1 switches either off.
    """
    config = broker.config
    if config.min_disk_free_bytes >= 0:
        full = free_bytes < config.min_disk_free_bytes
    else:
        full = 0 <= config.max_disk_usage < used_fraction * 100
    if full != broker.memory.disk_full:
        accounts = [address.account for address in broker.addresses.values()]
        broker.memory.set_disk_full(full, accounts)
        broker.trace.event(
            "disk_full" if full else "disk_has_room",
            {"used_percent": round(used_fraction * 100, 1), "free_bytes": free_bytes},
        )


def validate(broker: Broker) -> None:
    """Cross-links and counters agree. Slow: for tests and the simulator."""
    for queue in broker.queues.values():
        assert broker.queues_by_id[queue.id] is queue
        live = 0
        size = 0
        delivering = 0
        levels = [0] * LEVELS
        previous = 0
        _validate_scheduled(broker, queue)
        for _, reference in broker.scheduled.of_queue(queue):
            if reference.sequence == 0:
                live += 1
                size += reference.size
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
                assert reference.message.id in broker.messages, (
                    f"queue {queue.name}: message not stored"
                )
        _validate_notes(queue, levels)
        if queue.paged is not None:
            validate_paged(queue, queue.paged)
            live += queue.paged.count
            size += queue.paged.bytes
        if queue.special is not None:
            _validate_values(queue, queue.special)
        assert live == queue.message_count, (
            f"queue {queue.name}: {live} live, {queue.message_count} counted"
        )
        assert size == queue.bytes, f"queue {queue.name}: {size} bytes, {queue.bytes} counted"
        # What a transaction in doubt holds that came with a leaving node is counted before it is durable, and here.
        assert delivering <= queue.delivering_count <= delivering + queue.pending, (
            f"queue {queue.name}: delivering count"
        )
        assert previous < queue.next_sequence
    _validate_parked(broker)
    _validate_memory(broker)
    _validate_stored(broker)
    validate_large(broker)


def _validate_values(queue: Queue, special: Special) -> None:
    """Of each value at most one message waits in memory, the newest."""
    for reference in queue.references:
        value = special.value_of(reference.message)
        if value is not None and reference.state == READY:
            assert special.newest.get(value) is reference, f"queue {queue.name}: {value} is not the newest"
    for value, newest in special.newest.items():
        assert newest.state != DONE and queue.has(newest), f"queue {queue.name}: {value} is not there"


def _validate_notes(queue: Queue, levels: list[int]) -> None:
    """What it notes so that usual messages need no look. `levels`: live messages in its list by priority."""
    priorities = queue.priorities
    if priorities.mixed():
        assert levels == priorities.live, f"queue {queue.name}: priorities {priorities.live}, {levels} found"
    else:
        alike = sum(levels) if queue.internal else levels[priorities.only]
        assert sum(levels) == alike == priorities.alike, (
            f"queue {queue.name}: {priorities.alike} of priority {priorities.only}, {levels} found"
        )
    assert queue.leased == bool(queue.leases), f"queue {queue.name}: leases"
    assert queue.aside or not (queue.forced or queue.found_expired), f"queue {queue.name}: aside"


def _validate_scheduled(broker: Broker, queue: Queue) -> None:
    waiting = [reference for _, reference in broker.scheduled.of_queue(queue)]
    durable = [reference for reference in waiting if reference.durable]
    assert all(reference.state == SCHEDULED for reference in waiting)
    found = [len(waiting), sum(each.size for each in waiting)]
    found += [len(durable), sum(each.size for each in durable)]
    counted = [queue.scheduled_count, queue.scheduled_bytes]
    counted += [queue.scheduled_durable_count, queue.scheduled_durable_bytes]
    assert found == counted, f"queue {queue.name}: scheduled {found}, {counted} counted"


def _validate_memory(broker: Broker) -> None:
    """What is charged is what is there: once a message in clients' queues, once each store-and-forward queue."""
    used = 0
    count = 0
    holders: dict[int, int] = {}
    accounts: dict[int, int] = {}
    waiting = [reference for parked in broker.parked for reference in parked.references]
    for queue in broker.queues.values():
        waiting.extend(queue.live())
        for _, reference in broker.scheduled.of_queue(queue):
            if reference.sequence == 0:
                waiting.append(reference)
        if queue.paged is not None:
            waiting.extend(queue.paged.tail)
        accounts[id(queue.account)] = queue.account.bytes
    for reference in waiting:
        if reference.state == DONE:
            continue
        message = reference.message
        size = reference.size + MESSAGE_MEMORY_BYTES
        if not reference.queue.internal:
            held = holders.get(id(message), 0)  # what came from a page is an object of its own
            holders[id(message)] = held + 1
            size = REFERENCE_MEMORY_BYTES if held else size
            assert held < message.holders, f"message {message.id}: {message.holders} holders"
        used += size
        count += 1 if size > REFERENCE_MEMORY_BYTES else 0
    memory = broker.memory
    assert used == memory.used_bytes, f"memory: {used} != {memory.used_bytes}"
    assert count == memory.used_messages, f"messages: {count} != {memory.used_messages}"
    for charged in accounts.values():
        assert charged >= 0, "an address is charged less than nothing"


def _validate_parked(broker: Broker) -> None:
    waiting: dict[int, int] = {}
    lsn = 0
    for parked in broker.parked:
        assert parked.lsn >= lsn, "what waits for the journal is in its order"
        lsn = parked.lsn
        for reference in parked.references:
            waiting[reference.queue.id] = waiting.get(reference.queue.id, 0) + 1
    for branch in xa.list_prepared(broker):
        for plan in branch.plans:
            for planned in plan.routes:
                held = planned.queue.id
                waiting[held] = waiting.get(held, 0) + 1
    for queue in broker.queues.values():
        assert queue.pending == waiting.get(queue.id, 0), f"queue {queue.name}: pending"


def _validate_stored(broker: Broker) -> None:
    stored = 0
    for message_id, message in broker.messages.items():
        assert message.id == message_id
        assert message.references, f"message {message_id} is kept for no queue"
        for reference in message.references:
            assert reference.state != DONE and reference.durable, f"message {message_id}: reference"
        stored += message.size
    assert stored == broker.stored_bytes, f"stored: {stored} != {broker.stored_bytes}"
