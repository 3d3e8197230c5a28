"""Consumers of different priorities."""

from __future__ import annotations

from atalanta.kernel.queue import consumers
from atalanta.kernel.queue.queue import Queue
from tests.sim.mutants.patching import Patch


class OneTurn(list[int]):
    """Turns of the priorities that are one and the same turn."""

    def __getitem__(self, index: object) -> int:  # type: ignore[override]
        return super().__getitem__(0)

    def __setitem__(self, index: object, turn: int) -> None:  # type: ignore[override]
        super().__setitem__(0, turn)


def priorities_share_one_turn(patch: Patch) -> None:
    """The offers to the consumers of a lower priority change whose turn it is among the higher ones."""
    arrange = consumers.arrange

    def careless(queue: Queue, turns: dict[int, int] | None = None) -> None:
        arrange(queue, turns)
        queue.level_turns = OneTurn(queue.level_turns)

    patch.setattr(consumers, "arrange", careless)
