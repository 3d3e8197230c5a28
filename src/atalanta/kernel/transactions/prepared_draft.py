"""The draft of a prepared branch's record, in steps as that of a commit (draft.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import Unfinished
from atalanta.kernel.journal import records
from atalanta.kernel.publish.acknowledged_routes import acknowledged_part
from atalanta.kernel.transactions.xa_records import PreparedRecord

if TYPE_CHECKING:
    from atalanta.kernel.publish.duplicate_detection import DuplicateDetection
    from atalanta.kernel.queue.delivery.plan import Plan
    from atalanta.kernel.transactions.xa import Branch


class PreparedDraft:
    """The draft of the XA_PREPARED record for these plans. `work_max`: of a step.

    `plans` are those of the branch, the copies of diverts among them. `arrived`: parts of them that are in their queues
    from the prepare on. `batch` has the duplicate ids that count from the prepare on (`shipment_ids`).
    """

    def __init__(
        self, branch: Branch, prepared: list[Plan], duplicates: DuplicateDetection, work_max: int
    ) -> None:
        self.prepared = prepared
        self.work_max = work_max
        self.duplicates = duplicates
        self.record = PreparedRecord(branch.xid, branch.created_at)
        self.plans: list[Plan] = []
        self.arrived: list[Plan] = []
        self.batch = records.Batch()
        self.shipment_ids: list[tuple[str, bytes]] = []
        self._next: int = 0

    def advance(self, in_steps: bool) -> None:
        """Drafts the next messages, and raises Unfinished if some are left and the work may be done in steps."""
        prepared = self.prepared
        work = 0
        while self._next < len(prepared):
            if in_steps and work >= self.work_max:
                raise Unfinished
            plan = prepared[self._next]
            self._next += 1
            work += self._add(plan)

    def _add(self, plan: Plan) -> int:
        """Drafts a message and its copies; returns the work, as `Preparation.work`."""
        work = 1 + len(plan.routes) + (plan.message.size >> 10)
        copies = plan.diverted
        plan.diverted = None
        part: Plan | None = None
        if plan.acknowledged is not None:
            part = acknowledged_part(plan)
            self.arrived.append(part)
        if part is not plan:
            self.shipment_ids.extend(self.duplicates.take_shipment_ids([plan], self.batch))
            self.plans.append(plan)
            self.record.add(plan)
        if copies is not None:
            for copy in copies:
                work += self._add(copy)
        return work
