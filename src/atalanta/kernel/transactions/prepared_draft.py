"""The draft of a prepared branch's record, in steps as that of a commit (draft.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal import records
from atalanta.kernel.publish.acknowledged_routes import acknowledged_part
from atalanta.kernel.transactions.draft import StepwiseDraft
from atalanta.kernel.transactions.xa_records import PreparedRecord

if TYPE_CHECKING:
    from atalanta.kernel.publish.duplicate_detection import DuplicateDetection
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.transactions.xa import XaBranch


class PreparedDraft(StepwiseDraft):
    """The draft of a branch's XA_PREPARED record.

    `wanted` are the plans of the branch so far, the copies of diverts among them. `arrived`: parts of them that are in
    their queues from the prepare on. `batch` has the duplicate ids that count from the prepare on (`shipment_ids`).
    """

    def __init__(
        self, branch: XaBranch, prepared: list[RoutingPlan], duplicates: DuplicateDetection, work_max: int
    ) -> None:
        super().__init__(prepared, work_max)
        self.duplicates = duplicates
        self.record = PreparedRecord(branch.xid, branch.created_at)
        self.wanted: list[RoutingPlan] = []
        self.arrived: list[RoutingPlan] = []
        self.batch = records.Batch()
        self.shipment_ids: list[tuple[str, bytes]] = []

    def add(self, plan: RoutingPlan) -> int:
        work = 1 + len(plan.routes) + (plan.message.size >> 10)
        copies = plan.diverted
        plan.diverted = None
        part: RoutingPlan | None = None
        if plan.acknowledged is not None:
            part = acknowledged_part(plan)
            self.arrived.append(part)
        if part is not plan:
            self.shipment_ids.extend(self.duplicates.take_shipment_ids([plan], self.batch))
            self.wanted.append(plan)
            self.record.add(plan)
        if copies is not None:
            for copy in copies:
                work += self.add(copy)
        return work
