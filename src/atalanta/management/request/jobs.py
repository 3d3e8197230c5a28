"""Management of many messages at once, in bounded steps. The reply is sent after the last step.

A job reads the messages that its queue had at the start. One event-loop iteration reads MESSAGES_READ_MAX of them
and changes at most `acts_max`. A zero timer continues the job, so that a purge of a million messages delays no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.reference import DONE, READY, SCHEDULED, Reference
from atalanta.management.request.call import LATER, Call
from atalanta.message.repetition import JOB, is_repeated, job_of

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.management.request.replies import Replies
    from atalanta.message.selector.selector import Filter

MANAGEMENT_TIMER: Final = "management.jobs"
MESSAGES_READ_MAX: Final = 2_000
ACTS_MAX: Final = 100
JOBS_MAX: Final = 1_000
DISK_WAIT_NS: Final = 1_000_000


class MessageJob:
    """A pass over the messages of `queue` that are not in delivery and match `selector`.

    Subclasses define the change of messages in `act` and the answer in `result`. `left` counts down from the maximum
    number of messages; -1 means all. `message_id` >= 0 selects only that message, or the repetition that began with it.
    """

    acts_max: int = ACTS_MAX
    any_state: bool = False
    with_scheduled: bool = False

    def __init__(
        self, store: MessageStore, call: Call, queue: Queue, selector: Filter | None
    ) -> None:
        self.store = store
        self.call = call
        self.now: int = call.now
        self.queue = queue
        self.selector = selector
        self.message_id: int = -1
        self.left: int = -1
        self.cursor: int = 0
        self.end: int = queue.next_sequence
        self.taken: int = 0
        # Scheduled messages are read after all others. `scheduled`: those not read yet, None before. `missed`: the
        # repetitions of which a message has come since.
        self.scheduled: list[Reference] | None = None
        self.missed: dict[int, bool] = {}
        self.waits: bool = False  # for the disk, or for messages on their way back
        self.changes: bool = True

    def act(self, now: int, chosen: list[Reference]) -> None:
        raise NotImplementedError

    def result(self) -> object:
        raise NotImplementedError

    def step(self, now: int) -> bool:
        """Executes one bounded step. Returns True at the end. Raises BrokerError if the queue was deleted."""
        self.now = now
        queue = self.queue
        if queue.deleted:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name} was deleted meanwhile")
        chosen: list[Reference] = []
        self.waits = queue.held > 0
        if self.waits:
            return False  # for messages of a consumer that has left: they are on their way back
        if self.scheduled is not None:
            finished = self._choose_scheduled(self.scheduled, chosen)
        else:
            finished = self._choose(chosen)
            if finished and self.with_scheduled and not self.found(chosen) and self._may_have_scheduled():
                finished = False
                self.scheduled = [one for _, one in reversed(self.store.scheduled.of_queue(queue))]
                self.missed = {job_of(one.message): True for one in self._awaiting()}
        if chosen:
            self.taken += len(chosen)
            if self.left > 0:
                self.left -= len(chosen)
            if self.changes:
                self.store.command.begin_change()
            self.act(now, chosen)
        return finished or self.left == 0

    def _choose(self, chosen: list[Reference]) -> bool:
        """Fills `chosen` from the end of the last step on. Returns True after the last message."""
        references = self.queue.references
        index = self.queue.index_of(self.cursor)
        cost = 1 if self.selector is None else self.selector.cost
        stop = min(len(references), index + MESSAGES_READ_MAX // cost)
        most = self.acts_max if self.left < 0 else min(self.acts_max, self.left)
        while index < stop and len(chosen) < most:
            reference = references[index]
            index += 1
            if reference.sequence >= self.end:
                return True
            self.cursor = reference.sequence + 1
            if self._wants(reference):
                chosen.append(reference)
                if self.message_id >= 0:
                    return True
        if index < len(references):
            return False
        return self.queue.paged is None or (not chosen and self._choose_paged(chosen))

    def _choose_paged(self, chosen: list[Reference]) -> bool:
        """Fills `chosen` from the next block of page files, after all messages in memory: they are not loaded.

        Returns True at the end of the page files.
        """
        found = self.store.paging.after(self.queue, self.cursor - 1)
        most = self.acts_max if self.changes else MESSAGES_READ_MAX
        if self.left >= 0:
            most = min(most, self.left)
        for reference in found:
            if reference.sequence >= self.end:
                return True
            if len(chosen) == most:
                return False
            self.cursor = reference.sequence + 1
            if self._wants(reference):
                chosen.append(reference)
        return not found or self.found(chosen)

    def found(self, chosen: list[Reference]) -> bool:
        """Returns True if the single requested message was found."""
        return self.message_id >= 0 and bool(chosen)

    # -- scheduled messages ---------------------------------------------------------------------
    def _may_have_scheduled(self) -> bool:
        """Returns True if the queue has scheduled messages, or gets some when the journal is durable."""
        return self.queue.scheduled_count > 0 or self.queue.pending > 0

    def _choose_scheduled(self, waiting: list[Reference], chosen: list[Reference]) -> bool:
        """Fills `chosen` from the scheduled messages. Returns True after the last one.

        A repeated message may come meanwhile: the job goes on with those that follow it, which are other messages. They
        are found and chosen in one step, so that none of them comes in between.
        """
        if not waiting and self.missed:
            waiting = self.scheduled = self._following()
        cost = 1 if self.selector is None else self.selector.cost
        left = MESSAGES_READ_MAX // cost + 1
        most = self.acts_max if self.left < 0 else min(self.acts_max, self.left)
        while waiting and left > 0 and len(chosen) < most:
            left -= 1
            reference = waiting.pop()
            if reference.state == SCHEDULED:
                if self._takes(reference, job_of(reference.message)):
                    chosen.append(reference)
            elif is_repeated(reference.message):
                self.missed[job_of(reference.message)] = True
        return not waiting and not self.missed

    def _following(self) -> list[Reference]:
        """Returns the messages that follow those that were missed. Some are missed again: they are not on disk yet."""
        awaiting = [job_of(one.message) for one in self._awaiting()]
        found = [one for _, one in self.store.scheduled.of_queue(self.queue) if job_of(one.message) in self.missed]
        found.reverse()
        self.missed = {job: True for job in awaiting if job in self.missed}
        self.waits = not found and bool(self.missed)
        return found

    def _awaiting(self) -> list[Reference]:
        """Returns the messages that follow repeated ones, and enter the queue when the journal is durable."""
        if self.queue.pending == 0:
            return []
        return [
            reference
            for awaiting in self.store.awaiting
            for reference in awaiting.references
            if reference.queue is self.queue and reference.sequence == 0 and reference.message.has_property(JOB)
        ]

    def _wants(self, reference: Reference) -> bool:
        if reference.state != READY and not (self.any_state and reference.state != DONE):
            return False
        return self._takes(reference, int(reference.message.id))

    def wants_more(self, reference: Reference) -> bool:
        """Returns True if a subclass selects the message besides the selector."""
        return True

    def _takes(self, reference: Reference, job: int) -> bool:
        if self.message_id >= 0 and self.message_id not in (reference.message.id, job):
            return False
        if not self.wants_more(reference):
            return False
        return self.selector is None or self.selector.matches(reference.message)


class Jobs:
    """The jobs in progress; one of them executes one step at a time."""

    def __init__(self, timers: Timers, replies: Replies, command: CurrentCommand) -> None:
        self.command = command
        self.timers = timers
        self.replies = replies
        self.running: list[MessageJob] = []

    def run(self, job: MessageJob) -> object:
        """Returns the job's result if one step is enough, else LATER."""
        if job.step(job.call.now):
            return job.result()
        if len(self.running) >= JOBS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"{JOBS_MAX} management operations are under way")
        self.running.append(job)
        self._continue(job.call.now)
        return LATER

    def step(self, now: int) -> None:
        """Executes one step of the job that waited longest, and replies at its end."""
        if not self.running:
            return
        job = self.running.pop(0)
        self.command.begin()
        try:
            finished = job.step(now)
            result = job.result() if finished else None
        except BrokerError as error:
            self.replies.refuse(now, job.call, error.text)
        except Exception as failure:
            if self.command.changing:
                raise
            self.replies.report_failure(now, job.call, failure)
        else:
            if finished:
                self.replies.send(now, job.call, result, True, job.changes)
            else:
                self.running.append(job)
        if self.running:
            self._continue(now)

    def _continue(self, now: int) -> None:
        waits = all(job.waits for job in self.running)
        self.timers.set(MANAGEMENT_TIMER, now + DISK_WAIT_NS if waits else now)
