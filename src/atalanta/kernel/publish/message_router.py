"""The message router of a node: the queues that take a message, groups kept together across the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.publish.group_routes import GroupRoutes
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.kernel.routing.router import Route, route

if TYPE_CHECKING:
    from atalanta.kernel.publish.grouping import GroupingHandler
    from atalanta.kernel.queue.delivery.plan import Plan
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.broker_config import BrokerConfig


class MessageRouter:
    """Routes messages at their addresses. `grouping` is the node's grouping handler, None without one."""

    def __init__(self, config: BrokerConfig, node_id: str) -> None:
        self.config = config
        self.node_id = node_id
        self.grouping: GroupingHandler | None = None

    def routes(
        self, now: int, plan: Plan, address: Address, only_queue: str, may_wait: bool
    ) -> list[Route]:
        """Returns the routes of the plan's message at the address (kernel/routing/router.py).

        Undecided is raised if another node must choose the queue of the message's group first. `may_wait` False is for
        messages that the broker itself moves (dead letters, expired ones). If their group has no queue yet, they are
        routed as without a handler.
        """
        message = plan.message
        handler = self.grouping
        if (
            handler is None
            or message.group_id is None
            or is_resource(self.config, address.name)  # peers do not know these addresses
            or not handler.covers(address.name)
        ):
            return route(address, message, message.routing_type, only_queue)
        found = GroupRoutes(handler, self.node_id, now, message, only_queue, may_wait)
        found.add_address(address)
        if found.undecided and may_wait:
            if handler.refusal is not None:
                raise handler.refusal
            raise Undecided(found.undecided)
        plan.after_lsn = max(plan.after_lsn, handler.newest_lsn)
        return found.routes
