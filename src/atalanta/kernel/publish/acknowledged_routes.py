"""Messages of a leaving node that a prepared transaction has acknowledged already, in some of their queues.

`_AMQ_ACK_ROUTE_TO` names those queues (BindingsImpl.routeFromCluster). The message is in such a queue again only after
a rollback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.message.internal_headers import ACK_ROUTE_TO

if TYPE_CHECKING:
    from atalanta.kernel.journal.records import Batch
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message


def set_acknowledged_aside(plan: RoutingPlan, message: Message) -> None:
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


def acknowledged_part(plan: RoutingPlan) -> RoutingPlan:
    """Returns the plan of the acknowledged routes: the plan itself, or a copy if the message is sent as well."""
    assert plan.acknowledged is not None
    part = plan
    if plan.routes:
        part = RoutingPlan(plan.message.copy(0))
        part.duplicates = plan.duplicates
        plan.duplicates = []
    part.routes = plan.acknowledged
    plan.acknowledged = None
    return part


def store_acknowledged(plans: PlanWriter, part: RoutingPlan, batch: Batch) -> list[Reference]:
    """Writes the acknowledged routes; returns their references, which enter the queues without a consumer.

    A commit finishes them; a rollback makes them deliverable.
    """
    references = plans.add(part, batch)
    for reference in references:
        reference.queue.reserve(reference, 1)
    return references
