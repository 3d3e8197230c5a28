"""Members of a cluster, and what they send each other."""

from __future__ import annotations

from atalanta.cluster.connection.redistribution import Redistribution
from atalanta.cluster.connection.remote_bindings import RemoteBindings
from atalanta.cluster.links.queue_sender import QueueSender
from atalanta.cluster.topology.topology import Topology
from atalanta.kernel.publish import message_router
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.routing import router
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.router import Route
from atalanta.message.message import Message
from atalanta.node.node import Node
from tests.sim.mutants.patching import Patch


def bridge_forgets_before_the_answer(patch: Patch) -> None:
    take = QueueSender.take

    def forgetful(self: QueueSender, reference: Reference) -> int:
        cost = take(self, reference)
        for correlation in list(self.unanswered):
            self.on_answer(correlation)
        return cost

    patch.setattr(QueueSender, "take", forgetful)


def late_messages_not_redistributed(patch: Patch) -> None:
    patch.setattr(Redistribution, "on_unattended", lambda self, now, queue: None)


def member_that_left_is_remembered(patch: Patch) -> None:
    patch.setattr(Topology, "remove", lambda self, node_id, event_id: False)


def message_to_every_queue_of_a_name(patch: Patch) -> None:
    """As if same-named queues of several nodes were several queues."""
    def generous(
        address: Address, message: Message, routing_type: int, only_queue: str
    ) -> list[Route]:
        routes = router.route(address, message, routing_type, only_queue)
        for group in address.groups.values():
            if group.locals and routes and group.locals[0] not in [each.queue for each in routes]:
                routes.append(Route(group.locals[0], b""))
        return routes

    patch.setattr(message_router, "route", generous)


def consumer_counts_drift(patch: Patch) -> None:
    consumer = RemoteBindings._consumer

    def deaf(self: RemoteBindings, now: int, message: Message, created: bool) -> None:
        if created or now % 2:
            consumer(self, now, message, created)

    patch.setattr(RemoteBindings, "_consumer", deaf)


def peers_are_blocked_for_ever(patch: Patch) -> None:
    """Nobody hears that a slow reader has read."""
    patch.setattr(Node, "on_unblocked", lambda self, now, conn: None)
