"""Messages parked for a member that is away."""

from __future__ import annotations

from atalanta.kernel import returning
from atalanta.kernel.returning import LAST, Return
from tests.sim.mutants.patching import Patch


def parked_ones_come_back_behind_everything(patch: Patch) -> None:
    """Under their own ids."""
    patch.setattr(returning, "spot", lambda broker, queue, message_id, newest: LAST)


def parked_ones_come_back_as_new_arrivals(patch: Patch) -> None:
    patch.setattr(Return, "keeps_its_place", lambda self: False)
