"""Overlapping subscriptions."""

from __future__ import annotations

from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.routing import router
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.router import Route
from atalanta.kernel.routing.wildcard_addresses import AddressPattern, WildcardAddresses
from atalanta.message.message import Message
from tests.sim.mutants.patching import Patch


def recovered_wildcards_take_from_each_other(patch: Patch) -> None:
    """At recovery all addresses exist, and the later wildcard addresses are not known yet."""

    def receives(self: WildcardAddresses, pattern: AddressPattern, name: str) -> bool:
        return not self.hides(name) and pattern.matches(name) and name not in self.known

    def route(address: Address, message: Message, routing_type: int, only_queue: str) -> list[Route]:
        routes: list[Route] = []
        router._route_at(routes, address, message, routing_type, only_queue)
        for wild in address.wildcards or []:
            routes.extend(route(wild, message, routing_type, only_queue))
        return routes

    patch.setattr(WildcardAddresses, "receives", receives)
    patch.setattr("atalanta.kernel.publish.message_router.route", route)


def peers_get_a_copy_for_each_binding(patch: Patch) -> None:
    def append(routes: list[Route], queue: Queue, route_to: bytes) -> None:
        routes.append(Route(queue, route_to))

    patch.setattr(router, "join_route", append)
