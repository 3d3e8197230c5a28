"""Groups of messages across the nodes of a cluster: all messages of a group go to one queue of each routing name.

Which queue that is one node decides, the one with the LOCAL handler (cluster/grouping/local.py); the others ask it
(cluster/grouping/remote.py). A message whose group is not decided yet cannot be routed: `route_grouped` raises
Undecided before anything has changed, the sender's session waits as a GroupWaiter and tries again. Follows
BindingsImpl.routeUsingStrictOrdering; unlike there a message that nobody decides about is refused, never routed
without its group, and a queue's filter counts for the messages of a group, too.
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
    """`ids` are the groups (with their routing names) that must be decided first; they are being asked for."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__(ILLEGAL_STATE, f"it is not decided yet which queue group {ids[0]} belongs to")
        self.ids = ids


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupWaiter:
    """A sender that waits for decisions; `since` is when it began to, 0 before that."""

    def __init__(self) -> None:
        self.since: int = 0

    def decided(self, now: int) -> None:
        """Try again: everything it waited for is decided, must be asked for anew, or is refused by now."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupingHandler:
    """What routing asks, and what it must be told. A full id is `<group id>.<routing name>`; a queue is named by its
    cluster name: queue name + id of its node. `newest_lsn` is the journal record of the newest decision of this node.
    """

    def __init__(self) -> None:
        self.newest_lsn: int = 0
        # Set while a waiter whose time is over tries for the last time: what it gets instead of Undecided.
        self.refusal: BrokerError | None = None

    def covers(self, address: str) -> bool:
        """Whether other nodes may have queues of this address at all."""
        raise NotImplementedError

    def chosen(self, now: int, full_id: str) -> str | None:
        """The queue the group belongs to, if that is known here."""
        raise NotImplementedError

    def used(self, now: int, full_id: str) -> None:
        """A message of the group is routed to its queue."""
        raise NotImplementedError

    def propose(self, now: int, full_id: str, cluster_name: str) -> str | None:
        """An undecided group should go to this queue; the decision, or None if it has to be waited for."""
        raise NotImplementedError

    def not_found(self, now: int, full_id: str, cluster_name: str) -> None:
        """The group belongs to a queue that is not known here: it has to be waited for."""
        raise NotImplementedError

    def wait(self, now: int, ids: list[str], waiter: GroupWaiter) -> None:
        """Tell the waiter when all of them may be tried again, or `timeout` after its `since`."""
        raise NotImplementedError

    def forget(self, waiter: GroupWaiter) -> None:
        """It does not wait any more."""
        raise NotImplementedError

    # -- news from the cluster ------------------------------------------------------------------
    def on_notification(self, now: int, node_id: str, kind: str, message: Message) -> None:
        """PROPOSAL, PROPOSAL_RESPONSE or UNPROPOSAL, from that peer."""
        raise NotImplementedError

    def remote_added(self, now: int, cluster_name: str) -> None:
        """A queue of another node is known here now."""
        raise NotImplementedError

    def remote_removed(self, now: int, cluster_name: str) -> None:
        """It is gone, or its node left in good order."""
        raise NotImplementedError

    def peer_complete(self, now: int, node_id: str) -> None:
        """The peer has told all its queues."""
        raise NotImplementedError

    def peer_lost(self, now: int, node_id: str) -> None:
        """What the peer does is not known any more."""
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
    """Routes of a message with a group id. Undecided if somebody else must decide first and the sender can wait.

    `may_wait` False is for messages the broker itself moves (dead letters, expired ones): where nothing is decided
    they go as if there was no handler.
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
    """One message at one address and the wildcard addresses that match it."""

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
