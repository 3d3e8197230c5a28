"""Redelivery: an unacknowledged message returns to its queue, after a delay, or goes to the dead-letter address.

Follows QueueImpl.checkRedelivery and calculateRedeliveryDelay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.publish.returned_messages import ReturnedMessages
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.trace import trace_message
from atalanta.message.instant import later_ms

if TYPE_CHECKING:
    from atalanta.kernel.publish.dead_letters import DeadLetters
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository

MAX_FACTOR: Final = 10  # default of max-redelivery-delay, as a multiple of redelivery-delay
ADDRESS_DELAY: Final = -1  # the delay that the address settings give
DELAY_MS_MAX: Final = 10 * 365 * 86_400_000  # that a client may ask for
DAMAGED_DELAY_MS: Final = 3_600_000  # until a damaged message without dead-letter address is tried again
MOVE_COST: Final = 20  # of a message that moves or is discarded, in messages that only return
MASK: Final = (1 << 64) - 1
INFINITY: Final = float("inf")


class Redelivery:
    """Returns unacknowledged messages to their queues."""

    def __init__(
        self,
        mover: MessageMover,
        dead_letters: DeadLetters,
        settings: AddressSettingsRepository,
    ) -> None:
        self.mover = mover
        self.store = mover.store
        self.dead_letters = dead_letters
        self.settings = settings
        self.trace = mover.trace

    def redeliver(
        self,
        now: int,
        back: list[Reference],
        delayed: bool,
        delay_ms: int = ADDRESS_DELAY,
        counted: bool = True,
    ) -> None:
        """Returns each message to its old position in its queue, or to the dead-letter address after the last attempt.

        The delivery counts of durable messages are stored, unless the disk has only its reserve. `delayed`: the
        address' redelivery-delay applies. Messages of a closed consumer return at once (ServerConsumerImpl.close
        ignores the delay). `delay_ms` replaces the delay of the address. Not `counted`: nobody has seen the messages,
        so the latest delivery does not count. Of many messages the later ones return in later turns (ReturnedMessages).
        """
        returned = ReturnedMessages(self, now, back, delayed, delay_ms, counted)
        if len(back) == 1:  # its client is answered when the record of the delivery is durable
            returned.do(now, 1)
        else:
            self.store.tasks.add(now, returned)

    def give_back(self, now: int, reference: Reference, since: int, delayed: bool, delay_ms: int) -> int:
        """Returns one delivered message, as `redeliver`; returns what it cost beyond one step (kernel/tasks.py).

        The caller moves the queue's cursors back. Delays are counted from `since` (ns).
        """
        store = self.store
        queue = reference.queue
        if queue.special is not None and queue.special.refuses(queue, reference):
            store.discard([reference])
            return MOVE_COST
        if self.move_exhausted(now, reference):
            return MOVE_COST
        settings = self.settings.match(queue.spec.address)
        at_ms = 0
        if delay_ms > 0:
            at_ms = later_ms(since // 1_000_000, min(delay_ms, DELAY_MS_MAX))
        elif delay_ms < 0 and delayed and settings.redelivery_delay_ms > 0 and not queue.internal:
            message_id = int(reference.message.id)
            pause_ms = address_delay_ms(settings, message_id, reference.delivery_count)
            at_ms = later_ms(since // 1_000_000, pause_ms)
        counted = reference.delivery_count > 0 or at_ms > 0 or queue.counted_first
        if at_ms == 0 and store.memory.disk_exhausted:
            counted = False  # A consumer that fails again and again would use up the reserve.
        if reference.durable and counted:
            store.store_delivery_count(reference, at_ms)
        queue.take_back(reference)
        if at_ms == 0 and queue.special is not None:
            store.discard(queue.special.beyond_ring(queue))
        if at_ms > 0:
            store.scheduled.schedule(reference, at_ms)
        elif queue.open_consumers == 0 and not queue.unattended and not queue.has_match(reference.message):
            # A rolled-back branch whose consumer closed before.
            store.dispatches.note_unattended(queue)
        if self.trace.on:
            trace_message(self.trace, "trace_rolled_back", reference.message, queue.name)
        return 0

    def all_returned(self, queue: Queue) -> None:
        """Lets the queue deliver what has returned to it."""
        self.store.dispatches.mark_dirty(queue)
        if queue.spec.purge_on_no_consumers and queue.consumer_count() == 0:
            self.mover.purge(queue, "purged without consumers")

    def move_exhausted(self, now: int, reference: Reference) -> bool:
        """Moves the message to the dead-letter address if it has had its last attempt; returns True then."""
        if not self.is_exhausted(reference):
            return False
        self.dead_letters.move(now, reference)
        return True

    def is_exhausted(self, reference: Reference) -> bool:
        """Returns True if the message has had as many delivery attempts as its address allows."""
        queue = reference.queue
        attempts = self.settings.match(queue.spec.address).max_delivery_attempts
        # Not compared as an i32: the setting may be any number.
        return not queue.internal and 0 < attempts <= int(reference.delivery_count)

    def set_damaged_aside(self, now: int, reference: Reference) -> None:
        """Moves a message whose body is damaged to the dead-letter address, at its first delivery.

        Without that address, or in it, the message is delivered again after an hour: the disk may be mended by then,
        and consumers get the messages behind it.
        """
        queue = reference.queue
        target = self.settings.match(queue.spec.address).dead_letter_address
        if target is None or target == queue.spec.address:
            self.redeliver(now, [reference], True, DAMAGED_DELAY_MS)
        elif not queue.deleted and (reference.state == DELIVERING or queue.has(reference)):
            self.dead_letters.move(now, reference, "its body is damaged")


def address_delay_ms(settings: AddressSettings, message_id: int, delivery_count: int) -> int:
    """Returns the milliseconds until the next attempt; 0: at once.

    Artemis draws the collision-avoidance share at random. Here the share is a hash of the message id and the attempt:
    messages are spread as well, and a simulation runs the same each time.
    """
    first_ms = settings.redelivery_delay_ms
    if first_ms <= 0:
        return 0
    limit_ms = settings.max_redelivery_delay_ms
    if limit_ms is None or limit_ms < 0:
        limit_ms = first_ms * MAX_FACTOR
    attempts = max(delivery_count - 1, 0)
    try:
        grown = first_ms * settings.redelivery_delay_multiplier**attempts
    except OverflowError:
        return limit_ms
    factor = settings.redelivery_collision_avoidance_factor
    if grown == INFINITY:
        return limit_ms
    if factor > 0:
        grown += grown * factor * spread(message_id, delivery_count)
    return limit_ms if grown >= limit_ms else max(int(grown), 0)


def spread(message_id: int, delivery_count: int) -> float:
    """Returns a number in [-1, 1) that looks random (the finisher of splitmix64)."""
    mixed = (message_id * 0x9E3779B97F4A7C15 + delivery_count * 0xD1B54A32D192ED03) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    mixed ^= mixed >> 31
    return (mixed >> 11) / (1 << 52) - 1.0
