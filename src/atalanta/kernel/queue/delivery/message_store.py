"""The message store: the messages of one node by id, in their queues, in memory and in the journal."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import write_plain_message
from atalanta.kernel.memory.address_memory import PAGE
from atalanta.kernel.queue.delivery.awaiting_journal import Awaiting, DeferredRefusal
from atalanta.kernel.queue.delivery.dropped_references import DroppedReferences
from atalanta.kernel.queue.delivery.message_table import MessageTable
from atalanta.kernel.queue.paging.paged_reference import PagedReference
from atalanta.kernel.queue.paging.paging import Paging
from atalanta.kernel.queue.paging.removal import drop_one
from atalanta.kernel.queue.queue import FINISHED_MIN
from atalanta.kernel.queue.reference import DELIVERING, DONE, READY, SCHEDULED, Reference
from atalanta.kernel.tasks import Tasks
from atalanta.kernel.trace import queue_sequences, trace_message

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.memory.large_body import LargeBodies
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.ports import JournalPort, Pages, Timers, Trace
    from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
    from atalanta.kernel.queue.last_value_ring import SpecialQueue
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message

# References that are acknowledged together, from which on their memory is freed in steps.
MANY: Final = 1_000


class MessageStore(MessageTable):
    """The steps by which references enter and leave their queues.

    `awaiting` ascends by lsn. `acknowledging`: queues whose acknowledgements of this batch of inputs are not in the
    journal yet. `now` (ns) is the time of the latest input. `entered_max` references of one record enter their queues
    in one event-loop iteration.
    """

    def __init__(
        self,
        journal: JournalPort,
        memory: Memory,
        large: LargeBodies,
        dispatches: DispatchList,
        timers: Timers,
        trace: Trace,
        pages: Pages | None,
        command: CurrentCommand,
        entered_max: int,
    ) -> None:
        super().__init__(journal, memory, large, dispatches, timers, trace, command)
        self.awaiting: deque[Awaiting] = deque()
        self.acknowledging: list[Queue] = []
        self.paging = Paging(self, pages)
        self.tasks = Tasks(timers)
        self.now: int = 0
        self.entered_max = entered_max
        self.entering: bool = False  # durable references are left for the next event-loop iteration

    def set_now(self, now: int) -> None:
        """Sets the time of the input that is handled (ns)."""
        self.now = now

    # -- messages arrive ------------------------------------------------------------------------
    def reference(
        self, message: Message, queue: Queue, sequence: int, route_to: bytes
    ) -> Reference:
        """Returns the message's new reference in the queue, charged to memory; a full address pages or refuses."""
        reference = Reference(message, queue, sequence, route_to)
        if self.memory.charge(reference):
            self.limit(queue)
        return reference

    def limit(self, queue: Queue) -> None:
        """Makes a queue whose address is full page, or the address refuse."""
        account = queue.account
        if account.policy != PAGE or not self.memory.paging:
            self.memory.refuse(account)
        elif queue.paged is None:
            self.paging.start(queue)

    def publish_to_one(
        self, message: Message, queue: Queue, endpoint: Reply | None, token: int
    ) -> None:
        """Publishes the usual message: one queue, no duplicate id. No plan, no lists."""
        self.command.begin_change()
        message.id = self.take_message_id()
        reference = self.reference(message, queue, queue.take_sequence(), b"")
        if self.trace.on:
            trace_message(self.trace, "trace_routed", message, queue_sequences([reference]))
        if reference.durable:
            stored = [reference]
            self.keep(message, stored)
            journal = self.journal
            write_plain_message(journal.begin(records.PLAIN_MESSAGE), message, reference)
            message.plain = True
            lsn = journal.end()
            message.lsn = lsn
            queue.count_pending(1)
            self.awaiting.append(Awaiting(lsn, stored, endpoint, token))
            return
        message.lsn = 0
        if queue.pending > 0:
            queue.count_pending(1)
            self.journal.hurry()
            self.awaiting.append(Awaiting(self.journal.last, [reference], endpoint, token))
            return
        self._enqueue_one(reference)
        if endpoint is not None:
            endpoint.done(token)

    def append(
        self,
        batch: records.Batch,
        references: list[Reference],
        endpoint: Reply | None,
        token: int,
    ) -> int:
        """Appends the batch to the journal, if it holds anything; returns the lsn (0: none).

        When that is durable, the references enter their queues and `endpoint.done(token)` follows.
        """
        self.command.begin_change()
        lsn = 0
        if len(batch) > 0:
            lsn = batch.append_to(self.journal)
        self.enqueue_when_durable(lsn, 0, references, endpoint, token)
        return lsn

    def enqueue_when_durable(
        self,
        lsn: int,
        after_lsn: int,
        references: list[Reference],
        endpoint: Reply | None,
        token: int,
    ) -> None:
        """Enqueues the references when their record `lsn` (0: none) and `after_lsn` are durable."""
        if lsn > 0:
            self.awaiting.append(Awaiting(lsn, references, endpoint, token))
        elif after_lsn > self.journal.durable or len(references) > self.entered_max or self._must_wait(references):
            self.journal.hurry()
            self.awaiting.append(Awaiting(self.journal.last, references, endpoint, token))
            self.entering = True
        else:
            self._enqueue(references)
            if endpoint is not None:
                endpoint.done(token)

    def _must_wait(self, references: list[Reference]) -> bool:
        """Returns true if the references must wait to keep the order of a sender of durable and non-durable messages.
        """
        if not self.awaiting:
            return False
        for reference in references:
            if reference.queue.pending > 1:
                return True
        return False

    def _enqueue(self, references: list[Reference]) -> None:
        for reference in references:
            reference.queue.count_pending(-1)
            self._enqueue_one(reference)

    def _enqueue_one(self, reference: Reference) -> None:
        queue = reference.queue
        if queue.deleted:
            self.drop(reference)
            return
        if reference.sequence == 0:
            self.scheduled.schedule_new(reference, reference.message.scheduled_ms)
            return
        if queue.paged is not None:
            self.paging.take(reference)
            if queue.pending_limit is not None:
                self.dispatches.mark_dirty(queue)  # the limit is looked at
        else:
            queue.add(reference)
            if not queue.dirty:
                self.dispatches.mark_dirty(queue)
        if queue.special is not None:
            self._apply_special(queue, queue.special, reference)
        if (
            queue.open_consumers == 0
            and not queue.unattended
            and not queue.has_match(reference.message)
        ):
            self.dispatches.note_unattended(queue)

    def _apply_special(self, queue: Queue, special: SpecialQueue, reference: Reference) -> None:
        """Applies the last-value and ring rules to a message that entered its queue.

        In the tail of a queue that pages, last values are not compared before the messages are read back.
        """
        if special.last_value_key is not None and (
            queue.paged is None or reference.state != READY
        ):
            older = special.entered(reference)
            if older is not None:
                special.outdated.append(older)
        if (special.ring_size >= 0 or special.outdated) and not special.listed:
            special.listed = True
            self.dispatches.note_displacement(queue)

    # -- the journal ----------------------------------------------------------------------------
    def reply_when_durable(self, lsn: int, endpoint: Reply | None, token: int) -> None:
        """Calls `done(token)` once everything up to `lsn` is on disk: the reply to a repeat waits for the first copy.
        """
        if endpoint is None:
            return
        if lsn <= self.journal.durable:
            endpoint.done(token)
        else:
            self.journal.hurry()
            self.awaiting.append(Awaiting(max(lsn, self._last_awaited()), [], endpoint, token))

    def reply_when_entered(self, endpoint: Reply, token: int) -> None:
        """Calls `done(token)` once everything has entered its queue that was appended until now.

        That is later than its durability: the messages of a large commit enter in several event-loop iterations.
        """
        if not self.awaiting:
            endpoint.done(token)
            return
        self.journal.hurry()
        self.awaiting.append(Awaiting(self.journal.last, [], endpoint, token))

    def reply_when_all_is_durable(self, endpoint: Reply, token: int) -> None:
        """Calls `done(token)` once everything so far is on disk, also acknowledgements for which nobody waited."""
        self.append_acknowledged()
        self.reply_when_durable(self.journal.last, endpoint, token)

    def refuse_when_durable(
        self, lsn: int, endpoint: Reply, token: int, error: BrokerError
    ) -> None:
        """Calls `failed(token, error)` once everything up to `lsn` is on disk: to a sender "duplicate" means "done"."""
        if lsn <= self.journal.durable:
            endpoint.failed(token, error)
        else:
            refusal = DeferredRefusal(endpoint, error)
            self.journal.hurry()
            self.awaiting.append(Awaiting(max(lsn, self._last_awaited()), [], refusal, token))

    def _last_awaited(self) -> int:
        return self.awaiting[len(self.awaiting) - 1].lsn if self.awaiting else 0

    def on_durable(self, now: int, lsn: int) -> None:
        """Handles that everything up to `lsn` is on disk: messages enter their queues, and senders get their replies.
        """
        self.now = now
        self.paging.on_durable(lsn)
        self.enter(lsn)
        if self.large.leaving:
            self.large.on_durable(lsn)

    def enter(self, lsn: int) -> None:
        """Enqueues what awaits `lsn` or less, and sends the replies.

        The messages of a large commit enter in several event-loop iterations (`entering`). What is behind them waits,
        so that every queue gets its messages in order.
        """
        self.entering = False
        awaiting = self.awaiting
        entered_max = self.entered_max
        while awaiting:
            first = awaiting[0]
            if first.lsn > lsn:
                return
            if len(first.references) > entered_max:
                self._enqueue(first.take(entered_max))
                self.entering = True
                return
            awaiting.popleft()
            self._enqueue(first.references)
            if first.endpoint is not None:
                first.endpoint.done(first.token)

    # -- messages are acknowledged ----------------------------------------------------------------
    def acknowledge_one(self, reference: Reference, endpoint: Reply, token: int) -> None:
        """Acknowledges one message; all of one batch of inputs go into one record per queue."""
        queue = reference.queue
        if queue.leased or reference.state != DELIVERING:
            self.acknowledge([reference], endpoint, token)
            return
        if reference.durable:
            if not queue.acknowledging:
                self.acknowledging.append(queue)
            queue.acknowledging.append(reference.message.id)
        if self.trace.on:
            trace_message(self.trace, "trace_acknowledged", reference.message, queue.name)
        queue.count_acknowledged(1)
        self.drop_from_queue(reference)
        if queue.tombstones >= FINISHED_MIN:
            queue.trim_front()
        if token != SILENT:
            self.append_acknowledged()
            self.reply_when_durable(
                self.journal.last if reference.durable else 0, endpoint, token
            )

    def append_acknowledged(self) -> None:
        """Appends the records of `acknowledge_one`. The journal need not hurry: no endpoint waits for them."""
        if self.acknowledging:
            queues = self.acknowledging
            self.acknowledging = []
            for queue in queues:
                message_ids = queue.take_acknowledging()
                if not queue.deleted:
                    self.journal.append_idle(
                        records.ACKS, records.encode_acks(queue.id, message_ids)
                    )

    def acknowledge(
        self, references: list[Reference], endpoint: Reply | None, token: int
    ) -> None:
        """Acknowledges delivered messages of a session that commits acknowledgements by itself."""
        batch = records.Batch()
        self.finish(references, batch)
        if len(batch) == 0:
            self.reply_when_durable(0, endpoint, token)
            return
        self.append(batch, [], endpoint, token)

    def finish(self, references: list[Reference], batch: records.Batch) -> None:
        """Takes references out of their queues; the batch gets ACKS of the durable ones, one record per queue."""
        self.command.begin_change()
        per_queue: dict[int, list[int]] = {}
        taken: list[Reference] = []
        many = len(references) > MANY
        for reference in references:
            if reference.state == DONE:
                continue
            queue = reference.queue
            if reference.state != DELIVERING and (
                queue.keeps_messages or not queue.has(reference)
            ):
                continue  # in a non-destructive queue, or a copy from a page file of one
            if reference.durable:
                per_queue.setdefault(queue.id, []).append(reference.message.id)
            self.note_lost(reference, "acknowledged by another consumer", batch)
            if many and queue.special is None:
                self.take_from_queue(reference)
                taken.append(reference)
            else:
                self.drop_from_queue(reference)
            if self.trace.on:
                trace_message(self.trace, "trace_acknowledged", reference.message, queue.name)
            queue.count_acknowledged(1)
        for queue_id, message_ids in per_queue.items():
            batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))
        if taken:
            self.drop_all(taken)

    # -- messages leave -------------------------------------------------------------------------
    def note_lost(self, reference: Reference, why: str, batch: records.Batch) -> None:
        """Records in the batch that a message shown to a log-view reader leaves without `ack_through` (`lost_ranges`).
        """
        queue = reference.queue
        sequence = reference.sequence
        if not reference.durable or not queue.log.is_awaited(sequence):
            return
        queue.log.record_lost(queue.id, sequence, sequence, why, batch)

    def drop_from_queue(self, reference: Reference) -> None:
        """Removes the reference from its queue in memory, and the message with its last reference."""
        queue = reference.queue
        self.take_from_queue(reference)
        self.drop(reference)
        if queue.special is not None and queue.delivering_count == 0:
            self.dispatches.mark_dirty(queue)  # its gate may have waited for this

    def drop_from_queue_or_page(self, reference: Reference) -> None:
        """Removes the reference from its queue, in memory or outside of it, as `PagedQueue.after` has returned it."""
        queue = reference.queue
        if queue.paged is None or reference.state == SCHEDULED or queue.has(reference):
            self.drop_from_queue(reference)
        else:
            drop_one(self.paging, queue, reference)

    def take_from_queue(self, reference: Reference) -> None:
        """Removes the reference from its queue in memory; the message stays."""
        if reference.state == SCHEDULED:
            self.scheduled.remove(reference)
        reference.queue.remove(reference)

    def drop(self, reference: Reference) -> None:
        """Ends the reference's part in its message (the reference may never have entered its queue)."""
        reference.state = DONE
        self.memory.release(reference)
        if reference.queue.paged is not None:
            self.paging.touch(reference.queue)
        if isinstance(reference, PagedReference):
            self.paging.finished(reference)
            return
        large = reference.message.large
        if large is not None:
            self.large.release(large)
        if reference.durable:
            self.unstore(reference)

    def drop_all(self, references: list[Reference]) -> None:
        """Ends the part of finished references in their messages. What they are charged is freed in steps.

        The journal's need for them ends at once: compaction would write a message behind its own acknowledgement.
        """
        dropped: list[Reference] = []
        for reference in references:
            if isinstance(reference, PagedReference):
                self.drop(reference)
                continue
            if reference.durable:
                self.unstore(reference)
                reference.durable = False
            dropped.append(reference)
        self.tasks.add(self.now, DroppedReferences(self, dropped))

    def discard(self, references: list[Reference]) -> None:
        """Removes references of one queue from the queue and from the journal, because others replace them."""
        if not references:
            return
        queue = references[0].queue
        message_ids: list[int] = []
        for reference in references:
            if reference.durable:
                message_ids.append(reference.message.id)
                if not isinstance(reference, PagedReference):
                    self.unstore(reference)
                reference.durable = False
        for reference in references:
            if queue.special is not None:
                queue.special.replaced += 1
            self.drop_from_queue(reference)
            if self.trace.on:
                trace_message(self.trace, "trace_replaced", reference.message, queue.name)
        batch = records.Batch()
        if message_ids:
            batch.add(records.ACKS, records.encode_acks(queue.id, message_ids))
        self.append(batch, [], None, 0)

    def store_delivery_count(self, reference: Reference, at_ms: int) -> None:
        """Stores the delivery count, and the time (ms) of the next attempt, for a restart. No reply waits for it."""
        if isinstance(reference, PagedReference):
            reference.page.deliveries[reference.index] = (reference.delivery_count, at_ms)
        self.journal.append(
            records.DELIVERY,
            records.encode_delivery(
                reference.queue.id, reference.message.id, reference.delivery_count, at_ms
            ),
        )
