"""Messages parked for a member that is away."""

from __future__ import annotations

from atalanta.cluster import forwarding
from atalanta.cluster.away import Away
from atalanta.cluster.late import LateArrivals
from atalanta.cluster.parked import ParkedMessages
from atalanta.cluster.sent_mark import SentMark
from atalanta.kernel import returning, spots
from atalanta.kernel.arrival import NO_LINK
from atalanta.kernel.broker import Broker
from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import Reference
from atalanta.kernel.returning import Return
from atalanta.kernel.spots import LAST, WAITS, Looked, Standing
from tests.sim.mutants.patching import Patch


def parked_ones_come_back_behind_everything(patch: Patch) -> None:
    """Under their own ids."""
    patch.setattr(returning, "spot", lambda broker, queue, standing, looked: LAST)


def parked_ones_come_back_as_new_arrivals(patch: Patch) -> None:
    patch.setattr(Return, "keeps_its_place", lambda self: False)


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


def younger_ones_do_not_wait_for_what_comes_back(patch: Patch) -> None:
    """Between two parts of it."""
    patch.setattr(ParkedMessages, "_hold", lambda self, away, node_id: None)


def who_comes_during_a_look_gets_what_is_there(patch: Patch) -> None:
    """Though what is older comes back in a later part of it."""
    patch.setattr(ParkedMessages, "_await", lambda self, node_id, away, queue: None)


def copies_do_not_say_when_they_came(patch: Patch) -> None:
    """To another member they come as new arrivals."""
    patch.setattr(forwarding, "place_there", lambda message, link: b"")


def younger_ones_do_not_wait_for_what_comes_late(patch: Patch) -> None:
    """Until it has its place at the third member."""
    patch.setattr(LateArrivals, "_hold", lambda self, queue: None)


def what_came_late_stays_where_it_was_stored(patch: Patch) -> None:
    """After a restart."""
    patch.setattr(LateArrivals, "start", lambda self, now: None)


def what_came_late_does_not_wait_for_page_files(patch: Patch) -> None:
    def hasty(
        broker: Broker, queue: Queue, standing: Standing, looked: dict[tuple[int, int], Looked]
    ) -> int:
        found = spots.spot(broker, queue, standing, looked)
        return LAST if found == WAITS and standing.link != NO_LINK else found

    patch.setattr(returning, "spot", hasty)
