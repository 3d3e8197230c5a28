"""The wish of an active member to give its service away: it stays until the register has answered.

The successor needs the register to become active. While the manager is away nobody would serve, so a member that was
asked to give its service away, or that wants to give it back, reads the register first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.cluster.replication.active.replicator import CHECK_TIMER, HANDOVER_TIMER
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.cluster.replication.active.replicator import Replicator

log = logging.getLogger("atalanta.app")

NOBODY: Final = "no other member is in sync"
START: Final = "start the backup, and wait until `atalanta ha status` shows that it is in sync"
MANAGER: Final = "this member goes on: start the manager of the group, or correct [ha.manager]"


class Handover:
    """The handovers of one active run. `set_timer` makes an input of the node at once, `give` stops the node."""

    def __init__(self, set_timer: Callable[[str], None], give: Callable[[str], None]) -> None:
        self._set_timer = set_timer
        self._give = give
        self._why = ""
        self._chosen = False
        self._told = ""

    @property
    def waits(self) -> bool:
        """Returns whether a wish waits for the register."""
        return self._why != ""

    def want(self, replicator: Replicator | None, why: str, chosen: bool = False, once: bool = False) -> None:
        """Reads the register in order to hand over because of `why`. An earlier wish that waits comes first.

        `chosen`: a primary, or the follower that an operator wants, is announced before. `once`: the wish comes again
        and again, and a refusal is told once.
        """
        if self._why:
            return
        if not once:
            self._told = ""
        if replicator is None or not replicator.has_successor():
            self._refuse(why, NOBODY, START)
            return
        self._why, self._chosen = why, chosen
        self._set_timer(CHECK_TIMER)

    def step(self, replicator: Replicator | None) -> str:
        """Gives the service away once the register has answered. Returns why not, "" while it is not known."""
        if not self._why or replicator is None:
            return ""
        problem = replicator.handover_problem()
        if problem is None:
            return ""
        why, self._why = self._why, ""
        if problem:
            self._refuse(why, problem, MANAGER)
            return problem
        if not replicator.has_successor():
            self._refuse(why, NOBODY, START)
            return NOBODY
        if self._chosen:
            self._set_timer(HANDOVER_TIMER)
        self._give(why)
        return ""

    def _refuse(self, wish: str, why: str, what_to_do: str) -> None:
        if wish != self._told:
            self._told = wish
            log_event(log, "handover_refused", {"wish": wish, "why": why, "what_to_do": what_to_do})
