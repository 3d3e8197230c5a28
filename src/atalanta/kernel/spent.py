"""Messages that are done with, until their memory is freed: some at a time, while others have their turns.

A reader may acknowledge a million at once. What frees them is half of the work of that, and nobody waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.reference import Reference

SPENT_TIMER: Final = "kernel.spent"
FREED_MAX: Final = 2_000  # references one turn frees


class Spent:
    """References that no queue has any more."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.lists: list[list[Reference]] = []

    def add(self, references: list[Reference]) -> None:
        """The caller keeps none of them."""
        if len(references) > FREED_MAX:
            self.lists.append(references)
            self.timers.set(SPENT_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """The next ones."""
        references = self.lists[len(self.lists) - 1]
        del references[-FREED_MAX:]
        if not references:
            self.lists.pop()
        if self.lists:
            self.timers.set(SPENT_TIMER, now)
