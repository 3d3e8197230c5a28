"""Nodes that leave, and give what they have to another."""

from __future__ import annotations

from atalanta.cluster.scale_down import stages
from atalanta.cluster.scale_down.queue_cursor import AddressCursor
from atalanta.cluster.scale_down.transactions import TransactionStage
from atalanta.kernel.queue.reference import Reference
from tests.sim.mutants.patching import Patch


def arrivals_in_another_order(patch: Patch) -> None:
    """Two by two, the second first."""
    take = AddressCursor.take
    kept: dict[int, list[Reference]] = {}

    def crosswise(self: AddressCursor) -> list[Reference] | None:
        waiting = kept.pop(id(self), None)
        if waiting is not None:
            return waiting
        first = take(self)
        second = None if first is None else take(self)
        if first is None or second is None:
            return first
        kept[id(self)] = first
        return second

    patch.setattr(AddressCursor, "take", crosswise)


def prepared_branches_stay(patch: Patch) -> None:
    """The node comes back with them."""
    patch.setattr(TransactionStage, "step", lambda self, now: True)


def prepared_branches_are_dropped(patch: Patch) -> None:
    """Taken to be at the target."""
    patch.setattr(TransactionStage, "_say", lambda self, packet: self._moved())


def kept_here_too(patch: Patch) -> None:
    """Messages that the target has are not finished here."""
    patch.setattr(stages, "finish", lambda broker, references, batch: len(references))
