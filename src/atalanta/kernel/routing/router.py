"""Routing: finds the queues that take a message. The first module to read on the path of a message.

A route is a queue and, for a store-and-forward queue, the binding ids that the peer must use. Routing changes no
state: `Publisher.publish` journals the result and enqueues it.

A list of routes has each queue once. An ordinary queue has one place in it, however many addresses, ids or records
name it. A store-and-forward queue carries one copy for the peer with the ids of all bindings: a second copy would have
the same id of the bridge, and the peer would drop it as a repeat. `join_route` is that rule. `invariants.validate`
checks it for tests and the simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.bindings import BindingGroup, RemoteBinding

if TYPE_CHECKING:
    from atalanta.kernel.journal.message_record import StoredRoute
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.message.message import Message


class Route:
    """A route: `queue` takes the message; `route_to` is empty unless `queue` is a store-and-forward queue."""

    def __init__(self, queue: Queue, route_to: bytes) -> None:
        self.queue = queue
        self.route_to = route_to


def route(address: Address, message: Message, routing_type: int, only_queue: str) -> list[Route]:
    """Returns the routes to one binding of each group that takes the message, as Artemis' BindingsImpl does.

    The groups are those of the address and of the wildcard addresses that match it. `routing_type` is -1 if the message
    has none; `only_queue` restricts the routes to queues of that name (FQQN).
    """
    routes: list[Route] = []
    _route_at(routes, address, message, routing_type, only_queue)
    wildcards = address.wildcards
    if wildcards is not None:
        for wild in wildcards:
            _route_at(routes, wild, message, routing_type, only_queue)
    return routes


def _route_at(routes: list[Route], address: Address, message: Message, routing_type: int, only_queue: str) -> None:
    for group in address.groups.values():
        choice = group.choose(message, routing_type, only_queue)
        if choice >= 0:
            add_route(routes, group, choice)


def add_route(routes: list[Route], group: BindingGroup, place: int) -> None:
    """Adds the route to the binding at that index of the group's locals + remotes; each group is asked once.

    A local queue is in one group only, so it is not looked for.
    """
    here = len(group.locals)
    if place < here:
        routes.append(Route(group.locals[place], b""))
    else:
        add_remote_route(routes, group.remotes[place - here])


def add_remote_route(routes: list[Route], remote: RemoteBinding) -> None:
    """Adds a remote binding's route, one copy for each peer."""
    join_route(routes, remote.forward, remote.remote_id.to_bytes(8, "big", signed=True))


def join_route(routes: list[Route], queue: Queue, route_to: bytes) -> None:
    """Adds a route, or joins its binding ids with those of the queue's route, newest first."""
    for known in routes:
        if known.queue is queue:
            known.route_to = route_to + known.route_to
            return
    routes.append(Route(queue, route_to))


def join_stored(stored: list[StoredRoute]) -> list[StoredRoute]:
    """Returns the routes of a record by the same rule. Earlier builds wrote records that have a queue twice.

    The first route of a queue stays, with its sequence, and gets the ids that it does not have.
    """
    if len(stored) < 2:
        return stored
    found: dict[int, StoredRoute] = {}
    for each in stored:
        known = found.setdefault(each.queue_id, each)
        if known is not each:
            known.join(each.route_to)
    return stored if len(found) == len(stored) else list(found.values())


def route_by_ids(
    raw_ids: bytes, queues_by_id: dict[int, Queue], remotes_by_id: dict[int, RemoteBinding]
) -> tuple[list[Route], list[int], list[RemoteBinding]]:
    """Routes a peer's message to the ids of `_AMQ_ROUTE_TO`, without a new choice.

    Also returns the unknown ids, and the bindings of members that are away, which have no route yet.
    """
    routes: list[Route] = []
    unknown: list[int] = []
    away: list[RemoteBinding] = []
    seen: dict[int, bool] = {}
    for start in range(0, len(raw_ids) - 7, 8):
        binding_id = int.from_bytes(raw_ids[start : start + 8], "big", signed=True)
        if binding_id in seen:
            continue
        seen[binding_id] = True
        queue = queues_by_id.get(binding_id)
        if queue is not None:
            routes.append(Route(queue, b""))  # one id is one queue
            continue
        remote = remotes_by_id.get(binding_id)
        if remote is None:
            unknown.append(binding_id)
        elif remote.connected:
            add_remote_route(routes, remote)
        else:
            away.append(remote)
    return routes, unknown, away
