"""Expiry: expired messages go to the expiry address of their address.

A consumer's delivery meets most of them. The queues without consumers are scanned now and then
(message-expiry-scan-period). In a store-and-forward queue only what was surely not sent expires here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.delivery import expiry_scan
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.reference import DONE, Reference

if TYPE_CHECKING:
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.publish.dead_letter_resources import DeadLetterResources
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.repository import AddressSettingsRepository

EXPIRY_TIMER: Final = "kernel.expiry"
# Messages that one step of the scan examines; a zero timer starts the next step.
EXAMINED_MAX: Final = 20_000
# The cost of moving one expired message, in examined messages.
EXPIRY_COST: Final = 50


class Expiry:
    """Moves expired messages to their expiry addresses, and scans the queues for them.

    `unscanned`: names of the queues that the current scan has still to examine, the next one last. A stopped node scans
    nothing: another node may have the message too, and it would expire twice.
    """

    def __init__(
        self,
        mover: MessageMover,
        resources: DeadLetterResources,
        queues: QueueRegistry,
        settings: AddressSettingsRepository,
        observers: list[Observer],
        timers: Timers,
        scan_period_ms: int,
    ) -> None:
        self.mover = mover
        self.resources = resources
        self.queues = queues
        self.settings = settings
        self.observers = observers
        self.timers = timers
        self.scan_period_ms = scan_period_ms
        self.unscanned: list[str] = []
        self.stopped: bool = False

    def expire(self, now: int, references: list[Reference]) -> None:
        """Moves expired messages to the expiry address of the message's own address; drops them if none is set.

        Follows QueueImpl.expire. For a queue of a wildcard address, the message's address is not the queue's.
        """
        for reference in references:
            if reference.state == DONE:
                continue
            for observer in self.observers:
                observer.on_expired(now, reference)
            reference.queue.count_expired(1)
            address = reference.message.address or reference.queue.spec.address
            settings = self.settings.match(address)
            target = self.resources.expiry_target(settings, reference)
            if target is not None:
                self.resources.for_expiry(now, settings, reference.message)
            self.mover.move_to_address(
                now, reference, target, "expired", True, "", settings.dead_letter_expiry_ms
            )

    # -- the scan -------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        """Sets the timer of the first scan, if scans are configured."""
        if self.scan_period_ms > 0:
            self.timers.set(EXPIRY_TIMER, now + self.scan_period_ms * 1_000_000)

    def stop(self) -> None:
        """Ends the scans, because the node leaves or stops."""
        self.stopped = True

    def on_timer(self, now: int) -> None:
        """Runs the next step of the scan; the next scan follows after a period."""
        left = not self.stopped and self.scan(now)
        pause_ns = 0 if left else self.scan_period_ms * 1_000_000
        self.timers.set(EXPIRY_TIMER, now + pause_ns)

    def scan(self, now: int, examined_max: int = EXAMINED_MAX) -> bool:
        """Runs one bounded step of the scan over all queues; returns True if the scan is not finished."""
        queues = self.queues.by_name
        if not self.unscanned:
            self.unscanned = [each.name for each in queues.values() if not each.internal or each.log.sent_through >= 0]
            self.unscanned.reverse()
        budget = examined_max
        while self.unscanned and budget > 0:
            queue = queues.get(self.unscanned[len(self.unscanned) - 1])
            if queue is not None:
                budget -= 1 + self.scan_queue(now, queue, budget)
            if queue is None or queue.expiry_scan == 0:
                self.unscanned.pop()
        return bool(self.unscanned)

    def scan_queue(self, now: int, queue: Queue, examined_max: int) -> int:
        """Expires messages of a queue without consumers; returns the work done.

        The unit is one examined message; an expired message counts for EXPIRY_COST more.
        """
        if queue.active_lease() is not None:
            expiry_scan.restart(queue)
            return 0
        step = expiry_scan.scan(queue, now // 1_000_000, examined_max, examined_max // EXPIRY_COST + 1)
        if step.found:
            self.expire(now, step.found)
        if step.at_end and self._read_page(now, queue, len(step.found) > 0):
            expiry_scan.resume(queue)
        return step.examined + EXPIRY_COST * len(step.found)

    def _read_page(self, now: int, queue: Queue, wanted: bool) -> bool:
        """Reads the next page after all messages in memory have expired; returns true if a page was read.

        Without this, the messages in page files would stay there until the queue gets a consumer.
        """
        paged = paged_queue_of(queue)
        if paged is None or queue.message_count > paged.count:
            return False
        store = self.mover.store
        if not wanted and store.memory.full_for(queue.account):
            return False
        return store.paging.read_more(now, queue, True)
