"""A queue: its messages in order, and its consumers.

One list holds all references in ascending sequence; a finished reference stays as a tombstone until the list is
trimmed. That list serves competing consumers, selectors (each consumer has a position of its own), browsers and the log
view. The queue must not use journals, sockets or other queues. The dispatcher (kernel/queue/delivery/dispatcher.py)
delivers its messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.kernel.memory.address_memory import Account
from atalanta.kernel.queue.last_value_ring import SpecialQueue, special_of
from atalanta.kernel.queue.log_state import LogState
from atalanta.kernel.queue.message_groups import NO_SEQUENCE, MessageGroups
from atalanta.kernel.queue.priorities import LEVELS, Priorities, level_of
from atalanta.kernel.queue.reference import DELIVERING, DONE, READY, SCHEDULED, Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.queue.usage import Usage
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.log.lease import ReaderLease
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.paging.paged_messages import PagedMessages
    from atalanta.kernel.queue.pending_limit import PendingLimit
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.message.selector.selector import Filter

# Tombstones before a trim. Few: each keeps its message in memory, in every one of thousands of queues.
TRIM_MIN: Final = 16
# Finished references before `trim_front`, and their share of the list (one in so many), since the rest is moved.
FINISHED_MIN: Final = 4
FINISHED_SHARE: Final = 6


class Queue:
    """A queue's state. The sequences of `references` ascend; no reference below `cursor` is READY.

    Fields that every message reads or changes come first, the flags behind them. With thousands of queues, the time
    depends on the number of cache lines per message (bench/README.md, scaling).

    The flags, and what always holds (kernel/broker/invariants.py checks it between inputs):

    `dirty`: the queue is in the `DispatchList`, exactly once, and is dispatched at the end of the batch of inputs
        (delivery/dispatch_list.py). Only queues with consumers get there.
    `unattended`: it is in the other list there: it got a message and has no consumer that takes everything, so the
        cluster may redistribute it. Never true for an internal queue.
    `plain`: a delivery needs no further check: neither `special` nor `keeps_messages` nor `counted_first` (`is_plain`),
        and no `groups`.
    `alike`: it is plain, and all consumers have one priority and take every message: they are offered messages in turn,
        and nobody looks at selectors (consumers.py, `arrange`).
    `groupable`: the next message with a group id makes `groups`. False as long as they are there, and in queues without
        groups: internal, exclusive and non-destructive ones, and with group-buckets 0.
    `closable`: it refuses messages at times: its definition purges it without consumers, or disables it
        (kernel/routing/bindings.py). Then no message takes the short path.
    `counted_first`: the journal has the count of a delivery before the message goes out. Excludes `plain`.
    `leased`: `log` has leases, so no message is forgotten before its readers have it. A lease that is over stays one.
    `aside`: `found_expired` or `drains` is not empty: the broker looks at the queue although nothing was delivered.
    `keeps_messages`: acknowledging removes nothing. Excludes `plain` and `groupable`.
    `paused`, and `held` > 0: nothing is delivered, whatever else is true.
    `ownerless`: its connection is closed, and a task deletes it; `deleted`: it is in no registry any more.
    """

    def __init__(self, queue_id: int, spec: QueueSpec, selector: Filter | None, incarnation: str) -> None:
        self.filter = selector
        self.special: SpecialQueue | None = special_of(spec)
        self.account: Account = Account()  # of its address, see Address.add_queue
        self.paged: PagedMessages | None = None  # those outside of memory: kernel/queue/paging/paging.py
        self.next_sequence: int = 1
        self.pending: int = 0
        self.references: list[Reference] = []
        self.priorities: Priorities = Priorities()
        self.message_count: int = 0
        self.added: int = 0
        self.bytes: int = 0
        # Consumers that take every message: neither browsers nor selective.
        self.open_consumers: int = 0
        self.claims: int = 0  # consumers that want the queue for themselves
        self.browsers: int = 0
        self.consumers: list[QueueConsumer] = []
        self.turns: list[QueueConsumer] = self.consumers  # those that are offered messages, see arrange
        self.cursor: int = 1
        self.level_turns: list[int] = []  # by level: the consumer with the next turn, see arrange
        self.delivering_count: int = 0
        self.acknowledged: int = 0
        self.tombstones: int = 0
        self.finished_front: i64 = 0  # references at the front that are known to be finished, see `trim_front`
        self.deliveries: list[tuple[QueueConsumer, Reference]] | None = None  # None without observers
        self.durable = spec.durable
        self.internal = spec.internal
        self.deleted: bool = False
        self.ownerless: bool = False  # its connection is closed, and its deletion waits in a task
        self.dirty: bool = False
        self.closable: bool = False  # refuses messages at times, see kernel/routing/bindings.py
        self.groupable: bool = False
        self.unattended: bool = False
        self.paused: bool = False
        self.alike: bool = False  # all consumers take all, in turn
        self.plain: bool = True  # delivers without further checks, see `is_plain`
        self.counted_first: bool = False  # the journal has a delivery's count before the message goes out
        self.leased: bool = False  # `log` has leases
        self.aside: bool = False  # `found_expired` or `drains` is not empty
        self.held: int = 0  # reasons for which nothing is delivered: see `hold`
        self.keeps_messages: bool = False  # non-destructive: acknowledging removes nothing
        self.local_only: bool = False  # gets nothing that a bridge of a network brings to its topic
        self.durable_through: int = 0  # highest sequence of a durable message: a log view shows no more
        self.acknowledging: list[int] = []  # message ids: MessageStore.acknowledge_one
        self.id = queue_id
        self.spec = spec
        self.name = spec.name
        self.incarnation = incarnation
        self.lsn: int = 0
        self.scheduled_count: int = 0  # part of message_count: their delivery time has not come
        self.scheduled_bytes: int = 0
        self.scheduled_durable_count: int = 0
        self.scheduled_durable_bytes: int = 0
        self.expired: int = 0
        self.killed: int = 0
        self.usage: Usage = Usage()
        self.log: LogState = LogState()
        self.found_expired: list[Reference] = []
        # Drains that wait until everything deliverable was sent: (consumer, token).
        self.drains: list[tuple[QueueConsumer, int, int]] = []
        self.expiry_scan: int = 0  # sequence at which the expiry scan continues
        self.level_ends: list[int] = []  # see arrange
        self.pending_limit: PendingLimit | None = None  # of some subscriptions that are not durable
        self.groups: MessageGroups | None = None  # from the first message with a group id on
        self._take_flags()

    def _take_flags(self) -> None:
        """Sets the flags that the queue's definition decides."""
        spec = self.spec
        self.keeps_messages = spec.non_destructive
        self.closable = spec.purge_on_no_consumers or not spec.enabled
        # In a queue whose consumers all get every message, a group cannot belong to one consumer.
        self.groupable = (
            not self.internal
            and not spec.exclusive
            and not spec.non_destructive
            and spec.group_buckets != 0
        )
        self.groups = None
        self.plain = self.is_plain()

    def is_plain(self) -> bool:
        """Returns true if the queue delivers without further checks, while it has no groups."""
        return self.special is None and not self.keeps_messages and not self.counted_first

    def store_counts_first(self) -> None:
        """Makes each delivery wait for the journal's record of its count."""
        self.counted_first = True
        self.plain = False

    def routing_name(self) -> str:
        """Returns the routing name; an address' anycast queues have one, and share messages (LocalQueueBinding)."""
        return self.spec.address if self.spec.routing_type == ANYCAST else self.name

    # -- sequences -----------------------------------------------------------------------------
    def index_of(self, sequence: int) -> int:
        """Returns the index of the first reference whose sequence is >= `sequence` (len(references) if none)."""
        references = self.references
        high = len(references)
        if high == 0:
            return 0
        guess = sequence - references[0].sequence
        if guess <= 0:
            return 0
        if guess < high and references[guess].sequence == sequence:
            return guess
        if references[high - 1].sequence < sequence:
            return high
        low = 0
        while low < high:
            middle = (low + high) // 2
            if references[middle].sequence < sequence:
                low = middle + 1
            else:
                high = middle
        return low

    def has(self, reference: Reference) -> bool:
        """Returns true if this reference is in memory; false for a copy of a message in a page file."""
        index = self.index_of(reference.sequence)
        return index < len(self.references) and self.references[index] is reference

    def take_sequence(self) -> int:
        sequence = self.next_sequence
        self.next_sequence = sequence + 1
        return sequence

    def take_sequences(self, count: int) -> int:
        """Takes so many sequences; returns the first."""
        first = self.next_sequence
        self.next_sequence = first + count
        return first

    # -- content --------------------------------------------------------------------------------
    def add(self, reference: Reference) -> None:
        """Appends a reference whose message is stable (durable, or not meant to be)."""
        self.references.append(reference)
        if reference.durable:
            self.durable_through = reference.sequence
        priorities = self.priorities
        level = level_of(reference.message.priority)
        if level != priorities.only and not priorities.mixed() and not self.internal:
            self._mix_priorities(level)
        priorities.count(level)
        if self.groupable and reference.message.special and reference.message.grouped:
            self.start_groups()
        self.message_count += 1
        self.added += 1
        self.bytes += reference.size

    def _mix_priorities(self, level: int) -> None:
        """Handles the first message of another priority: from here on each level has its cursors."""
        priorities = self.priorities
        if priorities.alike == 0:
            priorities.only = level
            return
        priorities.mix(self.cursor)
        for consumer in self.consumers:
            consumer.cursors = [consumer.position] * LEVELS

    def _settle_positions(self) -> None:
        """Sets each consumer's position to its cursor of the one level that is left."""
        only = self.priorities.only
        for consumer in self.consumers:
            if not consumer.shares and consumer.cursors:
                consumer.position = max(consumer.position, consumer.cursors[only])

    def count_in(self, reference: Reference) -> None:
        """Counts a message of the queue that is not in its list yet."""
        if reference.durable:
            self.durable_through = reference.sequence
        self.message_count += 1
        self.added += 1
        self.bytes += reference.size

    def count_unsequenced(self, reference: Reference, sign: int) -> None:
        """Counts a scheduled message without a sequence in (1) or out (-1)."""
        self.message_count += sign
        self.added += sign
        self.bytes += sign * reference.size

    def enter(self, reference: Reference) -> None:
        """Adds a reference that was counted in to the list, normally behind all others."""
        references = self.references
        priorities = self.priorities
        level = level_of(reference.message.priority)
        if level != priorities.only and not priorities.mixed() and not self.internal:
            self._mix_priorities(level)
        priorities.count(level)
        if self.groupable and reference.message.special and reference.message.grouped:
            self.start_groups()
        if references and references[len(references) - 1].sequence > reference.sequence:
            references.insert(self.index_of(reference.sequence), reference)
            self.finished_front = 0
            self.give_back(reference)
        else:
            references.append(reference)

    def count_scheduled(self, reference: Reference, sign: int) -> None:
        """Counts a scheduled message in (1) or out (-1)."""
        size = sign * reference.size
        self.scheduled_count += sign
        self.scheduled_bytes += size
        if reference.durable:
            self.scheduled_durable_count += sign
            self.scheduled_durable_bytes += size

    def remove(self, reference: Reference) -> None:
        """Removes a finished reference: acknowledged, expired, moved or purged."""
        if self.special is not None:
            self.special.removed(reference)
        if reference.state == DELIVERING:
            self.delivering_count -= 1
        elif reference.state == SCHEDULED:
            self.count_scheduled(reference, -1)
            if reference.sequence == 0:
                reference.state = DONE
                self.message_count -= 1
                self.bytes -= reference.size
                return
        reference.state = DONE
        reference.consumer = None
        if self.priorities.uncount(level_of(reference.message.priority)):
            self._settle_positions()
        self.message_count -= 1
        self.bytes -= reference.size
        self.tombstones += 1
        if self.tombstones >= TRIM_MIN and self.tombstones * 2 > len(self.references):
            self.references = [kept for kept in self.references if kept.state != DONE]
            self.tombstones = 0
            self.finished_front = 0

    def trim_front(self) -> None:
        """Removes finished references at the front while the CPU caches them: 2.1 to 1.5 us (bench/README.md).

        What is behind them is moved. So they go when they are a share of the list: with several consumers they end
        one by one, between others that are not finished.
        """
        references = self.references
        size: i64 = len(references)
        if self.tombstones * FINISHED_SHARE < size:
            return
        finished = self.finished_front
        while finished < size and references[finished].state == DONE:
            finished += 1
        if finished * FINISHED_SHARE < size:
            self.finished_front = finished
        else:
            del references[:finished]
            self.finished_front = 0
            self.tombstones = max(0, self.tombstones - int(finished))

    def start_groups(self) -> None:
        """Handles the first message with a group id: from here on each consumer has a position of its own."""
        self.groupable = False
        self.plain = False
        self.alike = False
        self.groups = MessageGroups(self.spec)
        for consumer in self.consumers:
            consumer.shares = False

    def rewind(self, sequence: int) -> None:
        """Moves consumers back to `sequence`: messages from there on may be for other consumers now."""
        if sequence == NO_SEQUENCE:
            return
        for consumer in self.consumers:
            if not consumer.browse_only:
                consumer.rewind(sequence)

    def give_back(self, reference: Reference) -> None:
        """Makes a delivered reference deliverable again, at its old position."""
        if reference.state == DELIVERING:
            self.delivering_count -= 1
        reference.state = READY
        reference.consumer = None
        if self.special is not None:
            self.special.record_given_back(reference)
        sequence = reference.sequence
        if sequence < self.cursor:
            self.cursor = sequence
        for consumer in self.consumers:
            if sequence < consumer.position and not consumer.browse_only:
                consumer.position = sequence
        if self.priorities.mixed():
            level = level_of(reference.message.priority)
            self.priorities.cursors[level] = min(sequence, self.priorities.cursors[level])
            for consumer in self.consumers:
                if not consumer.browse_only:
                    consumer.cursors[level] = min(sequence, consumer.cursors[level])

    def take_back(self, reference: Reference) -> None:
        """Makes a delivered reference deliverable again; `return_to` follows before the next delivery."""
        if reference.state == DELIVERING:
            self.delivering_count -= 1
        reference.state = READY
        reference.consumer = None
        if self.special is not None:
            self.special.record_given_back(reference)

    def return_to(self, sequence: int) -> None:
        """Moves the cursors back: messages from `sequence` on may be deliverable again."""
        if sequence < self.cursor:
            self.cursor = sequence
        self.rewind(sequence)
        cursors = self.priorities.cursors
        for level in range(len(cursors)):
            if sequence < cursors[level]:
                cursors[level] = sequence

    def hold(self, change: int) -> None:
        """Counts a reason (1) for which nothing is delivered, or the end of one (-1): messages are on their way back.
        """
        self.held += change

    def live(self) -> list[Reference]:
        """Returns the references that are not finished, in order (a copy)."""
        return [reference for reference in self.references if reference.state != DONE]

    # -- consumers ------------------------------------------------------------------------------
    def consumer_count(self) -> int:
        """Returns the number of consumers that take messages; browsers are not counted."""
        return len(self.consumers) - self.browsers

    def count_consumer(self, consumer: QueueConsumer, change: int) -> None:
        """Counts a consumer that was added (1) or removed (-1)."""
        if consumer.browse_only:
            self.browsers += change
            return
        if consumer.selector is None:
            self.open_consumers += change
        if consumer.claims():
            self.claims += change

    def has_match(self, message: Message) -> bool:
        """Returns true if a local consumer, or an active log-view lease, takes the message (BindingsImpl)."""
        for consumer in self.consumers:
            if not consumer.browse_only and (
                consumer.selector is None or consumer.selector.matches(message)
            ):
                return True
        return self.active_lease() is not None

    def lease(self, lease: ReaderLease) -> None:
        """Adds or replaces the lease of a log-view group."""
        self.log.leases[lease.group] = lease
        self.leased = True

    def active_lease(self) -> ReaderLease | None:
        """Returns the lease that pins the queue; None without one."""
        return self.log.active_lease() if self.leased else None

    def stable_end(self) -> int:
        """Returns the last sequence a log view may show. All up to it is durable: sequences follow the journal's order.

        A sequence that only a non-durable message has is not shown: after a crash it is given again.
        """
        return self.log.stable_end(self.durable_through)

    # -- state ----------------------------------------------------------------------------------
    def pause(self) -> None:
        """Stops the delivery to consumers (QueueImpl.pause)."""
        self.paused = True

    def resume(self) -> None:
        """Continues the delivery to consumers."""
        self.paused = False

    def take_local(self, only: bool) -> None:
        """Sets whether the queue gets nothing that a bridge of a network brings to its topic."""
        self.local_only = only

    def limit_pending(self, limit: PendingLimit | None) -> None:
        """Sets the limit of messages that wait beyond the prefetch, of a new queue."""
        self.pending_limit = limit

    def set_filter(self, selector: Filter | None) -> None:
        """Replaces the filter, as an update of the queue does."""
        self.filter = selector

    def reconfigure(self) -> None:
        """Applies the changed definition to the queue and its messages; `configure` follows for the consumers."""
        spec = self.spec
        if self.special is None:
            self.special = special_of(spec)
            if self.special is not None:
                self.special.gate = None  # the gate was open before the change
        if self.special is not None:
            self.special.reconfigure(spec, self.consumer_count() > 0)
            if spec.non_destructive:
                self.cursor = 1
        self._take_flags()
        for reference in self.references:
            if self.groupable and reference.state != DONE and reference.message.grouped:
                self.start_groups()

    def take_acknowledging(self) -> list[int]:
        """Returns the ids of acknowledged messages that have no record yet, and forgets them."""
        message_ids = self.acknowledging
        self.acknowledging = []
        return message_ids

    def delete(self) -> list[Reference]:
        """Marks the queue as deleted and empties it; returns its references, which are finished and still charged."""
        self.deleted = True
        found = self.live()
        self.references = []
        self.tombstones = 0
        self.finished_front = 0
        self.message_count -= len(found)
        for reference in found:
            if reference.state == DELIVERING:
                self.delivering_count -= 1
            self.bytes -= reference.size
            reference.state = DONE
            reference.consumer = None
        return found

    def restore(self, lsn: int, next_sequence: int, acked_through: int) -> None:
        """Takes over the state in the queue's own record, at recovery."""
        self.lsn = lsn
        self.next_sequence = next_sequence
        self.log.acked_through = acked_through

    def restore_sequences(self, now: int, last: int) -> None:
        """Continues behind all sequences of the journal (`last` the highest), at recovery."""
        self.next_sequence = max(self.next_sequence, last + 1, self.log.acked_through + 1)
        self.log.shown_through = self.next_sequence - 1
        self.usage.restore(now)

    def end_restore(self, in_order: bool) -> None:
        """Ends the recovery: everything restored is durable, and does not count as added in this life.

        Not `in_order`: the references are put into their order, and finished ones go.
        """
        if not in_order:
            self.references = self.live()
            self.references.sort(key=by_sequence)
            self.tombstones = 0
            self.finished_front = 0
        self.durable_through = self.next_sequence - 1
        self.added = 0

    def note_durable(self, sequence: int) -> None:
        """Records that all messages up to `sequence` are durable: a log view may show them."""
        self.durable_through = max(self.durable_through, sequence)

    # -- counters -------------------------------------------------------------------------------
    def count_pending(self, count: int) -> None:
        """Counts messages that have their sequence and are not in the queue yet; negative: they entered it."""
        self.pending += count

    def count_acknowledged(self, count: int) -> None:
        self.acknowledged += count

    def count_expired(self, count: int) -> None:
        self.expired += count

    def count_killed(self, count: int) -> None:
        self.killed += count

    def reset_counters(
        self, added: bool = False, acknowledged: bool = False, expired: bool = False, killed: bool = False
    ) -> None:
        """Sets the named totals to 0 (QueueControl.resetMessagesAdded and the others)."""
        self.added = 0 if added else self.added
        self.acknowledged = 0 if acknowledged else self.acknowledged
        self.expired = 0 if expired else self.expired
        self.killed = 0 if killed else self.killed

    # -- delivery -------------------------------------------------------------------------------
    def end(self) -> int:
        references = self.references
        return references[len(references) - 1].sequence + 1 if references else 0

    def reserve(self, reference: Reference, delivery_count: int) -> None:
        """Reserves a waiting reference: no consumer gets the message until it is given back."""
        reference.state = DELIVERING
        reference.delivery_count = delivery_count
        self.delivering_count += 1

    def skip_taken(self) -> int:
        """Moves the cursor past references that are not waiting; returns the index of the first that is."""
        references = self.references
        index = self.index_of(self.cursor)
        while index < len(references) and references[index].state != READY:
            self.cursor = references[index].sequence + 1
            index += 1
        return index

    def drain(self, consumer: QueueConsumer, token: int, deadline: int) -> None:
        """Keeps the token of a drain, which is answered after everything deliverable was sent.

        `deadline` (ns): until then it also waits for credits.
        """
        self.drains.append((consumer, token, deadline))
        self.aside = True

    def take_drains(self) -> list[tuple[QueueConsumer, int, int]]:
        """Returns and removes the drains that wait."""
        drains = self.drains
        self.drains = []
        self.aside = len(self.found_expired) > 0
        return drains

    def set_expired_aside(self, reference: Reference) -> None:
        """Keeps a waiting reference that has expired for the broker to move."""
        reference.state = DELIVERING
        self.delivering_count += 1
        self.found_expired.append(reference)
        self.aside = True

    def take_expired(self) -> list[Reference]:
        """Returns and removes the expired references that the delivery met."""
        found = self.found_expired
        self.found_expired = []
        self.aside = len(self.drains) > 0
        return found

    def watch_deliveries(self) -> None:
        """Starts the recording of deliveries for the broker's observers."""
        self.deliveries = []

    def take_deliveries(self) -> list[tuple[QueueConsumer, Reference]]:
        """Returns the deliveries since the last call, for the observers; an empty list if they are not recorded."""
        found = self.deliveries
        if found is None:
            return []
        self.deliveries = []
        return found


def by_sequence(reference: Reference) -> int:
    """Returns the sequence, the order of a queue's references."""
    return reference.sequence
