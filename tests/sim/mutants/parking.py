"""Messages parked for a member that is away."""

from __future__ import annotations

from atalanta.cluster.links.sent_mark import SentMark
from atalanta.cluster.store_and_forward.parked_messages import (
    PARKED_WHY,
    AbsentMember,
    ParkedMessages,
)
from atalanta.kernel.publish.message_mover import MessageMover
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.routing.router import Route
from tests.sim.mutants.patching import Patch


def what_may_have_arrived_comes_back(patch: Patch) -> None:
    """The member has it on its disk, or has handed it out."""
    _return = ParkedMessages._return

    def careless(
        self: ParkedMessages, reference: Reference, absent: AbsentMember, mark: SentMark
    ) -> bool:
        through = mark.through
        mark.through = 0
        returned = _return(self, reference, absent, mark)
        mark.through = through
        return returned

    patch.setattr(ParkedMessages, "_return", careless)


def what_comes_back_stays_parked_too(patch: Patch) -> None:
    """A restart finds it in both queues."""
    reroute = MessageMover.reroute

    def forgetful(
        self: MessageMover, reference: Reference, routes: list[Route], why: str,
        without: str = "", known: bytes = b"",
    ) -> None:  # fmt: skip
        durable = reference.durable
        reference.durable = durable and why != PARKED_WHY
        reroute(self, reference, routes, why, without, known)
        reference.durable = durable

    patch.setattr(MessageMover, "reroute", forgetful)


def what_is_parked_is_dropped(patch: Patch) -> None:
    """A message is removed from the store-and-forward queue, and goes nowhere."""
    reroute = MessageMover.reroute

    def careless(
        self: MessageMover, reference: Reference, routes: list[Route], why: str,
        without: str = "", known: bytes = b"",
    ) -> None:  # fmt: skip
        if why == PARKED_WHY:
            self.store.acknowledge([reference], None, 0)
        else:
            reroute(self, reference, routes, why, without, known)

    patch.setattr(MessageMover, "reroute", careless)
