"""Messages parked for a member that is away."""

from __future__ import annotations

from atalanta.cluster.links.sent_mark import SentMark
from atalanta.cluster.store_and_forward import parked_messages
from atalanta.cluster.store_and_forward.parked_messages import Away, ParkedMessages
from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.publish.reroute import reroute
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.routing.router import Route
from tests.sim.mutants.patching import Patch


def what_may_have_arrived_comes_back(patch: Patch) -> None:
    """The member has it on its disk, or has handed it out."""
    _return = ParkedMessages._return

    def careless(
        self: ParkedMessages, reference: Reference, away: Away, mark: SentMark
    ) -> bool:
        through = mark.through
        mark.through = 0
        returned = _return(self, reference, away, mark)
        mark.through = through
        return returned

    patch.setattr(ParkedMessages, "_return", careless)


def what_comes_back_stays_parked_too(patch: Patch) -> None:
    """A restart finds it in both queues."""

    def forgetful(
        broker: Broker, reference: Reference, routes: list[Route], why: str, without: str = ""
    ) -> None:
        durable = reference.durable
        reference.durable = False
        reroute(broker, reference, routes, why, without)
        reference.durable = durable

    patch.setattr(parked_messages, "reroute", forgetful)


def what_is_parked_is_dropped(patch: Patch) -> None:
    """It is removed from the store-and-forward queue, and goes nowhere."""

    def careless(
        broker: Broker, reference: Reference, routes: list[Route], why: str, without: str = ""
    ) -> None:
        broker.store.acknowledge([reference], None, 0)

    patch.setattr(parked_messages, "reroute", careless)
