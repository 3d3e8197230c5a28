"""Management of many messages at once, in bounded steps: the reply comes when the last step is done.

Every job looks at the messages its queue held when it began, LOOKS_MAX of them a turn of the loop, and acts on at
most `acts_max`; the rest goes on by a zero timer, so that a purge of a million messages delays nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.reference import DONE, READY, SCHEDULED, Reference
from atalanta.management.request.call import LATER, Call

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.management.management import Management
    from atalanta.message.selector.selector import Filter

MANAGEMENT_TIMER: Final = "management.jobs"
LOOKS_MAX: Final = 2_000
ACTS_MAX: Final = 100
JOBS_MAX: Final = 1_000


class MessageJob:
    """One pass over the messages of `queue` that are not delivered and that `selector` takes.

    Subclasses say in `act` what is done with some of them, and in `result` what is answered. `left` counts down to
    the most that may be taken; -1 means all. `message_id` >= 0: only that message.
    """

    acts_max: int = ACTS_MAX
    any_state: bool = False
    with_scheduled: bool = False

    def __init__(self, call: Call, queue: Queue, selector: Filter | None) -> None:
        self.call = call
        self.broker = call.broker
        self.queue = queue
        self.selector = selector
        self.message_id: int = -1
        self.left: int = -1
        self.cursor: int = 0
        self.end: int = queue.next_sequence
        self.taken: int = 0
        # Messages whose time has not come, once the others are done; None: not asked for yet.
        self.scheduled: list[Reference] | None = None
        self.changes: bool = True

    def act(self, now: int, chosen: list[Reference]) -> None:
        raise NotImplementedError

    def result(self) -> object:
        raise NotImplementedError

    def step(self, now: int) -> bool:
        """One bounded step; True when there is nothing more to do. BrokerError if the queue is gone."""
        queue = self.queue
        if queue.deleted:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name} was deleted meanwhile")
        chosen: list[Reference] = []
        finished = (
            self._choose(now, chosen) if self.scheduled is None else self._choose_later(chosen)
        )
        if finished and self.scheduled is None and self.with_scheduled and not self.found(chosen):
            finished = queue.scheduled_count == 0
            self.scheduled = [one for _, one in reversed(self.broker.scheduled.of_queue(queue))]
        if chosen:
            self.taken += len(chosen)
            if self.left > 0:
                self.left -= len(chosen)
            self.act(now, chosen)
        return finished or self.left == 0

    def _choose(self, now: int, chosen: list[Reference]) -> bool:
        """Fill `chosen` from where the last step ended; True when the last message has been looked at."""
        references = self.queue.references
        index = self.queue.index_of(self.cursor)
        stop = min(len(references), index + LOOKS_MAX)
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
        return self.queue.paged is None or (not chosen and self._look_outside(now, chosen))

    def _look_outside(self, now: int, chosen: list[Reference]) -> bool:
        """What memory holds is done: the next block of what lies in page files. True at the end of that.

        Who only looks is content with copies; what is to be acted on is brought into memory, in the queue's order.
        """
        found = self.broker.paging.reader.after(self.queue, self.cursor - 1)
        if not found or found[0].sequence >= self.end:
            return True
        wanted = [one for one in found if one.sequence < self.end and self._wants(one)]
        if wanted and self.changes:
            if not self.broker.paging.refill(now, self.queue, True):
                raise BrokerError(
                    ILLEGAL_STATE,
                    f"memory is full before the messages of queue {self.queue.name} that lie in page files: "
                    f"{self.taken} messages are done",
                )
            return False
        self.cursor = found[-1].sequence + 1
        chosen.extend(wanted if self.left < 0 else wanted[: self.left])
        return self.found(chosen)

    def found(self, chosen: list[Reference]) -> bool:
        """The one message that was asked for has been seen."""
        return self.message_id >= 0 and bool(chosen)

    def _choose_later(self, chosen: list[Reference]) -> bool:
        """As `_choose`, of those that were scheduled when the others were done."""
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
        """What a subclass asks of a message beside the selector."""
        return True

    def _takes(self, reference: Reference) -> bool:
        if self.message_id >= 0 and reference.message.id != self.message_id:
            return False
        if not self.wants_more(reference):
            return False
        return self.selector is None or self.selector.matches(reference.message)


class Jobs:
    """Jobs under way, one step of one of them at a time."""

    def __init__(self, management: Management) -> None:
        self.management = management
        self.running: list[MessageJob] = []

    def run(self, job: MessageJob) -> object:
        """The job's result if one step is enough, else LATER."""
        if job.step(job.call.now):
            return job.result()
        if len(self.running) >= JOBS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"{JOBS_MAX} management operations are under way")
        self.running.append(job)
        self._continue(job.call.now)
        return LATER

    def step(self, now: int) -> None:
        if not self.running:
            return
        job = self.running.pop(0)
        management = self.management
        try:
            finished = job.step(now)
            result = job.result() if finished else None
        except BrokerError as error:
            job.call.now = now
            management.refuse(job.call, error.text)
        else:
            if finished:
                management.reply(now, job.call, result, True, job.changes)
            else:
                self.running.append(job)
        if self.running:
            self._continue(now)

    def _continue(self, now: int) -> None:
        self.management.broker.timers.set(MANAGEMENT_TIMER, now)
