"""Management of many messages at once, in bounded steps. The reply is sent after the last step.

A job reads the messages that its queue had at the start. One event-loop iteration reads MESSAGES_READ_MAX of them
and changes at most `acts_max`. A zero timer continues the job, so that a purge of a million messages delays no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.reference import DONE, READY, SCHEDULED, Reference
from atalanta.management.request.call import LATER, Call

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


class MessageJob:
    """A pass over the messages of `queue` that are not in delivery and match `selector`.

    Subclasses define the change of messages in `act` and the answer in `result`. `left` counts down from the maximum
    number of messages; -1 means all. `message_id` >= 0 selects only that message.
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
        # Scheduled messages, read after all others; None: not read yet.
        self.scheduled: list[Reference] | None = None
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
        finished = (
            self._choose(now, chosen) if self.scheduled is None else self._choose_later(chosen)
        )
        if finished and self.scheduled is None and self.with_scheduled and not self.found(chosen):
            finished = queue.scheduled_count == 0
            self.scheduled = [one for _, one in reversed(self.store.scheduled.of_queue(queue))]
        if chosen:
            self.taken += len(chosen)
            if self.left > 0:
                self.left -= len(chosen)
            if self.changes:
                self.store.command.begin_change()
            self.act(now, chosen)
        return finished or self.left == 0

    def _choose(self, now: int, chosen: list[Reference]) -> bool:
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
        return self.queue.paged is None or (not chosen and self._choose_paged(now, chosen))

    def _choose_paged(self, now: int, chosen: list[Reference]) -> bool:
        """Reads the next block of page files after all messages in memory. Returns True at the end of the page files.

        A job that only reads gets copies. Messages to be changed are loaded into memory, in the queue's order.
        """
        found = self.store.paging.after(self.queue, self.cursor - 1)
        if not found or found[0].sequence >= self.end:
            return True
        wanted = [one for one in found if one.sequence < self.end and self._wants(one)]
        if wanted and self.changes:
            self.store.command.begin_change()
            if not self.store.paging.read_more(now, self.queue, True):
                raise BrokerError(
                    ILLEGAL_STATE,
                    f"memory is full before the messages of queue {self.queue.name} in page files were read: "
                    f"{self.taken} messages are done",
                )
            return False
        self.cursor = found[-1].sequence + 1
        chosen.extend(wanted if self.left < 0 else wanted[: self.left])
        return self.found(chosen)

    def found(self, chosen: list[Reference]) -> bool:
        """Returns True if the single requested message was found."""
        return self.message_id >= 0 and bool(chosen)

    def _choose_later(self, chosen: list[Reference]) -> bool:
        """Fills `chosen` like `_choose`, from the messages that were scheduled when the others were done."""
        waiting = self.scheduled or []
        most = self.acts_max if self.left < 0 else min(self.acts_max, self.left)
        while waiting and len(chosen) < most:
            reference = waiting.pop()
            if reference.state == SCHEDULED and self._takes(reference):
                chosen.append(reference)
        return not waiting

    def _wants(self, reference: Reference) -> bool:
        if reference.state != READY and not (self.any_state and reference.state != DONE):
            return False
        return self._takes(reference)

    def wants_more(self, reference: Reference) -> bool:
        """Returns True if a subclass selects the message besides the selector."""
        return True

    def _takes(self, reference: Reference) -> bool:
        if self.message_id >= 0 and reference.message.id != self.message_id:
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
        self.timers.set(MANAGEMENT_TIMER, now)
