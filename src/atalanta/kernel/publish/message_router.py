"""The message router of a node: the queues that take a message, groups kept together across the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.kernel.routing.router import Route, add_route, route

if TYPE_CHECKING:
    from atalanta.kernel.publish.grouping import GroupingHandler
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.bindings import BindingGroup
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.message.message import Message


class GroupRoutes:
    """The routes of one message at one address and at the wildcard addresses that match it.

    `undecided`: the full ids of groups whose queue another node must choose first.
    """

    def __init__(
        self,
        handler: GroupingHandler,
        node_id: str,
        now: int,
        message: Message,
        only_queue: str,
        may_wait: bool,
    ) -> None:
        self.handler = handler
        self.node_id = node_id
        self.now = now
        self.message = message
        self.routing_type = message.routing_type
        self.only_queue = only_queue
        self.may_wait = may_wait
        self.routes: list[Route] = []
        self.undecided: list[str] = []

    def add_address(self, address: Address) -> None:
        """Adds the routes of the address."""
        for group in address.groups.values():
            if self.only_queue and not group.has_queue(self.only_queue):
                continue
            self._add_group(group)
        wildcards = address.wildcards
        if wildcards is not None:
            for wild in wildcards:
                self.add_address(wild)

    def _add_group(self, group: BindingGroup) -> None:
        handler = self.handler
        full_id = f"{self.message.group_id}.{group.routing_name}"
        chosen = handler.chosen(self.now, full_id)
        if chosen is None:
            index = group.choose(self.message, self.routing_type, self.only_queue)
            if index < 0:
                return
            if self.may_wait:
                chosen = handler.propose(
                    self.now, full_id, group.cluster_name_at(index, self.node_id)
                )
                if chosen is None:
                    self.undecided.append(full_id)
                    return
        if chosen is not None:
            index = group.place_of(chosen, self.node_id)
            if index < 0:
                if self.may_wait:
                    handler.not_found(self.now, full_id, chosen)
                    self.undecided.append(full_id)
                    return
                index = group.choose(self.message, self.routing_type, self.only_queue)
            elif not group.takes(index, self.message, self.routing_type, self.only_queue):
                return
            else:
                handler.used(self.now, full_id)
        if index >= 0:
            add_route(self.routes, group, index)


class MessageRouter:
    """Routes messages at their addresses. `grouping` is the node's grouping handler, None without one."""

    def __init__(self, config: BrokerConfig, node_id: str) -> None:
        self.config = config
        self.node_id = node_id
        self.grouping: GroupingHandler | None = None

    def routes(
        self, now: int, plan: RoutingPlan, address: Address, only_queue: str, may_wait: bool
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
