"""Messages parked for a member that is away."""

from __future__ import annotations

from atalanta.cluster.parked import Away, ParkedMessages
from atalanta.cluster.sent_mark import SentMark
from atalanta.kernel import returning
from atalanta.kernel.reference import Reference
from atalanta.kernel.returning import Return
from atalanta.kernel.spots import LAST
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
