"""The broker's periodic work, and the resources that its configuration creates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.memory.large_body import OPEN_LOOK_NS, OPEN_TIMER
from atalanta.kernel.publish.expiry import EXPIRY_TIMER
from atalanta.kernel.queue.changes import changes_to
from atalanta.kernel.queue.delivery import scheduled
from atalanta.kernel.queue.delivery.freed_references import FREED_TIMER
from atalanta.kernel.queue.dispatch_gate import TIMER as GATE_TIMER
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.sessions import slow_consumers
from atalanta.kernel.transactions import xa

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.message.message import Message

SWEEP_TIMER: Final = "kernel.sweep"
CACHE_SWEEP_MS: Final = 30_000  # if address-queue-scan-period is off


def create_configured(broker: Broker, now: int) -> None:
    """Creates configured addresses and queues, and the addresses of management; existing ones stay."""
    config = broker.config
    broker.diverts.deploy()
    for name, multicast in (
        (config.management_address, False),
        (config.management_notification_address, True),
    ):
        if name not in broker.addresses:
            broker.address_registry.create(now, name, not multicast, multicast, False, False)
        broker.addresses[name].internal = True
        broker.address_registry.apply_settings(broker.addresses[name])
    for configured in config.addresses:
        known = broker.addresses.get(configured.name)
        if known is None:
            broker.address_registry.create(
                now, configured.name, configured.anycast, configured.multicast, False
            )
        elif (configured.anycast and known.add_routing_type(ANYCAST)) | (
            configured.multicast and known.add_routing_type(0)
        ):
            broker.address_registry.store(known)
        if known is not None and configured.queues:
            broker.retroactive.keep(now, known)  # at a restart, new queues get the earlier messages of the address
        for queue in configured.queues:
            spec = queue.spec()
            spec.take_defaults(broker.settings.match(spec.address))
            queue.changes().create(spec)
            try:
                _create_queue(broker, now, spec, queue.enabled)
            except BrokerError as error:
                broker.trace.event(
                    "configured_queue_refused", {"queue": spec.name, "why": error.text}
                )
    broker.retroactive.deploy(now)


def _create_queue(broker: Broker, now: int, spec: QueueSpec, enabled: bool | None) -> None:
    """Creates a configured queue; `enabled` None leaves that setting to an operator."""
    known = broker.queues.get(spec.name)
    if known is None:
        broker.queue_registry.create(now, spec)
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
    broker.queue_registry.update(now, spec.name, changes)
    if known.durable and not was_managed and known.lsn == lsn:
        broker.queue_registry.store(known)


def arm(broker: Broker, now: int) -> None:
    broker.scheduled.start()
    broker.slow_consumers.arm(now)
    if broker.large.open:
        broker.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)
    broker.expiry.start(now)
    _arm_sweep(broker, now)


def _arm_sweep(broker: Broker, now: int) -> None:
    """Starts the sweep timer; duplicate ids are swept even if addresses and queues are not."""
    period_ms = broker.config.address_queue_scan_period_ms
    if period_ms <= 0:
        period_ms = CACHE_SWEEP_MS
    broker.timers.set(SWEEP_TIMER, now + period_ms * 1_000_000)


def on_timer(broker: Broker, now: int, key: str) -> None:
    if key == slow_consumers.SLOW_TIMER:
        broker.slow_consumers.on_timer(now)
    elif key == xa.XA_TIMER:
        xa.on_timer(broker, now)
    elif key == scheduled.SCHEDULED_TIMER:
        scheduled.on_timer(broker.store, now)
    elif key == FREED_TIMER:
        broker.log_views.freed.on_timer(now)
    elif key.startswith(GATE_TIMER):
        gated = broker.queues.get(key[len(GATE_TIMER) :])
        if gated is not None:
            broker.dispatches.mark_dirty(gated)
    elif key == EXPIRY_TIMER:
        broker.expiry.on_timer(now)
    elif key == OPEN_TIMER:
        _look_for_open_bodies(broker, now)
    elif key == SWEEP_TIMER:
        if broker.config.address_queue_scan_period_ms > 0:
            broker.queue_registry.sweep(now)
        broker.caches.sweep(now)
        if broker.slow_consumers.period_s == 0:
            broker.slow_consumers.arm(now)  # settings may have changed
        _arm_sweep(broker, now)


def _look_for_open_bodies(broker: Broker, now: int) -> None:
    """Drops the bodies of large messages whose transactions have ended."""
    large = broker.large
    used: dict[int, bool] = {}
    for session in broker.clients.sessions():
        for transaction in session.open_transactions():
            _use(used, transaction.messages)
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


def on_disk_usage(broker: Broker, used_fraction: float, free_bytes: int) -> None:
    """Handles the disk usage: above the configured limit all senders are blocked (FileStoreMonitor).

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
