"""Routing: finds the queues that take a message. The first module to read on the path of a message.

A route is a queue and, for a store-and-forward queue, the binding ids that the peer must use. Routing changes no
state: `Publisher.publish` journals the result and enqueues it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.bindings import BindingGroup, RemoteBinding

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.message.message import Message


class Route:
    """A route: `queue` takes the message; `route_to` is empty unless `queue` is a store-and-forward queue."""

    def __init__(self, queue: Queue, route_to: bytes) -> None:
        self.queue = queue
        self.route_to = route_to




def route(address: Address, message: Message, routing_type: int, only_queue: str) -> list[Route]:
    """Returns one route per group of the address that takes the message, as Artemis' BindingsImpl does.

    `routing_type` is -1 if the message has none; `only_queue` restricts the routes to queues of that name (FQQN).
    """
    routes: list[Route] = []
    for group in address.groups.values():
        choice = group.choose(message, routing_type, only_queue)
        if choice >= 0:
            add_route(routes, group, choice)
    wildcards = address.wildcards
    if wildcards is not None:
        for wild in wildcards:
            routes.extend(route(wild, message, routing_type, only_queue))
    return routes


def add_route(routes: list[Route], group: BindingGroup, place: int) -> None:
    """Adds the route to the binding at that index of the group's locals + remotes."""
    here = len(group.locals)
    if place < here:
        routes.append(Route(group.locals[place], b""))
    else:
        add_remote_route(routes, group.remotes[place - here])


def add_remote_route(routes: list[Route], remote: RemoteBinding) -> None:
    """Adds a remote binding's route, one copy for each peer: the ids of its queues are joined, newest first."""
    encoded = remote.remote_id.to_bytes(8, "big", signed=True)
    for known in routes:
        if known.queue is remote.forward:
            known.route_to = encoded + known.route_to
            return
    routes.append(Route(remote.forward, encoded))


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
            routes.append(Route(queue, b""))
            continue
        remote = remotes_by_id.get(binding_id)
        if remote is None:
            unknown.append(binding_id)
        elif remote.connected:
            add_remote_route(routes, remote)
        else:
            away.append(remote)
    return routes, unknown, away
