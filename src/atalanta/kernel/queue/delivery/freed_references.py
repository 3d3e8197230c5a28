"""References that no queue holds any more, until their memory is freed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.reference import Reference

FREED_TIMER: Final = "kernel.freed"
FREED_MAX: Final = 2_000  # references that one timer input frees


class FreedReferences:
    """Long lists of finished references, freed in parts by a timer.

    A log-view reader may acknowledge a million messages at once. Freeing them is half of the work, and no reply waits
    for it.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.lists: list[list[Reference]] = []

    def add(self, references: list[Reference]) -> None:
        """Takes the list over; the caller keeps none of the references."""
        if len(references) > FREED_MAX:
            self.lists.append(references)
            self.timers.set(FREED_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """Frees the next part."""
        references = self.lists[len(self.lists) - 1]
        del references[-FREED_MAX:]
        if not references:
            self.lists.pop()
        if self.lists:
            self.timers.set(FREED_TIMER, now)
