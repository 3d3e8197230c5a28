"""The draft of a large transaction's record: encoded in steps, appended in one.

A draft has an id, references and an encoded record for each message. No queue, account or table knows of them, so
that a draft can be dropped at any time. Its sequences are those that each queue would give next. `enter`, in the step
of the append, takes them. In a queue that has got messages meanwhile they are higher: then it sets them in the
references and in the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from atalanta.kernel.errors import Unfinished
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import FIRST_SEQUENCE, ROUTE_BYTES

if TYPE_CHECKING:
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message


class DraftedMessage:
    """A message of a draft. `at`: the offset of its MESSAGE record in the batch; -1 without one."""

    def __init__(self, message: Message, references: list[Reference], at: int) -> None:
        self.message = message
        self.references = references
        self.at = at


class StepwiseDraft:
    """A draft of the record for these plans. `work_max`: of a step."""

    def __init__(self, plans: list[RoutingPlan], work_max: int) -> None:
        self.plans = plans
        self.work_max = work_max
        self._next: int = 0

    def advance(self, in_steps: bool) -> None:
        """Drafts the next messages, and raises Unfinished if some are left and the work may be done in steps."""
        plans = self.plans
        work = 0
        while self._next < len(plans):
            if in_steps and work >= self.work_max:
                raise Unfinished
            plan = plans[self._next]
            self._next += 1
            work += self.add(plan)

    def add(self, plan: RoutingPlan) -> int:
        """Drafts a message and its copies; returns the work, as `Preparation.work`."""
        raise NotImplementedError


class Draft(StepwiseDraft):
    """The draft of a commit's record. `batch` has the messages so far."""

    def __init__(self, writer: PlanWriter, plans: list[RoutingPlan], work_max: int) -> None:
        super().__init__(plans, work_max)
        self.writer = writer
        self.batch = records.Batch(many=True)
        self.drafted: list[DraftedMessage] = []
        self.before: dict[Queue, int] = {}  # the sequence before the first one of the draft
        self.last: dict[Queue, int] = {}  # and the last one

    def add(self, plan: RoutingPlan) -> int:
        writer = self.writer
        message = plan.message
        references = writer.references(plan)
        if not writer.is_later(message):
            for reference in references:
                queue = reference.queue
                sequence = self.last.get(queue, 0) + 1
                if sequence == 1:
                    sequence = queue.next_sequence
                    self.before[queue] = sequence - 1
                self.last[queue] = sequence
                reference.sequence = sequence
        at = self.batch.next_payload()
        if not writer.write(plan, references, self.batch):
            at = -1
        self.drafted.append(DraftedMessage(message, references, at))
        work = 1 + len(references) + (message.size >> 10)
        if plan.diverted is not None:
            for copy in plan.diverted:
                work += self.add(copy)
        return work

    def enter(self) -> list[Reference]:
        """Takes the sequences, charges the references to memory, and returns them. The append follows at once."""
        writer = self.writer
        batch = self.batch
        shifts: dict[Queue, int] = {}
        for queue, last in self.last.items():
            before = self.before[queue]
            shift = queue.take_sequences(last - before) - 1 - before
            if shift > 0:
                shifts[queue] = shift
        entered: list[Reference] = []
        for drafted in self.drafted:
            references = drafted.references
            if shifts:
                at: i64 = drafted.at + FIRST_SEQUENCE
                for reference in references:
                    if reference.sequence > 0:
                        reference.sequence += shifts.get(reference.queue, 0)
                    if reference.durable:
                        batch.set_int64(at, reference.sequence)
                        at += ROUTE_BYTES + len(reference.route_to)
            writer.enter(drafted.message, references)
            entered.extend(references)
        return entered
