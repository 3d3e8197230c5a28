"""Message groups across the nodes of a cluster: all messages of a group go to one queue of each routing name.

The node with the LOCAL handler chooses the queue (cluster/grouping/local.py). The other nodes ask that node
(cluster/grouping/remote.py). A message whose group has no queue yet cannot be routed: `route_grouped` raises Undecided
before anything has changed. The sender's session then waits as a GroupWaiter and tries again.

Follows BindingsImpl.routeUsingStrictOrdering, with two differences. A message whose group gets no queue is refused,
never routed without its group. A queue's filter counts for the messages of a group, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.routing.router import Route, add_remote_route, route

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.delivery.plan import Plan
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.bindings import BindingGroup
    from atalanta.message.message import Message


class Undecided(BrokerError):
    """The message's groups have no queue yet. `ids`: the group ids (with routing names) that are being asked for."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__(ILLEGAL_STATE, f"it is not decided yet which queue group {ids[0]} belongs to")
        self.ids = ids


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupWaiter:
    """A sender that waits for the queues of its groups. `since`: the time (ns) when the wait began; 0 before that."""

    def __init__(self) -> None:
        self.since: int = 0

    def decided(self, now: int) -> None:
        """Tries again: each group has its queue, must be asked for again, or is refused by now."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupingHandler:
    """The interface of a grouping handler.

    A full id is `<group id>.<routing name>`. A queue is named by its cluster name: queue name + id of its node.
    `newest_lsn` is the journal record of this node's newest choice of a queue.
    """

    def __init__(self) -> None:
        self.newest_lsn: int = 0
        # Set while a waiter tries for the last time after its timeout: the error it gets instead of Undecided.
        self.refusal: BrokerError | None = None

    def covers(self, address: str) -> bool:
        """Returns true if other nodes may have queues of this address."""
        raise NotImplementedError

    def chosen(self, now: int, full_id: str) -> str | None:
        """Returns the queue of the group, if this node knows the queue."""
        raise NotImplementedError

    def used(self, now: int, full_id: str) -> None:
        """Records that a message of the group is routed to its queue."""
        raise NotImplementedError

    def propose(self, now: int, full_id: str, cluster_name: str) -> str | None:
        """Proposes this queue for a group that has none; returns the group's queue, or None if the sender must wait."""
        raise NotImplementedError

    def not_found(self, now: int, full_id: str, cluster_name: str) -> None:
        """Records that this node does not know the group's queue: the sender must wait."""
        raise NotImplementedError

    def wait(self, now: int, ids: list[str], waiter: GroupWaiter) -> None:
        """Notifies the waiter when all the ids may be tried again, or `timeout` after its `since`."""
        raise NotImplementedError

    def forget(self, waiter: GroupWaiter) -> None:
        """Removes a waiter."""
        raise NotImplementedError

    # -- notifications from the cluster ----------------------------------------------------------
    def on_notification(self, now: int, node_id: str, kind: str, message: Message) -> None:
        """Handles a PROPOSAL, PROPOSAL_RESPONSE or UNPROPOSAL from that peer."""
        raise NotImplementedError

    def remote_added(self, now: int, cluster_name: str) -> None:
        """Records that this node knows a queue of another node now."""
        raise NotImplementedError

    def remote_removed(self, now: int, cluster_name: str) -> None:
        """Records that a queue of another node was deleted, or that its node left the cluster in good order."""
        raise NotImplementedError

    def peer_complete(self, now: int, node_id: str) -> None:
        """Records that the peer has announced all its queues."""
        raise NotImplementedError

    def peer_lost(self, now: int, node_id: str) -> None:
        """Records that the connection to the peer is lost: its queues and decisions are unknown."""
        raise NotImplementedError


def route_grouped(
    broker: Broker,
    handler: GroupingHandler,
    now: int,
    plan: Plan,
    address: Address,
    only_queue: str,
    may_wait: bool,
) -> list[Route]:
    """Returns the routes of a message with a group id; raises Undecided if another node must choose the queue first.

    `may_wait` False is for messages that the broker itself moves (dead letters, expired ones). If their group has no
    queue yet, they are routed as without a handler.
    """
    message = plan.message
    if not handler.covers(address.name):
        return route(address, message, message.routing_type, only_queue)
    routing = GroupRouting(broker, handler, now, message, only_queue, may_wait)
    routing.visit(address)
    if routing.undecided and may_wait:
        if handler.refusal is not None:
            raise handler.refusal
        raise Undecided(routing.undecided)
    plan.after_lsn = max(plan.after_lsn, handler.newest_lsn)
    return routing.routes


class GroupRouting:
    """Routes one message at one address and at the wildcard addresses that match it."""

    def __init__(
        self,
        broker: Broker,
        handler: GroupingHandler,
        now: int,
        message: Message,
        only_queue: str,
        may_wait: bool,
    ) -> None:
        self.node_id = broker.node_id
        self.handler = handler
        self.now = now
        self.message = message
        self.routing_type = message.routing_type
        self.only_queue = only_queue
        self.may_wait = may_wait
        self.routes: list[Route] = []
        self.undecided: list[str] = []

    def visit(self, address: Address) -> None:
        for group in address.groups.values():
            if self.only_queue and not group.has_queue(self.only_queue):
                continue
            self._route(group)
        wildcards = address.wildcards
        if wildcards is not None:
            for wild in wildcards:
                self.visit(wild)

    def _route(self, group: BindingGroup) -> None:
        handler = self.handler
        full_id = f"{self.message.group_id}.{group.routing_name}"
        chosen = handler.chosen(self.now, full_id)
        if chosen is None:
            place = group.choose(self.message, self.routing_type, self.only_queue)
            if place < 0:
                return
            if self.may_wait:
                chosen = handler.propose(
                    self.now, full_id, group.cluster_name_at(place, self.node_id)
                )
                if chosen is None:
                    self.undecided.append(full_id)
                    return
        if chosen is not None:
            place = group.place_of(chosen, self.node_id)
            if place < 0:
                if self.may_wait:
                    handler.not_found(self.now, full_id, chosen)
                    self.undecided.append(full_id)
                    return
                place = group.choose(self.message, self.routing_type, self.only_queue)
            elif not group.takes(place, self.message, self.routing_type, self.only_queue):
                return
            else:
                handler.used(self.now, full_id)
        if place < 0:
            return
        if place < len(group.locals):
            self.routes.append(Route(group.locals[place], b""))
        else:
            add_remote_route(self.routes, group.remotes[place - len(group.locals)])
