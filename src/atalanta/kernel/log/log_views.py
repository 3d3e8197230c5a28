"""The log view: an ordinary queue read by sequence, repeatably, and acknowledged through a sequence (for Spark).

Ranges are (start, end]. Only durable messages are shown; the first lease makes all messages durable. A message shown
once can be read again, also after a crash, until it is acknowledged through. One group at a time holds the lease of a
queue; every take-over has a higher epoch, and an older epoch is refused ("fenced"). Peers are never told of a lease as
a consumer, but on this node a lease counts as a consumer that matches: new messages stay here, no consumer takes them,
and none is redistributed, expired or moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    FENCED,
    ILLEGAL_STATE,
    INCARNATION_CHANGED,
    RANGE_LOST,
    BrokerError,
)
from atalanta.kernel.journal import records
from atalanta.kernel.log.chunk import READ_BYTES_MAX, LogChunk, cost_of
from atalanta.kernel.log.first_lease import FirstLease
from atalanta.kernel.log.hidden_messages import NOT_DURABLE, hidden_ranges
from atalanta.kernel.log.lease import ReaderLease
from atalanta.kernel.log.retention import Retention
from atalanta.kernel.queue.delivery.freed_references import FreedReferences
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.removal import drop_through
from atalanta.kernel.queue.paging.retained_messages import retained_of
from atalanta.kernel.queue.reference import DONE, Reference
from atalanta.kernel.routing.wildcard import WildcardMatch
from atalanta.kernel.trace import trace_message
from atalanta.message.encoding.buffer import Writer
from atalanta.message.log_position import Position

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Timers, Trace
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.message.selector.selector import Filter

SCAN_MAX: Final = 200_000  # references that one plan or position examines
PLAN_BLOCKS_MAX: Final = 64  # of page files; a longer range is planned in parts
LOOK_MAX: Final = 1_000
TTL_NS_MAX: Final = 24 * 3600 * 1_000_000_000
LEASE_TIMER: Final = "kernel.leases"


def refusal(queue: Queue) -> str:
    """Returns the kind of queue that has no log view, for an error text; empty if this one has a log view."""
    spec = queue.spec
    if not queue.durable or queue.internal:
        return "not a durable client queue"
    if spec.ring_size >= 0:
        return "a ring queue, whose messages go without being read"
    if queue.keeps_messages:
        return "a non-destructive queue, whose messages go without being read"
    if spec.last_value_key is not None:
        return "a last-value queue, whose messages go without being read"
    return ""


class LogViews:
    """The log views of a node's queues: positions, reads, leases and acknowledgements.

    `name` is a queue's name; BrokerError if it does not exist or has no log view.
    """

    def __init__(
        self,
        node_id: str,
        queues: QueueRegistry,
        plans: PlanWriter,
        values: NamedValues,
        timers: Timers,
        trace: Trace,
    ) -> None:
        self.node_id = node_id
        self.queues = queues
        self.plans = plans
        self.retention = Retention(plans, values)
        self.store = plans.store
        self.freed = FreedReferences(timers)
        self.first_leases: dict[Queue, FirstLease] = {}  # until they are granted
        self.timers = timers
        self.trace = trace

    def queue_for(self, name: str, incarnation: str) -> Queue:
        """Returns the queue of a log view. BrokerError INCARNATION_CHANGED if it was deleted and created again."""
        queue = self.queues.find(name)
        why = refusal(queue)
        if why:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name} has no log view: it is {why}")
        if incarnation and incarnation != queue.incarnation:
            raise BrokerError(
                INCARNATION_CHANGED,
                f"queue {queue.name} is a new one since (was {incarnation}, is {queue.incarnation})",
            )
        return queue

    def matching(self, pattern: str) -> list[Queue]:
        """Returns the queues with a log view whose names match, sorted. BrokerError ILLEGAL_STATE: no valid pattern."""
        try:
            match = WildcardMatch(pattern, self.queues.config.wildcard)
        except ValueError as error:
            raise BrokerError(ILLEGAL_STATE, str(error)) from error
        by_name = self.queues.by_name
        return [
            by_name[name]
            for name in sorted(by_name)
            if match.matches(name) and not refusal(by_name[name])
        ]

    def position(self, name: str) -> Position:
        queue = self.queue_for(name, "")
        acked_through = queue.log.reader_position()
        last = queue.stable_end()
        first = last + 1
        first_timestamp_ms = last_timestamp_ms = 0
        for reference in self._after(queue, acked_through):
            # Non-durable ones count: the first lease makes them durable.
            if reference.durable or reference.sequence < last:
                first = reference.sequence
                first_timestamp_ms = reference.message.timestamp
                break
        for reference in reversed(self._last(queue)):
            if reference.state != DONE and reference.durable:
                last_timestamp_ms = reference.message.timestamp
                break
        queue.log.show(last)
        return Position(
            self.node_id, queue.incarnation, first, last, queue.message_count, queue.bytes, acked_through,
            first_timestamp_ms, last_timestamp_ms,
        )  # fmt: skip

    def plan(
        self, name: str, incarnation: str, start: int, messages_max: int, bytes_max: int
    ) -> tuple[int, int, int]:
        """Returns (end, messages, bytes) of the longest range from `start` in the limits.

        A limit of -1 is none; at least one message is in the range.
        """
        queue = self.queue_for(name, incarnation)
        last = queue.stable_end()
        if messages_max < 0 and bytes_max < 0:
            messages_max = SCAN_MAX
        messages = 0
        size = 0
        end = start
        limited = False
        blocks = 0
        found = self._after(queue, start)
        while found and not limited and found[0].sequence <= last:
            outside = queue.paged is not None or queue.log.retained is not None
            if outside and isinstance(found[0], PagedReference):
                blocks += 1
                if blocks > PLAN_BLOCKS_MAX:
                    limited = True
                    break
            for reference in found:
                if reference.sequence > last:
                    break  # above the stable end
                if not reference.durable:
                    continue
                cost = cost_of(reference)
                full = (0 <= messages_max <= messages) or (0 <= bytes_max < size + cost)
                if (full and messages > 0) or messages >= SCAN_MAX or messages_max == 0:
                    limited = True
                    break
                messages += 1
                size += cost
                end = reference.sequence
            found = self._after(queue, found[len(found) - 1].sequence)
        if not limited:
            end = max(end, last, start)
        if end > start:  # a reader that asks from beyond the end is shown nothing
            queue.log.show(end)
        return end, messages, size

    def read(
        self,
        name: str,
        incarnation: str,
        start: int,
        end: int,
        bytes_max: int,
        selector: Filter | None,
        bodies: bool = True,
    ) -> LogChunk:
        """Returns the messages of (start, end] in order, within the limits (at least one).

        `bodies`: false for a chunk whose messages are sent without them, and which may have more messages.
        BrokerError RANGE_LOST if the range begins below the acknowledged sequence, and is not retained.
        """
        queue = self.queue_for(name, incarnation)
        gone = queue.log.released_through()
        if start < gone and end > start:
            text = f"queue {queue.name}: {start + 1} to {gone} was acknowledged and is gone"
            raise BrokerError(RANGE_LOST, text)
        limit = min(bytes_max, READ_BYTES_MAX) if bytes_max > 0 else READ_BYTES_MAX
        end = min(end, queue.stable_end())
        chunk = LogChunk(end, limit, selector, bodies)
        found = self._after(queue, start)
        while found and chunk.fill(found):
            found = self._after(queue, found[len(found) - 1].sequence)
        queue.log.show(end)
        return chunk

    def message_at(self, name: str, incarnation: str, sequence: int) -> Reference:
        """Returns the message of a sequence. BrokerError RANGE_LOST if it has left the queue."""
        queue = self.queue_for(name, incarnation)
        found = self.shown_at(queue, sequence)
        if found is None:
            raise BrokerError(RANGE_LOST, f"queue {queue.name}: message {sequence} has left the queue")
        return found

    def shown_at(self, queue: Queue, sequence: int) -> Reference | None:
        """Returns the message of a sequence, as readers see it; None if there is none."""
        found = self._after(queue, sequence - 1)
        if sequence > queue.stable_end() or not found or found[0].sequence != sequence or not found[0].durable:
            return None
        return found[0]

    def _after(self, queue: Queue, sequence: int) -> list[Reference]:
        """Returns the next unfinished messages behind `sequence`, in memory or in page files; none at the end.

        Retained ones come first.
        """
        retained = retained_of(queue)
        if retained is not None and sequence < queue.log.acked_through:
            kept = retained.after(sequence)
            if kept:
                return kept
        references = queue.references
        index = queue.index_of(sequence + 1)
        while index < len(references):
            found = [each for each in references[index : index + LOOK_MAX] if each.state != DONE]
            if found:
                return found
            index += LOOK_MAX
        if queue.paged is None:
            return []
        if references:
            sequence = max(sequence, references[len(references) - 1].sequence)
        return self.store.paging.after(queue, sequence)

    def _last(self, queue: Queue) -> list[Reference]:
        """Returns some of the last messages, including finished ones."""
        paged = paged_queue_of(queue)
        if paged is not None:
            found = paged.tail
            if not found and paged.pages:
                page = paged.pages[len(paged.pages) - 1]
                found = self.store.paging.after(queue, page.firsts[len(page.firsts) - 1] - 1)
            if found:
                return found
        return queue.references

    def ack_through(
        self,
        name: str,
        incarnation: str,
        group: str,
        epoch: int,
        end: int,
        endpoint: Reply,
        token: int,
    ) -> int:
        """Acknowledges everything up to `end` (idempotent); `endpoint.done(token)` when durable. Returns the number.

        The first acknowledgement of a group is recorded, also if it acknowledges nothing: the group has begun.
        """
        queue = self.queue_for(name, incarnation)
        held = check_epoch(queue, group, epoch)
        if end > queue.stable_end():
            raise BrokerError(
                ILLEGAL_STATE,
                f"queue {queue.name} ends at {queue.stable_end()}: cannot acknowledge {end}",
            )
        retained = retained_of(queue)
        if end <= queue.log.acked_through:
            self.store.command.begin_change()
            beginning = records.Batch()
            self._begin(queue, held, beginning)
            if retained is not None and 0 <= retained.replay_from < end:
                retained.replay(group, end)
                self.retention.append(queue, beginning, endpoint, token)
            elif beginning.count > 0:
                self.retention.append(queue, beginning, endpoint, token)
            else:
                self.store.reply_when_durable(self.store.journal.last, endpoint, token)
            return 0
        self.store.command.begin_change()
        taken = 0
        batch = records.Batch()
        self._begin(queue, held, batch)
        references = queue.references
        index = 0
        done: list[Reference] = []
        while index < len(references) and references[index].sequence <= end:
            reference = references[index]
            index += 1
            if reference.state != DONE:
                done.append(reference)
        for reference in done:
            # Non-durable messages were never shown, and no consumer would take them.
            if reference.durable:
                taken += 1
            if retained is None:
                self.store.drop_from_queue(reference)
            else:
                self.retention.keep(retained, reference, batch)
            if self.trace.on:
                trace_message(self.trace, "trace_acknowledged_through", reference.message, queue.name)
        taken += drop_through(self.store.paging, queue, end, retained)
        self.freed.add(done)
        queue.count_acknowledged(taken)
        queue.log.acknowledge_through(end)
        self.retention.close_range(queue)
        writer = Writer()
        writer.int64(queue.id)
        writer.int64(end)
        batch.add(records.ACK_THROUGH, writer.getvalue())
        self.retention.append(queue, batch, endpoint, token)
        if retained is not None and queue.active_lease() is None:
            self.timers.set(LEASE_TIMER, self.store.now + 1_000_000_000)
        return taken

    def _begin(self, queue: Queue, held: ReaderLease, batch: records.Batch) -> None:
        """Records in the batch that the group has a position in the queue, if that is new."""
        if not held.has_position:
            held.has_position = True
            batch.add(records.LEASE, held.record(queue.id))

    def retain(
        self,
        name: str,
        incarnation: str,
        group: str,
        epoch: int,
        age_ms: int,
        bytes_max: int,
        replay_from: int,
        endpoint: Reply,
        token: int,
    ) -> None:
        """Sets the limits of the retention (unless negative), and the start of a replay (unless negative).

        `endpoint.done(token)` when durable. BrokerError FENCED, and RANGE_LOST for a start that is not retained.
        """
        queue = self.queue_for(name, incarnation)
        check_epoch(queue, group, epoch)
        self.store.command.begin_change()
        if age_ms >= 0 or bytes_max >= 0:
            self.retention.choose(queue, max(0, age_ms), max(0, bytes_max))
        if replay_from >= 0:
            self.retention.replay(queue, group, replay_from)
        self.retention.append(queue, records.Batch(), endpoint, token)

    def lease(
        self,
        now: int,
        name: str,
        group: str,
        owner: str,
        ttl_ns: int,
        epoch: int,
        endpoint: Reply,
        token: int,
    ) -> ReaderLease:
        """Takes a group over with a new epoch (epoch 0), or renews that epoch; `ttl_ns` 0 ends the lease.

        `endpoint.done(token)` follows when a new epoch is durable, at the first lease with all messages. FENCED if
        another group holds the queue or the epoch is old.
        """
        queue = self.queue_for(name, "")
        if ttl_ns < 0 or ttl_ns > TTL_NS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a lease may last up to {TTL_NS_MAX // 1_000_000} ms")
        starts = False
        other = queue.active_lease()
        if other is not None and other.group != group:
            raise other.refuse(now, queue.name)
        if epoch == 0 and ttl_ns > 0 and queue.consumer_count() > 0:
            raise BrokerError(
                FENCED, f"queue {queue.name} has consumers: it cannot be leased to group {group}"
            )
        if epoch != 0:
            held = check_epoch(queue, group, epoch)
            if not held.active and ttl_ns > 0 and queue.consumer_count() > 0:
                raise BrokerError(
                    FENCED,
                    f"the lease of group {group} ended, and queue {queue.name} has consumers now",
                )
            changed = held.ttl_ns != ttl_ns
            self.store.command.begin_change()
        else:
            self.store.command.begin_change()
            if not queue.leased:
                self.first_leases[queue] = FirstLease(self.store, queue, self.first_leases)
                starts = True
            self.retention.lease(queue, group)
            previous = queue.log.leases.get(group)
            held = ReaderLease(group, 1 if previous is None else previous.epoch + 1, owner, ttl_ns, now)
            held.has_position = previous is not None and previous.has_position
            self.queues.lease(queue, held)
            changed = True
        held.ttl_ns = ttl_ns
        held.until = now + ttl_ns
        if held.active and ttl_ns == 0:
            self._unpin(queue, held)
        held.active = ttl_ns > 0
        first = self.first_leases.get(queue)
        reply: Reply | None = endpoint
        if first is not None:
            first.add(endpoint, token)
            reply = first if starts else None
            token = 0
        if changed:
            batch = records.Batch()
            batch.add(records.LEASE, held.record(queue.id))
            self.retention.append(queue, batch, reply, token)
        elif first is None:
            endpoint.done(token)
        self.timers.set(LEASE_TIMER, now + 1_000_000_000)
        return held

    def end_lease(self, now: int, queue: Queue, by: str, epoch: int) -> None:
        """Ends the lease of a queue for the user `by`, with a new epoch that is nobody's.

        Its messages stay, and what the owner has not acknowledged is not acknowledged. `epoch`: the one that is meant,
        or -1 for any. BrokerError ILLEGAL_STATE without a lease, or if it has another epoch.
        """
        held = queue.active_lease()
        if held is None:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name} has no lease that could be ended")
        if epoch not in (-1, held.epoch):
            text = f"the lease of queue {queue.name} has epoch {held.epoch} of {held.owner} by now"
            raise BrokerError(ILLEGAL_STATE, f"{text}, not {epoch}: it stays")
        self.store.command.begin_change()
        self._unpin(queue, held)
        ended = ReaderLease(held.group, held.epoch + 1, held.owner, 0, now, by, held.has_position)
        self.queues.lease(queue, ended)
        batch = records.Batch()
        batch.add(records.LEASE, ended.record(queue.id))
        self.retention.append(queue, batch, None, 0)
        self.trace.event(
            "lease_ended_by_operator",
            {"queue": queue.name, "group": held.group, "owner": held.owner, "epoch": ended.epoch, "by": by},
        )

    def any_leased(self) -> bool:
        """Returns true if a queue of the node has ever had a lease, so that its messages are durable on arrival."""
        return self.queues.leased > 0

    def end_leases(self, now: int) -> None:
        """Ends expired leases, which no longer pin their queue (the epoch stays), and releases retained messages.

        The end is recorded: a restart starts the leases again that had not ended.
        """
        any_active = self.retention.release_due(now, self.queues.by_name)
        for queue in self.queues.by_name.values():
            for held in queue.log.leases.values():
                if held.active and held.until <= now:
                    self._unpin(queue, held)
                    held.ttl_ns = 0
                    batch = records.Batch()
                    batch.add(records.LEASE, held.record(queue.id))
                    self.retention.append(queue, batch, None, 0)
                elif held.active:
                    any_active = True
        if any_active:
            self.timers.set(LEASE_TIMER, now + 1_000_000_000)

    def _unpin(self, queue: Queue, held: ReaderLease) -> None:
        held.active = False
        self.trace.event("lease_ended", {"queue": queue.name, "group": held.group})
        self.store.dispatches.mark_dirty(queue)
        self.store.dispatches.note_unattended(queue)

    def lost_ranges(
        self, name: str, incarnation: str, start: int, end: int
    ) -> list[tuple[int, int, str]]:
        """Returns the parts of (start, end] that left the queue without ack_through, by their first sequence.

        Before the first lease also those that a reader is not shown, since they are not durable.
        """
        queue = self.queue_for(name, incarnation)
        self.store.paging.drop_damaged()  # what the requests before have found
        found: list[tuple[int, int, str]] = []
        for low, high, why in queue.log.lost:
            if high > start and low <= end:
                found.append((max(low, start + 1), min(high, end), why))
        if not queue.leased:
            found += [(max(low, start + 1), high, NOT_DURABLE) for low, high in hidden_ranges(self.store, queue, end)
                      if high > start]  # fmt: skip
        return sorted(found)

    def seek(self, name: str, timestamp_ms: int) -> int:
        """Returns the sequence before the first live or retained message whose timestamp is >= `timestamp_ms`.

        Ranges that were acknowledged before that time are not searched.
        """
        queue = self.queue_for(name, "")
        retained = queue.log.retained
        start = 0 if retained is None else retained.acknowledged_before(timestamp_ms)
        found = self._after(queue, start)
        while found:
            for reference in found:
                if reference.durable and reference.message.timestamp >= timestamp_ms:
                    return reference.sequence - 1
            found = self._after(queue, found[len(found) - 1].sequence)
        return queue.stable_end()


def check_epoch(queue: Queue, group: str, epoch: int) -> ReaderLease:
    lease = queue.log.leases.get(group)
    if lease is None:
        raise BrokerError(FENCED, f"group {group} never had a lease of queue {queue.name} (yours is epoch {epoch})")
    if lease.epoch != epoch or lease.ended_by:
        raise lease.fence(queue.name, epoch)
    return lease
