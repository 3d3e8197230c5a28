"""Messages of a leaving node that a prepared transaction has acknowledged already, in some of their queues.

`_AMQ_ACK_ROUTE_TO` names those queues (BindingsImpl.routeFromCluster). The message is in such a queue again only after
a rollback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.message.internal_headers import ACK_ROUTE_TO

if TYPE_CHECKING:
    from atalanta.kernel.journal.records import Batch
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message


def set_acknowledged_aside(plan: Plan, message: Message) -> None:
    """Moves the routes that `_AMQ_ACK_ROUTE_TO` names from `plan.routes` to `plan.acknowledged`."""
    raw_ids = message.properties.get(ACK_ROUTE_TO)
    message.remove_property(ACK_ROUTE_TO)
    if not isinstance(raw_ids, bytes):
        return
    ids: dict[int, bool] = {}
    for start in range(0, len(raw_ids) - 7, 8):
        ids[int.from_bytes(raw_ids[start : start + 8], "big", signed=True)] = True
    plan.acknowledged = [route for route in plan.routes if route.queue.id in ids]
    plan.routes = [route for route in plan.routes if route.queue.id not in ids]


def store_acknowledged(
    plans: PlanWriter, plan: Plan, batch: Batch, arrived: list[Reference]
) -> Plan:
    """Writes the acknowledged routes; their references, added to `arrived`, enter the queues without a consumer.

    A commit finishes them; a rollback makes them deliverable. Returns the plan that was written: the plan itself, or a
    copy of it if the transaction sends the message as well.
    """
    assert plan.acknowledged is not None
    written = plan
    if plan.routes:
        written = Plan(plan.message.copy(0))
        written.duplicates = plan.duplicates
        plan.duplicates = []
    written.routes = plan.acknowledged
    plan.acknowledged = None
    for reference in plans.add(written, batch):
        reference.queue.reserve(reference, 1)
        arrived.append(reference)
    return written
